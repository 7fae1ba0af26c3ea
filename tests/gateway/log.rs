//! Tests of the log of a running gateway: content, frequency and level of its lines.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{
    Gateway, Origin, PATIENCE, assert_contains, eventually, exchange, now, one_zone, servers,
    side_by_side, start_drip, start_limited, urls, zone,
};

/// Long enough for several lines.
const FLOOD: Duration = Duration::from_secs(3);

/// Returns the number in the field `name` of a line.
fn number(line: &str, name: &str) -> u64 {
    let (_, rest) = line
        .split_once(&format!(" {name}="))
        .unwrap_or_else(|| panic!("no {name} in {line}"));
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next();
    digits.unwrap_or_default().parse().expect("a number")
}

fn lines_with(gateway: &Gateway, part: &str) -> Vec<String> {
    let lines = gateway.log_lines().into_iter().map(|(_, line)| line);
    lines.filter(|line| line.contains(part)).collect()
}

/// Number of rejections after which a flood may end.
const MANY: u64 = 600;

/// Sends requests from eight clients during [`FLOOD`]. Returns how many were rejected.
///
/// On a busy machine they continue until there are [`MANY`] rejections, for at most [`PATIENCE`].
fn flood(gateway: &Gateway, target: &str) -> u64 {
    let began = now();
    let rejected = AtomicU64::new(0);
    let client = || {
        let mut client = gateway.connect();
        let is_enough = || rejected.load(Ordering::Relaxed) >= MANY;
        while began.elapsed() < FLOOD || !is_enough() && began.elapsed() < PATIENCE {
            client.get(target);
            let is_rejected = client.answer().status == 429;
            rejected.fetch_add(u64::from(is_rejected), Ordering::Relaxed);
        }
    };
    side_by_side(0..8, |_| client());
    rejected.into_inner()
}

#[test]
fn limiting_is_one_line_at_once_and_then_one_a_minute_with_the_number_of_rejections() {
    let (_origin, mut gateway) = start_limited("20r/s", "burst = 2");
    let rejected = flood(&gateway, "/?key=a");
    assert!(rejected > 500, "{rejected} is no flood");
    assert!(gateway.zone_requests("z", "delayed") > 10);
    let before = lines_with(&gateway, "limiting requests");
    // A flood of a minute, on a very slow machine, has a second line.
    assert!((1..=2).contains(&before.len()), "{before:#?}");
    assert_eq!(number(&before[0], "count"), 1);
    gateway.signal(Signal::TERM);
    assert!(gateway.wait(PATIENCE).success());
    gateway.whole_log();
    let lines = lines_with(&gateway, "limiting requests");
    assert_eq!(lines.len(), before.len() + 1, "{lines:#?}");
    let counts = lines.iter().map(|line| number(line, "count"));
    assert_eq!(counts.sum::<u64>(), rejected, "each rejection is in a line");
    for line in &lines {
        let of_key = " key=\"a\" reason=\"burst\" route=\"/\" status=\"rejected\" excess=";
        assert_contains!(line, " INFO ", "zone=\"z\" count=", of_key);
    }
    for (_, line) in gateway.log_lines() {
        let is_loud = line.contains(" WARN ") || line.contains(" ERROR ");
        // The headline has its own line.
        let is_loud = is_loud && !line.contains(" began: ");
        assert!(!is_loud && !line.contains("delaying"), "{line}");
    }
}

#[test]
fn a_dry_run_says_what_it_would_reject_and_why() {
    let origin = Origin::start();
    let limits = "limits = [{ zone = \"z\", burst = 9 }]\nmax_wait = \"1s\"\ndry_run = true";
    let gateway = start_drip(&origin, &zone("z", "$arg_a", "1r/m"), &[("/", limits)]);
    gateway.check_each(2, "/?a=1", 200);
    let line = gateway.wait_for_line("limiting requests");
    let who = "key=\"1\" reason=\"max_wait\" route=\"/\" status=\"rejected_dry_run\"";
    assert_contains!(line, " INFO ", who);
}

