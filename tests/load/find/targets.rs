//! The places are searched, or something else holds requests back.

use std::sync::Mutex;
use std::thread;

use serde_json::Value;

use super::{Crowd, command_within, ended, experiment, rate};
use crate::support::operator::json;
use crate::support::{Gateway, MS, Origin, half_alone, now, one_origin};

const SHORT: [&str; 8] = [
    "--step",
    "20%",
    "--min-step",
    "4s",
    "--confirm",
    "6s",
    "--wait",
    "30s",
];

/// An origin with four workers and one queue: a request takes 50 ms of one of them.
fn with_workers() -> Origin {
    let free = Mutex::new([now(); 4]);
    Origin::answering(move |exchange| {
        let end = {
            let mut free = free.lock().expect("no panic");
            let first = free.iter_mut().min().expect("a worker");
            *first = now().max(*first) + 50 * MS;
            *first
        };
        thread::sleep(end.saturating_duration_since(now()));
        exchange.reply(b"ok")
    })
}

fn places(gateway: &Gateway) -> Value {
    json(gateway, "/api/origins")["origins"][0]["gate"]["max_in_flight"]["now"].clone()
}

fn number(level: &Value) -> f64 {
    let level = level.as_str().expect("a level");
    level.trim_end_matches("r/s").parse().expect("a number")
}

#[test]
#[ignore = "minutes: tests/run.sh long"]
fn the_places_of_an_origin_are_found() {
    let _half = half_alone();
    let origin = with_workers();
    let file = "max_in_flight = 3\nqueue_timeout = \"60s\"\nmax_queue = 1000";
    let gateway = Gateway::start(&one_origin(origin.address, "", file));
    let crowd = Crowd::start(&gateway, 40);
    let bounds = ["--from", "6", "--to", "24"];
    let (is_found, text) = ended(command_within(&gateway, &[&bounds[..], &SHORT].concat()));
    assert!(is_found, "{text}");
    let found = experiment(&gateway);
    let outcome = &found["result"];
    assert_eq!(outcome["outcome"], "found", "{text}");
    let level = number(&outcome["level"]);
    // Sixteen at once take 200 ms.
    assert!((11.0..=16.0).contains(&level), "{level}: {text}");
    assert!(text.contains(&format!("max_in_flight = {level}")), "{text}");
    assert_eq!(places(&gateway), 3);
    assert_eq!(crowd.end(), 0, "nobody is refused because of it");
}

#[test]
#[ignore = "minutes: tests/run.sh long"]
fn a_limit_that_is_not_searched_and_holds_requests_back_is_named() {
    let _half = half_alone();
    let origin = Origin::answering(|exchange| {
        thread::sleep(50 * MS);
        exchange.reply(b"ok")
    });
    let file = "rate = \"20r/s\"\nmax_in_flight = 4\nqueue_timeout = \"60s\"\nmax_queue = 1000";
    let gateway = Gateway::start(&one_origin(origin.address, "", file));
    let crowd = Crowd::start(&gateway, 40);
    let steps = ["--min-step", "3s", "--confirm", "3s", "--wait", "5s"];
    let find = |bounds: &[&str]| {
        let (_, text) = ended(command_within(&gateway, &[bounds, &steps].concat()));
        let outcome = experiment(&gateway)["result"].clone();
        assert_eq!(outcome["outcome"], "at_least", "{text}");
        let reason = outcome["reason"].as_str().expect("a reason").to_owned();
        assert!(text.contains(&reason), "{text}");
        (number(&outcome["level"]), reason)
    };
    let (level, reason) = find(&["--from", "400r/s", "--to", "1000r/s"]);
    // Four places of 50 ms let 80r/s through, and less on a busy machine.
    assert!(level > 4.0 && level < 90.0, "{level}");
    assert_eq!(
        reason,
        "max_in_flight = 4 held requests back before the pace did: raise it"
    );
    let (level, reason) = find(&["--from", "10", "--to", "20"]);
    assert!(level < 10.0, "{level}");
    assert_eq!(
        reason,
        "rate = 20r/s held requests back before max_in_flight did: raise it"
    );
    assert_eq!(
        (rate(&gateway), places(&gateway)),
        ("20r/s".into(), 4.into())
    );
    assert_eq!(crowd.end(), 0, "nobody is refused because of it");
}
