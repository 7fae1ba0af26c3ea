use std::path::Path;

use super::gate::*;
use crate::config::{Origin, Settings, parse};
use crate::status::views::{FileAndNow, GateReplayed, GateSample, GateWhatIf, OriginSample, Plain};

/// With more lines for the origin and for its route.
fn settings(more: &str, route: &str) -> Settings {
    let text = format!(
        "[origins.app]\nservers = [\"http://127.0.0.1:1\"]\nrate = \"10r/s\"\n{more}\n[[routes]]\npath = \"/\"\norigin = \"app\"\n{route}\n"
    );
    parse(&text, Path::new("gateway.toml"), false).expect("a file without errors")
}

/// Samples of seconds in each of which so many came, left, wait afterwards and are at the origin.
fn samples(all: &[(u64, u64, u64)]) -> Vec<(f64, OriginSample)> {
    let mut departures = 0;
    let samples = (0_u32..).zip(all);
    let samples = samples.map(|(nth, (left, depth, in_flight))| {
        departures += left;
        let gate = GateSample {
            depth: *depth,
            departures: Some(departures),
            rate: FileAndNow {
                file: Some(10.0),
                now: Some(10.0),
            },
            ..GateSample::default()
        };
        let sample = OriginSample {
            in_flight: *in_flight,
            gate: Some(gate),
            ..OriginSample::default()
        };
        (f64::from(nth), sample)
    });
    samples.collect()
}

fn what_if(more: &str, all: &[(u64, u64, u64)], wanted: OtherGate) -> GateWhatIf {
    what_if_of(&settings(more, ""), all, wanted)
}

fn what_if_of(settings: &Settings, all: &[(u64, u64, u64)], wanted: OtherGate) -> GateWhatIf {
    let origin: &Origin = &settings.origins[0];
    let (waiting, seconds) = seconds(&samples(all));
    replay_gate((waiting, &seconds), settings, origin, wanted)
}

fn of_rate(text: &str) -> OtherGate {
    OtherGate {
        rate: Some(text.parse().expect("a rate")),
        ..OtherGate::default()
    }
}

/// Twenty come in each of five seconds, and none afterwards.
const CROWD: [(u64, u64, u64); 11] = [
    (0, 0, 0),
    (10, 10, 1),
    (10, 20, 1),
    (10, 30, 1),
    (10, 40, 1),
    (10, 50, 1),
    (10, 40, 1),
    (10, 30, 1),
    (10, 20, 1),
    (10, 10, 1),
    (10, 0, 1),
];

fn near(found: Option<f64>, wanted: f64) -> bool {
    found.is_some_and(|it| (it - wanted).abs() <= 0.3)
}

#[test]
fn as_it_was_is_what_happened() {
    let told = what_if("queue_timeout = \"1m\"", &CROWD, of_rate("20r/s"));
    let GateReplayed {
        departed,
        rejected,
        waiting,
        deepest,
        most_in_a_second,
        wait_p50,
        wait_max,
        ..
    } = told.now;
    assert_eq!(
        (told.arrivals, departed, rejected, waiting),
        (100, 100, 0, 0)
    );
    assert_eq!((deepest, most_in_a_second), (50, 10));
    // The last one comes at 5 s and leaves at 10 s.
    assert!(near(wait_p50, 2.5) && near(wait_max, 5.0), "{told:?}");
    assert_eq!(told.happened.requests, 100);
    assert_eq!(
        (told.now.rate.as_str(), told.then.rate.as_str()),
        ("10r/s", "20r/s")
    );
    // At twice the rate nobody waits.
    assert!(near(told.then.wait_max, 0.0), "{told:?}");
    assert_eq!((told.then.departed, told.then.deepest), (100, 0));
    assert_eq!(told.ignores.len(), 1, "{told:?}");
}

#[test]
fn who_would_wait_for_too_long_or_finds_the_queue_full_is_rejected() {
    let slow = what_if("queue_timeout = \"2s\"", &CROWD, of_rate("5r/s"));
    assert!(slow.then.wait_max.is_some_and(|it| it < 3.1), "{slow:?}");
    let all = slow.then.departed + slow.then.rejected + slow.then.waiting;
    assert!(
        all.abs_diff(100) <= 1 && slow.then.rejected > 50,
        "{slow:?}"
    );
    let more = "queue_timeout = \"1m\"\nmax_queue = 15";
    let full = what_if(more, &CROWD, of_rate("5r/s"));
    assert_eq!(full.then.deepest, 15);
    // 25 leave in the five seconds of the crowd, and 15 wait.
    assert_eq!((full.then.departed, full.then.rejected), (40, 60));
    let none = what_if("queue_timeout = \"0\"", &CROWD, of_rate("5r/s"));
    assert_eq!((none.then.departed, none.then.waiting), (25, 0));
}

#[test]
fn places_let_through_what_they_free() {
    // One request at the origin and ten a second: each takes 100 ms.
    let places = OtherGate {
        max_in_flight: Some(1),
        rate: of_rate("1000r/s").rate,
    };
    let told = what_if("queue_timeout = \"1m\"", &CROWD, places);
    assert_eq!(told.then.most_in_a_second, 10, "{told:?}");
    let two = OtherGate {
        max_in_flight: Some(2),
        ..places
    };
    let told = what_if("queue_timeout = \"1m\"", &CROWD, two);
    assert_eq!((told.then.most_in_a_second, told.then.deepest), (20, 0));
    assert_eq!(told.then.max_in_flight, Some(2));
}

#[test]
fn those_who_wait_at_the_beginning_are_not_forgotten() {
    let told = what_if(
        "",
        &[(0, 30, 1), (10, 20, 1), (10, 10, 1)],
        of_rate("40r/s"),
    );
    assert_eq!(
        (told.arrivals, told.now.departed, told.now.waiting),
        (30, 20, 10)
    );
    assert_eq!((told.then.departed, told.then.waiting), (30, 0));
}

#[test]
fn costs_that_are_not_replayed_are_named() {
    let ignores = |cost: &str| {
        let settings = settings("max_in_flight = 8", cost);
        what_if_of(&settings, &CROWD, of_rate("10r/s")).ignores
    };
    let learned = r#"cost = { learn = "time", unit = "10ms", max = 20 }"#;
    for cost in ["cost = 3", learned] {
        let told = ignores(cost);
        let says = "what requests cost: each counts as one unit of the rate";
        let mut texts = told.iter().map(Plain::as_str);
        assert!(texts.any(|it| it.starts_with(says)), "{told:?}");
    }
    let shadow = r#"cost = { learn = "time", unit = "10ms", max = 20, mode = "shadow" }"#;
    for cost in ["", "cost = 1", shadow] {
        let told = ignores(cost);
        assert!(told.is_empty(), "{cost}: {told:?}");
    }
}

#[test]
fn without_any_second_nothing_is_made_up() {
    let told = what_if("", &[(0, 0, 0)], of_rate("40r/s"));
    assert_eq!(
        (told.arrivals, told.then.departed, told.then.wait_max),
        (0, 0, None)
    );
}
