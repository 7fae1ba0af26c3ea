//! Incidents that no other figure shows: each was once told as nothing, or as the fault of another.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::Value;

use super::{SEEN_WITHIN, text};
use crate::gateway::operator::json;
use crate::support::{Client, Gateway, Origin, eventually, now};

/// Waits for a headline of this cause that says all of this.
fn told(gateway: &Gateway, cause: &str, says: &[&str]) -> Value {
    let deadline = now() + SEEN_WITHIN;
    loop {
        let headline = json(gateway, "/api/headline")["headline"].clone();
        let has = |part: &&str| text(&headline).contains(*part);
        if headline["cause"] == cause && says.iter().all(has) {
            return headline;
        }
        assert!(now() < deadline, "{cause} with {says:?}: {headline:#}");
        thread::sleep(Duration::from_millis(200));
    }
}

/// Waits until the headline has another cause.
fn over(gateway: &Gateway, cause: &str) {
    eventually(&format!("{cause} is over"), || {
        json(gateway, "/api/headline")["headline"]["cause"] != cause
    });
}

fn file(origin: &Origin, zone: &str, limit: &str) -> String {
    format!(
        "[origins.app]\nservers = [\"http://{}\"]\n[zones.per_key]\n{zone}\n\
         [[routes]]\npath = \"/\"\norigin = \"app\"\nlimits = [{{ zone = \"per_key\", {limit} }}]\n",
        origin.address
    )
}

/// Sends a request with these fields each few milliseconds until it is dropped.
struct Sender {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Sender {
    fn start(to: SocketAddr, fields: impl Fn(usize) -> String + Send + 'static) -> Self {
        let stop = Arc::<AtomicBool>::default();
        let to_stop = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let mut answer = [0; 4096];
            for nth in 0.. {
                if to_stop.load(Ordering::SeqCst) {
                    return;
                }
                if let Ok(mut stream) = TcpStream::connect(to) {
                    let fields = fields(nth);
                    let head = format!("GET / HTTP/1.1\r\nHost: test\r\n{fields}\r\n");
                    let _timeout = stream.set_read_timeout(Some(Duration::from_secs(5)));
                    let _sent = stream.write_all(head.as_bytes());
                    let _read = stream.read(&mut answer);
                }
                thread::sleep(Duration::from_millis(10));
            }
        });
        Self {
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ended = self.thread.take().map(JoinHandle::join);
    }
}

#[test]
fn all_connections_in_use_is_the_first_thing_told() {
    const MAX: usize = 50;
    const MORE: usize = 30;
    let origin = Origin::start();
    let gateway = Gateway::start(&format!(
        "max_connections = {MAX}\nheader_timeout = \"120s\"\n{}",
        file(
            &origin,
            "key = \"$remote_addr\"\nrate = \"1000r/s\"",
            "burst = 9"
        )
    ));
    let connected = |count| {
        let metrics = gateway.metrics();
        metrics.count("drip_connections", &[]) == count
            && metrics.count("drip_max_connections", &[]) == 50
    };
    let idle = || Client::connect(gateway.address());
    let first: Vec<_> = (0..MAX).map(|_| idle()).collect();
    eventually("all are connected", || connected(50));
    let others: Vec<_> = (0..MORE).map(|_| idle()).collect();
    let headline = told(&gateway, "connections_full", &["(30 now)"]);
    let title = "50 of 50 connections are in use; new clients wait in the kernel (30 now)";
    assert_eq!(headline["title"], title);
    let line = gateway.wait_for_line("all client connections are in use");
    for part in [" WARN ", "max_connections=50", "waiting=30"] {
        assert!(line.contains(part), "{line}");
    }
    drop((first, others));
    over(&gateway, "connections_full");
    eventually("the metric says so", || connected(0));
    gateway.wait_for_line("client connections are free again");
    let log = gateway.log();
    assert_eq!(log.matches("all client connections are in use").count(), 1);
}

#[test]
fn a_key_that_no_client_sends_is_told_and_counted() {
    let origin = Origin::start();
    let zone = "key = \"$http_x_apikey\"\nrate = \"1r/s\"";
    let gateway = Gateway::start(&file(&origin, zone, "burst = 2, nodelay = true"));
    let _sender = Sender::start(gateway.address(), |_| "X-API-Key: k\r\n".to_owned());
    let headline = told(
        &gateway,
        "no_key",
        &["have no $http_x_apikey", "All requests on /"],
    );
    assert_eq!(headline["about"], "per_key");
    assert!(text(&headline).contains("per_key limits none of them"));
    let labels = [("zone", "per_key"), ("status", "no_key")];
    let metrics = gateway.metrics();
    assert!(metrics.count("drip_zone_requests_total", &labels) > 20);
    // Corrected, the limit limits.
    let corrected = zone.replace("apikey", "api_key");
    let text = file(&origin, &corrected, "burst = 2, nodelay = true");
    gateway.site.write(&text);
    told(&gateway, "rejecting", &["All requests share one key: k"]);
}

