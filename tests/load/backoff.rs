//! Tests of a gate that backs off in front of a failing or a slow origin.

use std::thread;
use std::time::Duration;

use crate::support::{Gateway, MS, Origin, eventually, now, one_origin, side_by_side};

const SECOND: Duration = Duration::from_secs(1);

fn gated(origin: &Origin, gate: &str) -> String {
    one_origin(
        origin.address,
        "workers = 2",
        &format!("max_queue = 30\n{gate}"),
    )
}

fn rate_now(gateway: &Gateway) -> f64 {
    let labels = [("origin", "app"), ("of", "now")];
    let rate = gateway.value("drip_origin_rate", &labels);
    rate.expect("the gate has a rate")
}

fn backoffs(gateway: &Gateway, reason: &str) -> i64 {
    let labels = [("origin", "app"), ("reason", reason)];
    gateway.count("drip_origin_backoffs_total", &labels)
}

/// Starts an origin that answers with this status, and a gateway whose gate backs off.
fn troubled(head: &'static str, backoff: &str) -> (Origin, Gateway) {
    let origin = Origin::answering(move |exchange| exchange.send(head.as_bytes()));
    let gate = format!("rate = \"200r/s\"\n[origins.app.backoff]\n{backoff}");
    let gateway = Gateway::start(&gated(&origin, &gate));
    (origin, gateway)
}

fn ask_for(gateway: &Gateway, span: Duration) {
    let end = now() + span;
    while now() < end {
        gateway.fetch("/");
        thread::sleep(20 * MS);
    }
}

const SHED: &str = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n";

#[test]
fn a_shadow_shows_and_counts_and_slows_nothing_down() {
    let (origin, gateway) = troubled(SHED, "mode = \"shadow\"\nfloor = \"1%\"");
    eventually("it is cut", || {
        ask_for(&gateway, SECOND);
        backoffs(&gateway, "trouble") > 2
    });
    assert!(rate_now(&gateway) < 60.0);
    let before = origin.arrivals().len();
    let mut clients: Vec<_> = (0..100).map(|_| gateway.connect()).collect();
    let began = now();
    for client in &mut clients {
        client.get("/");
    }
    for client in &mut clients {
        client.answer();
    }
    // A hundred requests at 200 per second take half a second; below 60 per second, more than 1.6
    // s.
    let took = began.elapsed();
    assert!(took < 1500 * MS, "{took:?}");
    assert!(origin.arrivals().len() > before + 30);
}

#[test]
fn the_floor_holds_and_a_reload_keeps_the_share() {
    let (origin, gateway) = troubled(SHED, "floor = \"25%\"");
    eventually("it is at the floor", || {
        ask_for(&gateway, SECOND);
        (rate_now(&gateway) - 50.0).abs() < 0.1
    });
    let gate = "rate = \"100r/s\"\n[origins.app.backoff]\nfloor = \"25%\"";
    gateway.site.write(&gated(&origin, gate));
    eventually("the file is in force", || {
        let metrics = gateway.metrics();
        metrics.value("drip_origin_rate", &[("origin", "app"), ("of", "file")]) == Some(100.0)
    });
    let rate = rate_now(&gateway);
    assert!((25.0..40.0).contains(&rate), "{rate}");
    gateway.site.write(&gated(&origin, "rate = \"100r/s\""));
    eventually("nothing is lowered any more", || {
        (rate_now(&gateway) - 100.0).abs() < 0.1
    });
}

#[test]
fn an_origin_that_asks_for_a_pause_gets_it() {
    const HEAD: &str =
        "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 2\r\nContent-Length: 0\r\n\r\n";
    let (origin, gateway) = troubled(HEAD, "");
    eventually("it pauses", || {
        ask_for(&gateway, 300 * MS);
        backoffs(&gateway, "retry_after") > 0
    });
    // Requests of a client that waits until the pause is over.
    for _ in 0..20 {
        gateway.fetch("/");
    }
    let moments = origin.moments("/");
    let longest = moments.windows(2).map(|two| two[1] - two[0]).max();
    assert!(longest > Some(1900 * MS), "{longest:?}");
    let labels = [("origin", "app"), ("by", "pause")];
    let paused = gateway.value("drip_origin_blocked_seconds_total", &labels);
    assert!(paused > Some(1.0), "{paused:?}");
}

/// Fields of a gate that the keys of a zone share. A request does not wait for the end of a pause.
const SHARED: &str = "rate = \"200r/s\"\nshare = \"key\"\nqueue_timeout = \"1s\"\n\
    [zones.key]\nkey = \"$arg_key\"\nrate = \"none\"\n[origins.app.backoff]\n";

/// Sends requests of these keys all the time. Returns the number of other responses than 200.
fn ask_as(gateway: &Gateway, keys: &[&str], span: Duration) -> Vec<usize> {
    let ask = |key: &str| {
        let (end, mut bad) = (now() + span, 0);
        while now() < end {
            let status = gateway.fetch(&format!("/?key={key}")).status;
            bad += usize::from(status != 200);
            thread::sleep(10 * MS);
        }
        bad
    };
    side_by_side(keys, |key| ask(key))
}

/// Starts an origin that answers keys that begin with `bad` with 503 and a long pause.
fn failing_for_bad() -> Origin {
    const HEAD: &str =
        "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 30\r\nContent-Length: 0\r\n\r\n";
    Origin::answering(|exchange| {
        if exchange.target().contains("bad") {
            exchange.send(HEAD.as_bytes())
        } else {
            exchange.reply(b"ok")
        }
    })
}

#[test]
fn what_one_key_provokes_slows_nobody_down() {
    let origin = failing_for_bad();
    let gateway = Gateway::start(&gated(&origin, SHARED));
    let keys = ["a", "bad", "b", "bad", "bad", "bad"];
    let refused = ask_as(&gateway, &keys, 3 * SECOND);
    assert_eq!((refused[0], refused[2]), (0, 0), "{refused:?}");
    assert!(refused[1] > 10, "{refused:?}");
    let lowered = |reason| backoffs(&gateway, reason);
    assert_eq!((lowered("trouble"), lowered("retry_after")), (0, 0));
    assert!((rate_now(&gateway) - 200.0).abs() < 0.1);
}

#[test]
fn failures_of_two_keys_are_the_origins_and_so_are_those_of_the_only_key() {
    let origin = failing_for_bad();
    side_by_side([&["bad1", "bad2", "a"][..], &["bad"]], |keys| {
        let gateway = Gateway::start(&gated(&origin, SHARED));
        eventually("it is cut and pauses", || {
            ask_as(&gateway, keys, SECOND);
            backoffs(&gateway, "trouble") > 0 && backoffs(&gateway, "retry_after") > 0
        });
        // A pause for one key alone ends when another key arrives.
        let is_for_all = keys.len() > 1;
        let answer = gateway.fetch("/?key=b");
        assert_eq!(answer.status, if is_for_all { 503 } else { 200 });
        if is_for_all {
            let left = answer.number("retry-after");
            assert!(left > 10, "most of the 30 s are left");
        }
    });
}
