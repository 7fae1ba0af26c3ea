//! Tests of gRPC calls: grpcio on both sides, and the gateway between them.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;

use rustix::process::Signal;
use serde_json::Value;

use crate::programs::python::python_with;
use crate::programs::running::{Running, source};
use crate::support::secure::write_pair;
use crate::support::{Gateway, Site, eventually, free_address};

fn python() -> PathBuf {
    python_with(&["grpcio==1.71.0"])
}

fn script(name: &str) -> PathBuf {
    source("grpc").join(name)
}

/// A gRPC server.
struct Echo {
    process: Running,
    address: SocketAddr,
    /// Arrival of each call, in seconds.
    calls: Arc<Mutex<Vec<f64>>>,
}

impl Echo {
    fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts the server with a certificate and its key.
    fn start_with(pair: &[PathBuf]) -> Self {
        let address = free_address();
        let mut command = Command::new(python());
        command
            .arg(script("origin.py"))
            .arg(address.to_string())
            .args(pair);
        let (process, first, lines) = Running::printing(&mut command);
        assert_eq!(first, "ready");
        let calls = Arc::<Mutex<Vec<f64>>>::default();
        let to_note = Arc::clone(&calls);
        thread::spawn(move || {
            for line in lines {
                let time = line.strip_prefix("call ").expect("a call");
                let time = time.parse().expect("a time");
                to_note.lock().expect("no panic").push(time);
            }
        });
        Self {
            process,
            address,
            calls,
        }
    }

    fn count(&self) -> usize {
        self.calls.lock().expect("no panic").len()
    }

    /// Checks that calls arrived at this interval on average, in seconds.
    ///
    /// On a busy machine the origin records some of them late.
    fn assert_interval(&self, interval: f64) {
        let calls = self.calls.lock().expect("no panic");
        let [first, .., last] = calls[..] else {
            panic!("{calls:?}")
        };
        let mean = (last - first) / f64::from(u32::try_from(calls.len() - 1).expect("a number"));
        let is_paced = mean > 0.85 * interval && mean < 1.5 * interval;
        assert!(is_paced, "{mean}: {calls:?}");
    }
}

/// Runs the client, which must succeed, and returns its output.
fn call(gateway: SocketAddr, arguments: &[&str]) -> Vec<Value> {
    let output = Command::new(python())
        .arg(script("client.py"))
        .arg(gateway.to_string())
        .args(arguments)
        .output()
        .expect("python");
    let printed = String::from_utf8_lossy(&output.stdout);
    let received = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}\n{received}");
    let lines = printed.lines();
    lines
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

/// Checks that the burst passed, plus the calls for which a slot was free meanwhile.
fn assert_burst(outcomes: &[Value], burst: u32, rate: f64) {
    let (passed, refused): (Vec<_>, Vec<_>) = outcomes.iter().partition(|it| it["code"] == "OK");
    let took = refused
        .iter()
        .map(|it| it["took"].as_f64().expect("seconds"));
    let arrivals = took.reduce(f64::max).expect("some are refused");
    let passed = f64::from(u32::try_from(passed.len()).expect("a number"));
    let most = f64::from(burst) + 2.0 + arrivals * rate;
    let is_within_rate = passed > f64::from(burst) && passed <= most;
    assert!(
        is_within_rate,
        "{passed} passed of at most {most}: {outcomes:?}"
    );
}

/// Returns how many of the outcomes have this status.
fn count(outcomes: &[Value], code: &str) -> usize {
    let with_code = outcomes.iter().filter(|outcome| outcome["code"] == code);
    with_code.count()
}

/// Returns the rest of a file: an origin with `more`, and a route with `limits`.
fn file(origins: &[&Echo], more: &str, limits: &str) -> String {
    let servers = origins.iter().map(|it| format!("\"h2c://{}\"", it.address));
    let servers = servers.collect::<Vec<_>>().join(", ");
    format!(
        "[origins.app]\nservers = [{servers}]\n{more}\n[zones.z]\nkey = \"$remote_addr\"\nrate = \"10r/s\"\n\
         [[routes]]\npath = \"/\"\norigin = \"app\"\nlimits = [{limits}]\n"
    )
}

fn zone(rate: &str, burst: u32) -> (String, String) {
    let limits = format!("{{ zone = \"z\", burst = {burst} }}");
    (format!("rate = \"{rate}\""), limits)
}

/// Returns the rest of a file with a zone of this rate and burst.
fn limited(origin: &Echo, rate: &str, burst: u32) -> String {
    let (rate, limits) = zone(rate, burst);
    file(&[origin], "", &limits).replace("rate = \"10r/s\"", &rate)
}

#[test]
fn all_four_kinds_of_calls_pass() {
    let origin = Echo::start();
    let gateway = Gateway::start(&limited(&origin, "1000r/s", 100));
    assert_eq!(count(&call(gateway.address(), &["kinds"]), "OK"), 1);
}