#[test]
fn clients_that_are_exempt_have_no_key_on_purpose() {
    let origin = Origin::start();
    let zone = "key = \"$http_x_apikey\"\nrate = \"1r/s\"\nexempt = [\"127.0.0.1\"]";
    let gateway = Gateway::start(&file(&origin, zone, "burst = 2"));
    let _sender = Sender::start(gateway.address(), |_| String::new());
    let passed = || {
        let labels = [("route", "/"), ("code", "200")];
        gateway.metrics().count("drip_requests_total", &labels) > 150
    };
    eventually("traffic of some seconds", passed);
    told(&gateway, "fine", &[]);
    let labels = [("zone", "per_key"), ("status", "no_key")];
    let metrics = gateway.metrics();
    assert_eq!(metrics.count("drip_zone_requests_total", &labels), 0);
}

#[test]
fn a_balancer_that_is_not_trusted_is_named_and_no_client_is_blamed() {
    let origin = Origin::start();
    let zone = "key = \"$remote_addr\"\nrate = \"5r/s\"";
    let gateway = Gateway::start(&file(&origin, zone, "burst = 2, nodelay = true"));
    let clients = |nth| format!("X-Forwarded-For: 192.0.2.{}\r\n", nth % 40);
    let sender = Sender::start(gateway.address(), clients);
    let says = [
        "counts all clients behind 127.0.0.1 as one",
        "`server.trusted_proxies`",
    ];
    let headline = told(&gateway, "untrusted_proxy", &says);
    assert!(!text(&headline).contains("One client"), "{headline:#}");
    let proxied = || {
        let metrics = gateway.metrics();
        metrics.count("drip_zone_untrusted_proxy", &[("zone", "per_key")])
    };
    assert_eq!(proxied(), 1);
    // Trusted, each of its clients has a limit of its own.
    let trusting = "trusted_proxies = [\"127.0.0.1\"]\n";
    let text = file(&origin, zone, "burst = 2, nodelay = true");
    gateway.site.write(&format!("{trusting}{text}"));
    told(&gateway, "fine", &[]);
    assert_eq!(proxied(), 0);
    drop(sender);
}

#[test]
fn a_constant_key_is_told_as_one_limit_for_all() {
    let origin = Origin::start();
    let zone = "key = \"everyone\"\nrate = \"5r/s\"";
    let gateway = Gateway::start(&file(&origin, zone, "burst = 2, nodelay = true"));
    let _sender = Sender::start(gateway.address(), |_| String::new());
    let says = [
        "All requests share one key: everyone",
        "the same for all clients",
    ];
    let headline = told(&gateway, "rejecting", &says);
    assert_eq!(headline["severity"], "bad");
    assert!(!text(&headline).contains("not affected"), "{headline:#}");
}

#[test]
fn an_access_log_that_may_not_grow_is_told_while_requests_are_served() {
    let origin = Origin::start();
    let rest = file(
        &origin,
        "key = \"$remote_addr\"\nrate = \"1000r/s\"",
        "burst = 9",
    );
    let gateway = Gateway::start(&format!("{rest}[log]\naccess = \"access.log\"\n"));
    let id = i32::try_from(gateway.id()).ok();
    let id = id.and_then(Pid::from_raw);
    let limit = Rlimit {
        current: Some(2_000),
        maximum: Some(1 << 30),
    };
    prlimit(id, Resource::Fsize, limit).expect("a limit");
    let _sender = Sender::start(gateway.address(), |_| String::new());
    let says = ["cannot be written", "File too large", "`ulimit -f`"];
    told(&gateway, "log_lost", &says);
    let served = || {
        let labels = [("route", "/"), ("code", "200")];
        gateway.metrics().count("drip_requests_total", &labels)
    };
    let before = served();
    eventually("requests are served", || served() > before + 20);
    let more = Rlimit {
        current: Some(1 << 30),
        ..limit
    };
    prlimit(id, Resource::Fsize, more).expect("a limit");
    over(&gateway, "log_lost");
}
