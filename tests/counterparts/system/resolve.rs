//! Tests of names with several addresses, each of which is a server.
//!
//! The hosts file is the test's own, in a mount namespace of the program.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;

use rustix::process::getuid;

use crate::support::{Gateway, Origin, Site, assert_contains, drip, eventually};

/// A gateway whose hosts file is the one beside its file.
struct Resolving {
    gateway: Gateway,
    hosts: PathBuf,
}

impl Resolving {
    fn start(hosts: &str, file: &str) -> Self {
        let site = Site::new();
        let path = site.folder().join("hosts");
        fs::write(&path, hosts).expect("a file");
        site.write(file);
        let program = drip();
        let mut command = Command::new("unshare");
        command.arg("--mount");
        if !getuid().is_root() {
            command.arg("--map-root-user");
        }
        command
            .args([
                "sh",
                "-c",
                "mount --bind \"$0\" /etc/hosts && exec \"$1\" -c \"$2\"",
            ])
            .arg(&path)
            .arg(program.get_program())
            .arg(site.file());
        for (name, value) in program.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let gateway = Gateway::run_as(site, command);
        gateway.wait_until_ready();
        Self {
            gateway,
            hosts: path,
        }
    }

    /// Returns the servers in the metrics, with the number of requests of each.
    fn servers(&self) -> Vec<String> {
        let metrics = self.gateway.admin("/metrics").expect("metrics").text();
        let known = metrics
            .lines()
            .filter(|line| line.starts_with("drip_origin_healthy{"));
        let server = |line: &str| {
            Some(
                line.split_once("server=\"")?
                    .1
                    .split_once('"')?
                    .0
                    .to_owned(),
            )
        };
        let mut servers: Vec<String> = known.filter_map(server).collect();
        servers.sort();
        servers
    }
}

/// Starts origins on the same port of these addresses.
fn on_one_port(addresses: &[&str]) -> (u16, Vec<Origin>) {
    let begun = Origin::at(&format!("{}:0", addresses[0]), |exchange| {
        exchange.reply(b"ok")
    });
    let port = begun.address.port();
    let others = addresses[1..].iter().map(|address| {
        Origin::at(&format!("{address}:{port}"), |exchange| {
            exchange.reply(b"ok")
        })
    });
    (port, std::iter::once(begun).chain(others).collect())
}

fn file(port: u16, more: &str) -> String {
    format!(
        "[origins.app]\nservers = [\"http://app.test:{port}\"]\n{more}\n\
         [[routes]]\npath = \"/\"\norigin = \"app\"\n"
    )
}

const EACH: &str = "resolve = \"each\"";

fn counts(origins: &[Origin]) -> Vec<usize> {
    origins.iter().map(|it| it.arrivals().len()).collect()
}

#[test]
fn each_address_of_a_name_is_a_server_and_changes_are_followed() {
    let (port, origins) = on_one_port(&["127.0.0.41", "127.0.0.42", "127.0.0.43"]);
    let hosts = |last: &[u8]| -> String {
        let lines = last.iter().map(|last| format!("127.0.0.{last} app.test\n"));
        lines.collect::<Vec<_>>().concat()
    };
    let it = Resolving::start(&hosts(&[41, 42]), &file(port, EACH));
    let server = |last: u8| format!("http://app.test:{port} (127.0.0.{last})");
    eventually("two servers", || it.servers() == [server(41), server(42)]);
    let ask = |count: usize| {
        for _ in 0..count {
            assert_eq!(it.gateway.fetch("/").status, 200);
        }
    };
    ask(20);
    assert_eq!(counts(&origins), [10, 10, 0], "they take turns");

    fs::write(&it.hosts, hashed(&hosts(&[43, 42]))).expect("a file");
    eventually("the other two", || it.servers() == [server(42), server(43)]);
    ask(20);
    assert_eq!(counts(&origins), [10, 20, 10]);
    let log = it.gateway.log();
    assert_contains!(log, "the addresses of a name changed");

    // Without an answer the last addresses stay.
    fs::write(&it.hosts, "# nobody\n").expect("a file");
    eventually("the lookup fails", || {
        it.gateway.log().contains("does not resolve")
    });
    ask(20);
    assert_eq!(counts(&origins), [10, 30, 20]);
    assert_eq!(it.servers(), [server(42), server(43)]);

    // A reload keeps them, and the settings are shown as they are written.
    it.gateway
        .site
        .write(&file(port, &format!("{EACH}\nconnect_timeout = \"2s\"")));
    eventually("the file is in force", || {
        it.gateway.log().contains("the changed file is in force")
    });
    assert_eq!(it.servers(), [server(42), server(43)]);
    ask(2);
    it.gateway.site.write(&file(port, ""));
    eventually("one server", || {
        it.servers() == [format!("http://app.test:{port}")]
    });
}

/// Returns the same lines with a comment.
fn hashed(lines: &str) -> String {
    format!("# changed\n{lines}")
}

#[test]
fn an_address_that_fails_is_out_as_a_server_is() {
    let (port, origins) = on_one_port(&["127.0.0.44", "127.0.0.45"]);
    let dead: SocketAddr = format!("127.0.0.46:{port}").parse().expect("an address");
    let hosts = format!(
        "127.0.0.44 app.test\n127.0.0.45 app.test\n{} app.test\n",
        dead.ip()
    );
    let more = format!("{EACH}\nmax_fails = 1\nfail_timeout = \"1h\"");
    let it = Resolving::start(&hosts, &file(port, &more));
    eventually("three servers", || it.servers().len() == 3);
    for _ in 0..40 {
        assert_eq!(it.gateway.fetch("/").status, 200);
    }
    assert_eq!(counts(&origins), [20, 20]);
    let server = format!("http://app.test:{port} ({})", dead.ip());
    let healthy = it
        .gateway
        .value("drip_origin_healthy", &[("server", &server)]);
    assert_eq!(healthy, Some(0.0));
}

#[test]
fn permits_of_a_server_apply_to_each_address() {
    let (port, _origins) = on_one_port(&["127.0.0.47", "127.0.0.48"]);
    let hosts = "127.0.0.47 app.test\n127.0.0.48 app.test\n";
    let file = format!(
        "[origins.app]\nservers = [{{ url = \"http://app.test:{port}\", max_in_flight = 3 }}]\n{EACH}\n\
         [[routes]]\npath = \"/\"\norigin = \"app\"\n"
    );
    let it = Resolving::start(hosts, &file);
    let permits = || {
        it.gateway.value(
            "drip_origin_in_flight_limit",
            &[("origin", "app"), ("of", "now")],
        )
    };
    eventually("both have permits", || permits() == Some(6.0));
}

#[test]
fn connections_to_an_address_removed_from_the_name_carry_no_more_requests() {
    let (port, origins) = on_one_port(&["127.0.0.41", "127.0.0.42"]);
    let it = Resolving::start("127.0.0.41 app.test\n", &file(port, ""));
    let mut client = it.gateway.connect();
    assert_eq!(client.try_get("/").expect("an answer"), 200);
    assert_eq!(counts(&origins), [1, 0]);
    fs::write(&it.hosts, "127.0.0.42 app.test\n").expect("a file");
    // The client sends requests all the time, so its connection is never idle for long.
    eventually("the new address gets a request", || {
        assert_eq!(client.try_get("/").expect("an answer"), 200);
        counts(&origins)[1] > 0
    });
    let before = counts(&origins)[0];
    for _ in 0..20 {
        assert_eq!(client.try_get("/").expect("an answer"), 200);
    }
    assert_eq!(counts(&origins)[0], before);
}
