//! Tests of programs with many uploads on one connection, before each limit that delays.

use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;

use super::programs::{body, printed};
use crate::chromium::page::webdriver::Browser;
use crate::programs::python::python_with;
use crate::programs::running::{go, source};
use crate::support::secure::gateway;
use crate::support::{Gateway, Origin, eventually, free_address};

const SIZE: usize = 500_000;
const COUNT: usize = 8;

/// A way to make requests wait.
struct Wait {
    /// Fields of the origin.
    origin: &'static str,
    /// Rate of the zone.
    rate: &'static str,
    /// More fields of the limit.
    limit: &'static str,
    /// Maximum number of requests at the origin.
    most: usize,
    /// Whether the origin is started only after all requests wait.
    starts_late: bool,
}

const WAITS: [Wait; 4] = [
    Wait {
        origin: "max_in_flight = 2\nqueue_timeout = \"60s\"",
        most: 2,
        ..NONE
    },
    Wait {
        limit: ", in_flight = 2",
        most: 2,
        ..NONE
    },
    Wait {
        rate: "4r/s",
        ..NONE
    },
    Wait {
        origin: "hold = \"60s\"\nmax_in_flight = 3\nqueue_timeout = \"60s\"",
        most: 3,
        starts_late: true,
        ..NONE
    },
];

const NONE: Wait = Wait {
    origin: "",
    rate: "1000r/s",
    limit: "",
    most: COUNT,
    starts_late: false,
};

/// Starts an origin at this address that answers an upload with its length.
///
/// `peak`: maximum number of simultaneous requests.
fn lengths(address: SocketAddr, peak: &Arc<AtomicUsize>) -> Origin {
    let (running, peak) = (AtomicUsize::new(0), Arc::clone(peak));
    Origin::at(&address.to_string(), move |exchange| {
        peak.fetch_max(running.fetch_add(1, SeqCst) + 1, SeqCst);
        let body = exchange.body();
        running.fetch_sub(1, SeqCst);
        exchange.reply(body?.len().to_string().as_bytes())
    })
}

/// Fails unless a program that is given the URL completes all uploads, however they wait.
fn check(upload: impl Fn(&str) -> Vec<String> + Sync) {
    for wait in WAITS {
        let name = format!("{} {} {}", wait.origin, wait.rate, wait.limit);
        let (address, peak) = (free_address(), Arc::default());
        let early = (!wait.starts_late).then(|| lengths(address, &peak));
        // A body that waits is not late.
        let gateway = gateway(
            "body_timeout = \"5s\"",
            &format!(
                "[origins.app]\nservers = [\"http://{address}\"]\n{}\n\
                 [zones.z]\nkey = \"$remote_addr\"\nrate = \"{}\"\n\
                 [[routes]]\npath = \"= /upload\"\norigin = \"app\"\n\
                 limits = [{{ zone = \"z\", burst = 100{} }}]\n",
                wait.origin, wait.rate, wait.limit
            ),
        );
        let url = format!("https://{}/upload", gateway.address());
        let (received, origin) = thread::scope(|scope| {
            let uploading = scope.spawn(|| upload(&url));
            let origin = early.unwrap_or_else(|| {
                wait_until_all_wait(&gateway);
                lengths(address, &peak)
            });
            (uploading.join().expect("no panic"), origin)
        });
        assert_eq!(received, vec!["200"; COUNT], "{name}");
        assert_eq!(origin.arrivals().len(), COUNT, "{name}");
        let peak = peak.load(SeqCst);
        assert!(peak <= wait.most, "{name}: {peak} at once");
    }
}

fn wait_until_all_wait(gateway: &Gateway) {
    let depth = || {
        let labels = [("origin", "app")];
        gateway.count("drip_origin_queue_depth", &labels)
    };
    eventually("all wait for the origin", || {
        usize::try_from(depth()) == Ok(COUNT)
    });
}

fn run(mut command: Command, url: &str, size: usize) -> Vec<String> {
    printed(command.args([url, &COUNT.to_string(), &size.to_string()]))
}

#[test]
fn node_uploads_all_at_once_however_they_wait() {
    check(|url| {
        let mut command = Command::new("node");
        command.arg(source("streams/parallel.js"));
        run(command, url, SIZE)
    });
}

/// Size of httpx's bodies. With larger ones it stops by itself.
///
/// Only one of its requests reads at a time, so the others do not notice that they may send more.
const SIZE_OF_HTTPX: usize = 60_000;

#[test]
fn httpx_uploads_all_at_once_however_they_wait() {
    check(|url| {
        let mut command = Command::new(python_with(&["httpx[http2]==0.28.1"]));
        command.arg(source("streams/parallel.py"));
        run(command, url, SIZE_OF_HTTPX)
    });
}

#[test]
fn go_uploads_all_at_once_however_they_wait() {
    check(|url| run(Command::new(go("streams/parallel.go")), url, SIZE));
}

#[test]
fn curl_uploads_all_at_once_however_they_wait() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = body(folder.path(), SIZE);
    check(|url| {
        let mut command = Command::new("curl");
        command.args(["--silent", "--insecure", "--http2", "--max-time", "60"]);
        command.args(["--parallel", "--output", "/dev/null", "--header", "Expect:"]);
        command.args([
            "--write-out",
            "%{http_code} %{http_version} %{num_connects}\n",
        ]);
        command.arg("--data-binary");
        command.arg(format!("@{}", file.display()));
        command.arg(format!("{url}?[1-{COUNT}]"));
        let mut received = printed(&mut command);
        received.sort();
        // One of them has opened the connection of all.
        let (last, others) = received.split_last().expect("lines");
        assert_eq!(last, "200 2 1");
        assert!(others.iter().all(|it| it == "200 2 0"), "{others:?}");
        vec!["200".to_owned(); received.len()]
    });
}

#[test]
fn chromium_uploads_all_at_once_however_they_wait() {
    check(|url| {
        let browser = Browser::start(&["--ignore-certificate-errors"]);
        // A page of the gateway itself, so that all others find its connection.
        browser.go(&format!("{url}/none"));
        browser.run(&format!(
            "const body = 'x'.repeat({SIZE});
             const upload = () => fetch('/upload', {{ method: 'POST', body }})
               .then((answer) => answer.status, (error) => error.message);
             Promise.all(Array.from({{ length: {COUNT} }}, upload))
               .then((all) => {{ window.told = all; }});"
        ));
        browser.holds("window.told !== undefined");
        // The browser lists a resource some time after the response.
        let all_are_h2 = format!(
            "const all = performance.getEntriesByType('resource');
             const uploads = all.filter((it) => it.name.endsWith('/upload'));
             return uploads.length === {COUNT}
               && uploads.every((it) => it.nextHopProtocol === 'h2');"
        );
        browser.wait_for("all were of HTTP/2", &all_are_h2);
        let received = browser.run("return window.told");
        let received = received.as_array().expect("a list");
        received.iter().map(ToString::to_string).collect()
    });
}