#[test]
fn the_gate_of_an_origin_says_whom_it_rejects_and_why() {
    let origin = Origin::start();
    let rest = one_zone(&origin, "1000r/s", "burst = 9");
    for (queue, target, key) in [
        (
            "share = \"z\"\nqueue = 1",
            "/?key=a",
            "count=1 key=\"a\" reason=\"queue\" route=\"/\"",
        ),
        ("share = \"z\"\nqueue = 1", "/", "count=1 key=\"\" reason="),
        ("max_queue = 1", "/?key=a", "count=1 reason="),
    ] {
        let gate = format!("[origins.app]\nrate = \"1r/m\"\nqueue_timeout = \"5m\"\n{queue}\n");
        let gateway = Gateway::start(&rest.replacen("[origins.app]\n", &gate, 1));
        assert_eq!(gateway.fetch(target).status, 200);
        let _waiting = gateway.ask(target);
        gateway.wait_at_gate(1);
        assert!(gateway.fetch(target).status > 400);
        let line = gateway.wait_for_line("the origin's gate rejects requests");
        let who = format!("origin=\"app\" {key}");
        assert_contains!(line, " INFO ", &who);
    }
}

#[test]
fn a_key_is_escaped_once() {
    let origin = Origin::start();
    let key = b"a\"b\\c count=7 \xc2\x9b";
    for format in ["text", "json"] {
        let zones = zone("z", "$http_x_key", "1r/m") + &format!("[log]\nformat = \"{format}\"\n");
        let limits = "limits = [{ zone = \"z\" }]";
        let gateway = start_drip(&origin, &zones, &[("/", limits)]);
        let head = b"GET / HTTP/1.1\r\nHost: a\r\nX-Key: ";
        let request = [head, &key[..], b"\r\n\r\n"].concat();
        for status in [200, 429] {
            assert_eq!(exchange(gateway.address(), &request).status, status);
        }
        let line = gateway.wait_for_line("limiting requests");
        let escaped = r"a\x22b\\c count=7 \xC2\x9B";
        if format == "text" {
            let key = format!(" key=\"{escaped}\" reason=");
            assert_contains!(line, &key);
        } else {
            let line: Value = serde_json::from_str(&line).expect("JSON");
            assert_eq!((&line["key"], &line["count"]), (&escaped.into(), &1.into()));
        }
    }
}

/// Starts a server that answers every second request well and the others with 503.
///
/// Also returns the number of requests.
fn flapping_server() -> (SocketAddr, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let asked = Arc::<AtomicU64>::default();
    let to_count = Arc::clone(&asked);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            let nth = to_count.fetch_add(1, Ordering::SeqCst);
            let _head = stream.read(&mut [0; 4096]);
            let status = if nth % 2 == 1 { 200 } else { 503 };
            let fields = "Content-Length: 0\r\nConnection: close\r\n\r\n";
            // The gateway may have disconnected.
            let _sent = stream.write_all(format!("HTTP/1.1 {status} x\r\n{fields}").as_bytes());
        }
    });
    (address, asked)
}

#[test]
fn a_server_that_comes_and_goes_has_few_lines_that_count_its_changes() {
    let steady = Origin::start();
    let (address, asked) = flapping_server();
    let fields = "max_fails = 1\nfail_timeout = \"1ms\"\nfail_on = [\"503\"]";
    let gateway = Gateway::start(&servers(&urls(&[address, steady.address]), fields));
    let began = now();
    eventually("it comes and goes many times", || {
        let _answer = gateway.fetch("/");
        asked.load(Ordering::SeqCst) >= 60
    });
    // Each failure takes the server out, and each good response brings it back.
    let changes = asked.load(Ordering::SeqCst);
    let lines = || {
        [
            lines_with(&gateway, "out of use"),
            lines_with(&gateway, "answers again"),
        ]
        .concat()
    };
    let received = || {
        lines()
            .iter()
            .map(|line| number(line, "changes"))
            .sum::<u64>()
    };
    eventually("each change is in a line", || received() == changes);
    let seconds = began.elapsed().as_secs();
    let lines = lines();
    let are_few = lines.len() as u64 <= seconds + 2;
    assert!(are_few, "{seconds} seconds: {lines:#?}");
}