#[test]
fn over_tls_both_sides_agree_on_http_2() {
    let site = Site::new();
    write_pair(site.folder(), "a", &["a.test", "localhost"]);
    let [cert, key] = ["a.pem", "a.key"].map(|name| site.folder().join(name));
    let origin = Echo::start_with(&[cert.clone(), key]);
    let server = format!("https://localhost:{}", origin.address.port());
    let rest = file(&[&origin], "", "").replace(&format!("h2c://{}", origin.address), &server);
    site.write(&format!(
        "[server.tls]\ncert = \"a.pem\"\nkey = \"a.key\"\n{rest}"
    ));
    let mut command = crate::support::drip();
    command
        .env("SSL_CERT_FILE", &cert)
        .arg("-c")
        .arg(site.file());
    let gateway = Gateway::run_as(site, command);
    gateway.wait_until_ready();
    let root = cert.to_str().expect("text");
    let outcomes = call(gateway.address(), &["--root", root, "kinds"]);
    assert_eq!(count(&outcomes, "OK"), 1);
}

/// Returns the milliseconds after which a refused call may be retried.
fn pushback(refusal: &Value) -> u64 {
    let received = refusal["pushback"].as_str().expect("text");
    received.parse().expect("ms")
}

#[test]
fn calls_are_paced_in_their_zone_and_rejected_ones_get_a_retry_time() {
    let origin = Echo::start();
    let (_, limits) = zone("10r/s", 20);
    let file = file(&[&origin], "", &limits);
    let gateway = Gateway::start(&format!("hold_streams = false\n{file}"));
    let outcomes = call(gateway.address(), &["many", "60", "30"]);
    let (passed, refused) = (
        count(&outcomes, "OK"),
        count(&outcomes, "RESOURCE_EXHAUSTED"),
    );
    assert_eq!(passed + refused, 60, "{outcomes:?}");
    assert_burst(&outcomes, 20, 10.0);
    for refusal in outcomes.iter().filter(|it| it["code"] != "OK") {
        assert_eq!(refusal["details"], "Too many requests");
        assert!((1..=100).contains(&pushback(refusal)), "{refusal}");
    }
    origin.assert_interval(0.1);
}

#[test]
fn the_gate_paces_calls_and_an_origin_that_is_away_is_unavailable() {
    let origin = Echo::start();
    let more = "rate = \"20r/s\"\nmax_queue = 30\nqueue_timeout = \"30s\"";
    let gateway = Gateway::start(&file(&[&origin], more, ""));
    let outcomes = call(gateway.address(), &["many", "60", "30"]);
    let all = count(&outcomes, "OK") + count(&outcomes, "UNAVAILABLE");
    assert_eq!(all, 60, "{outcomes:?}");
    assert_burst(&outcomes, 30, 20.0);
    // A slot is free in 50 ms, and all refused calls would be retried for it.
    for refusal in outcomes.iter().filter(|it| it["code"] != "OK") {
        assert!(pushback(refusal) >= 1000, "{refusal}");
    }
    origin.assert_interval(0.05);
    drop(origin);
    let outcomes = call(gateway.address(), &["many", "1", "30"]);
    assert_eq!(outcomes[0]["code"], "UNAVAILABLE");
    assert_eq!(outcomes[0]["details"], "Bad Gateway");
}

#[test]
fn a_call_whose_deadline_comes_before_its_turn_is_refused_at_once() {
    let origin = Echo::start();
    let gateway = Gateway::start(&limited(&origin, "1r/s", 40));
    let outcomes = call(gateway.address(), &["many", "12", "4.5"]);
    let passed = count(&outcomes, "OK");
    assert!((4..=5).contains(&passed), "{outcomes:?}");
    let refused = outcomes
        .iter()
        .filter(|it| it["code"] == "RESOURCE_EXHAUSTED");
    let took: Vec<f64> = refused
        .map(|it| it["took"].as_f64().expect("a number"))
        .collect();
    assert_eq!(took.len(), 12 - passed, "{outcomes:?}");
    assert!(took.iter().all(|took| *took < 2.0), "{took:?}");
    assert_eq!(origin.count(), passed);
}

#[test]
fn a_call_may_be_silent_for_longer_than_a_body() {
    let origin = Echo::start();
    let more = "body_timeout = \"500ms\"\nresponse_timeout = \"500ms\"";
    let rest = file(&[&origin], more, "");
    let gateway = Gateway::start(&format!("body_timeout = \"500ms\"\n{rest}"));
    let outcomes = call(gateway.address(), &["idle", "1", "2"]);
    assert_eq!(count(&outcomes, "OK"), 1);
}

#[test]
fn no_call_is_lost_while_one_of_two_servers_stops_gracefully() {
    let (leaving, staying) = (Echo::start(), Echo::start());
    let gateway = Gateway::start(&file(&[&leaving, &staying], "", ""));
    let address = gateway.address();
    let calls = thread::spawn(move || call(address, &["in_turn", "400", "30"]));
    eventually("both have calls", || leaving.count() > 20);
    leaving.process.signal(Signal::TERM);
    let outcomes = calls.join().expect("no panic");
    assert_eq!(count(&outcomes, "OK"), 400, "{outcomes:?}");
    assert!(staying.count() > 100);
}

#[test]
fn a_health_check_asks_over_http_2() {
    // A gRPC server answers a GET with its own HTTP status, so the check sees that it supports
    // HTTP/2.
    let origin = Echo::start();
    let more = "health = { path = \"/healthz\", interval = \"100ms\" }";
    let gateway = Gateway::start(&file(&[&origin], more, ""));
    eventually("the check has an answer", || {
        let origins = gateway.admin("/api/origins").expect("an admin port").text();
        origins.contains("it answered 4") || origins.contains("it answered 2")
    });
}
