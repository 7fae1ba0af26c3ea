use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::{ClockOffset, Members, Reading, SharedSettings, Unread, UnreadKind};
use crate::limit::Moment;
use crate::status::views::{Fleet, Plain};

const SETTINGS: &str =
    "[zones.z]\nrate = \"10r/s\"\nmask_keys = false\n[zones.m]\nmask_keys = true\n";

fn at(seconds: u64) -> Moment {
    Moment::from_nanos(1_763_704_800_000_000_000) + Duration::from_secs(seconds)
}

fn members(addresses: &[&str]) -> Members {
    let address = |text: &&str| (!text.is_empty()).then(|| text.parse().unwrap());
    Members::new(addresses.iter().map(address))
}

/// What a gateway of this name tells: so many departures of the gate of `app` by the second `seq`,
/// with a part of its rate of 100 a second.
fn reading(name: &str, seq: u64, departures: u64, part: f64) -> Reading {
    let zones = json!([
        {"name": "z", "store": "redis", "rate": "10r/s", "depth": 1},
        {"name": "m", "store": "memory", "rate": "5r/s"},
    ]);
    let origins = json!([
        {"name": "app", "in_flight": 3, "gate": {"queue_depth": 2, "share": "z",
         "rate": {"file": "100r/s", "now": "100r/s"}, "sharing": {"part": part, "gateways": 2}}},
        {"name": "plain", "in_flight": 4},
    ]);
    let sample = json!({
        "seq": seq, "time": 1000 + seq, "codes": {"2xx": 5, "4xx": 1},
        "headline": {"severity": "fine", "title": "Fine"},
        "zones": [{"name": "z", "passed": 4, "delayed": 3, "rejected": 2, "depth": 6, "oldest_wait": 0.5,
            "rejected_keys": [{"key": "a", "rejections": 7}]},
            {"name": "m", "rejected_keys": [{"key": "~1", "rejections": 1}]}],
        "deepest": [{"zone": "z", "key": "a", "depth": 6, "oldest_wait": 0.5}],
        "origins": [{"name": "app", "gate": {"depth": 2, "departures": departures,
            "rate": {"file": 100.0, "now": 100.0}, "rejected": {"queue": 1},
            "deepest": [{"key": "a", "depth": 2}]}}],
    });
    Reading {
        id: Plain::new(name),
        name: Plain::new(name),
        version: "1.0.0".into(),
        settings: Arc::new(SharedSettings::read(SETTINGS)),
        clock: Some(ClockOffset::default()),
        zones: read(zones),
        origins: read(origins),
        sample: Some(read(sample)),
    }
}

fn unread(kind: UnreadKind, why: &str) -> Unread {
    let why = why.to_owned();
    Unread { kind, why }
}

fn read<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// Two gateways over 10 s, which sent so many requests a second with these parts.
fn sending(paces: [u64; 2], parts: [f64; 2]) -> Fleet {
    let mut members = members(&["", "b:9090"]);
    for seq in 1..=10 {
        for (index, name) in ["a", "b"].into_iter().enumerate() {
            let reading = reading(name, seq, seq * paces[index], parts[index]);
            members.hear(index, Ok(reading), at(seq));
        }
    }
    members.picture()
}

fn causes(fleet: &Fleet) -> (&str, usize) {
    (fleet.headline.cause.as_str(), fleet.headline.also.len())
}

#[test]
fn what_each_has_is_summed_and_what_the_store_has_is_shown_once() {
    let fleet = sending([30, 40], [0.5, 0.5]);
    let names = fleet.gateways.iter().map(|it| it.name.as_str());
    assert_eq!(names.collect::<Vec<_>>(), ["a", "b"]);
    let gateway = &fleet.gateways[1];
    assert_eq!(gateway.address.as_ref().map(Plain::as_str), Some("b:9090"));
    assert_eq!((gateway.answers, gateway.in_flight), (6, 7));
    assert_eq!((gateway.depth, gateway.rejected), (8, 3));
    let zone = &fleet.zones[0];
    assert_eq!(zone.rates, [Plain::from("10r/s")]);
    assert_eq!((zone.out, zone.rejected, zone.depth), (14, 4, 12));
    assert_eq!(zone.parts[1].depth, 6);
    let gate = &fleet.gates[0];
    assert_eq!((gate.sent, gate.gateways), (Some(70.0), Some(2)));
    assert_eq!((gate.depth, gate.in_flight, gate.rejected), (4, 6, 2));
    assert_eq!(gate.parts[0].sent, Some(30.0));
    assert_eq!(fleet.gates.len(), 1, "an origin without a gate has none");
    assert_eq!(causes(&fleet), ("fine", 0));
}

#[test]
fn gateways_that_back_off_do_not_merely_agree() {
    let picture = |backing_off: [bool; 2]| {
        let mut members = members(&["", "b:9090"]);
        for (index, name) in ["a", "b"].into_iter().enumerate() {
            let mut it = reading(name, 1, 10, 0.5);
            if let Some(sample) = it.sample.as_mut().filter(|_| backing_off[index]) {
                let gate = sample.origins[0].gate.as_mut().unwrap();
                gate.backing_off = Some(read(
                    json!({"reason": "trouble", "text": "5 of 10 answers were trouble"}),
                ));
            }
            members.hear(index, Ok(it), at(1));
        }
        let fleet = members.picture();
        (
            fleet.headline.title.to_string(),
            fleet.headline.evidence.to_string(),
        )
    };
    let (title, evidence) = picture([true, true]);
    assert_eq!(title, "All gateways back off from app");
    assert_eq!(evidence, "a says: 5 of 10 answers were trouble.");
    assert_eq!(picture([false, true]).0, "b backs off from app");
    assert_eq!(picture([false, false]).0, "2 gateways agree");
}

#[test]
fn gateways_that_the_store_refuses_do_not_merely_agree() {
    let picture = |refused: [Option<&str>; 2]| {
        let mut members = members(&["", "b:9090"]);
        for (index, name) in ["a", "b"].into_iter().enumerate() {
            let mut it = reading(name, 1, 10, 0.5);
            if let (Some(sample), Some(asks_for)) = (it.sample.as_mut(), refused[index]) {
                sample.origins[0].gate.as_mut().unwrap().refused = Some(read(json!({
                    "asks_for": asks_for, "part": 0.5, "reason": "WRONGTYPE", "remedy": "delete it"
                })));
            }
            members.hear(index, Ok(it), at(1));
        }
        let it = members.picture().headline;
        let texts = [&it.title, &it.evidence, &it.remedy, &it.severity];
        texts.map(ToString::to_string)
    };
    assert_eq!(
        picture([Some("backoff"), Some("places")]),
        [
            "All gateways go on alone at app: Redis refused what they share",
            "a says: WRONGTYPE.",
            "Delete it.",
            "bad"
        ]
    );
    let [title, .., severity] = picture([None, Some("backoff")]);
    assert_eq!(
        title,
        "b goes on alone at app: Redis refused what they share"
    );
    assert_eq!(severity, "warn");
}

#[test]
fn keys_are_one_over_the_gateways_unless_their_names_are_masked() {
    let fleet = sending([30, 40], [0.5, 0.5]);
    let keys = fleet.keys.iter().map(|key| {
        let gate = key.gate.as_ref().map_or("", Plain::as_str);
        (
            key.zone.as_str(),
            gate,
            key.key.as_str(),
            key.depth,
            key.rejections,
            key.parts.len(),
        )
    });
    assert_eq!(
        keys.collect::<Vec<_>>(),
        [
            ("z", "", "a", 12, 14, 2),
            ("z", "app", "a", 4, 0, 2),
            ("m", "", "~1", 0, 1, 1),
            ("m", "", "~1", 0, 1, 1),
        ]
    );
    assert_eq!(fleet.keys[3].parts[0].gateway.as_str(), "b");
    assert!(fleet.keys[3].masked && !fleet.keys[0].masked);
}

#[test]
fn who_sends_more_than_its_part_is_named() {
    let fleet = sending([50, 120], [0.5, 0.5]);
    assert_eq!(causes(&fleet), ("over_part", 0));
    let headline = &fleet.headline;
    assert_eq!(headline.title.as_str(), "b sends more than its part to app");
    let evidence = "Requests a second in the last 9 s: a 50 with a part of 50 % and b 120 with a part of 50 %. \
                    Together 170, and the rate is 100.";
    assert_eq!(headline.evidence.as_str(), evidence);
    // Each believes that it is the only one: they use different stores.
    let fleet = sending([100, 100], [1.0, 1.0]);
    let title = fleet.headline.title.as_str();
    assert_eq!(title, "a and b send more than their parts to app");
}

#[test]
fn a_part_that_an_idle_gateway_does_not_use_is_nobodys_fault() {
    for (paces, parts) in [
        // The idle one is said to have all.
        ([100, 0], [0.5, 1.0]),
        ([100, 0], [1.0, 1.0]),
        ([0, 0], [1.0, 1.0]),
        // What is told of the parts is a moment old.
        ([80, 20], [0.5, 0.5]),
        ([52, 52], [0.5, 0.5]),
        ([3, 99], [0.01, 1.0]),
    ] {
        let fleet = sending(paces, parts);
        assert_eq!(causes(&fleet), ("fine", 0), "{paces:?} {parts:?}");
    }
}

#[test]
fn nothing_is_said_of_who_sends_what_before_it_is_measured() {
    let mut members = members(&["a:1", "b:1"]);
    for seq in 1..=3 {
        for (index, name) in ["a", "b"].into_iter().enumerate() {
            members.hear(index, Ok(reading(name, seq, seq * 1000, 1.0)), at(seq));
        }
    }
    assert_eq!(causes(&members.picture()), ("fine", 0));
    // A gateway that starts again counts from zero.
    members.hear(0, Ok(reading("a", 1, 5, 1.0)), at(4));
    assert_eq!(members.picture().gates[0].parts[0].sent, None);
}

#[test]
fn a_gateway_that_does_not_answer_is_said_and_is_in_no_sum() {
    let mut members = members(&["a:1", "b:1"]);
    assert_eq!(members.picture().gateways[0].state.as_str(), "unknown");
    assert!(!members.are_known());
    members.hear(0, Ok(reading("a", 1, 0, 1.0)), at(0));
    members.hear(1, Ok(reading("b", 1, 0, 1.0)), at(0));
    for second in [5, 9] {
        members.hear(
            1,
            Err(unread(UnreadKind::Silent, "connection refused")),
            at(second),
        );
    }
    let fleet = members.picture();
    let silent = &fleet.gateways[1];
    assert_eq!(
        (silent.name.as_str(), silent.state.as_str()),
        ("b", "silent")
    );
    let since = silent.since.as_ref().map(Plain::as_str);
    assert_eq!(since, Some("2025-11-21T06:00:05.000Z"));
    assert_eq!(fleet.zones[0].depth, 6);
    assert_eq!(fleet.headline.title.as_str(), "b (b:1) does not answer");
    let evidence = "Since 06:00:05 UTC: connection refused. No sum has what is there.";
    assert_eq!(fleet.headline.evidence.as_str(), evidence);
    assert_eq!(members.silence(), None);
    members.hear(
        0,
        Err(unread(UnreadKind::Silent, "no answer in time")),
        at(9),
    );
    let silence = members.silence();
    assert_eq!(
        silence.as_deref(),
        Some("a:1: no answer in time; b:1: connection refused")
    );
    members.hear(1, Ok(reading("b", 9, 0, 1.0)), at(10));
    assert_eq!(members.picture().gateways[1].since, None);
}

#[test]
fn what_answers_and_cannot_be_read_is_not_said_to_be_silent() {
    for (kind, state, title) in [
        (UnreadKind::Refuses, "refuses", "b:1 cannot be read"),
        (UnreadKind::Strange, "strange", "b:1 is no drip gateway"),
    ] {
        let mut members = members(&["a:1", "b:1"]);
        members.hear(0, Ok(reading("a", 1, 0, 1.0)), at(0));
        members.hear(1, Err(unread(kind, "it answers so")), at(0));
        let fleet = members.picture();
        assert_eq!(fleet.gateways[1].state.as_str(), state);
        assert_eq!(causes(&fleet), ("gateway_silent", 0));
        assert_eq!(fleet.headline.title.as_str(), title);
        let remedy = fleet.headline.remedy.as_str();
        assert!(!remedy.contains("whether it runs"), "{remedy}");
    }
}

#[test]
fn one_process_counts_once_by_whatever_address() {
    let mut members = members(&["", "a:1", "b:1", "c:1"]);
    for (index, name) in ["a", "a", "b", "b"].into_iter().enumerate() {
        members.hear(index, Ok(reading(name, 1, 0, 1.0)), at(0));
    }
    let fleet = members.picture();
    let states = fleet
        .gateways
        .iter()
        .map(|it| (it.name.as_str(), it.state.as_str()));
    let expected = [("a", "answers"), ("b", "answers"), ("b", "same")];
    assert_eq!(states.collect::<Vec<_>>(), expected);
    assert_eq!(fleet.zones[0].parts.len(), 2);
}

#[test]
fn equal_names_are_told_apart_by_their_addresses() {
    let mut members = members(&["", "b:1", "c:1"]);
    for (index, id) in ["1", "2", "3"].into_iter().enumerate() {
        let reading = Reading {
            id: id.into(),
            ..reading(if index == 2 { "" } else { "host" }, 1, 0, 1.0)
        };
        members.hear(index, Ok(reading), at(0));
    }
    let fleet = members.picture();
    let names = fleet.gateways.iter().map(|it| it.name.as_str());
    assert_eq!(names.collect::<Vec<_>>(), ["this gateway", "b:1", "c:1"]);
}

#[test]
fn files_and_clocks_that_differ_are_named() {
    let mut members = members(&["", "b:1", "c:1"]);
    let other = Reading {
        settings: Arc::new(SharedSettings::read(&SETTINGS.replace("10r/s", "20r/s"))),
        clock: Some(ClockOffset {
            at_least: 1.2,
            at_most: 1.4,
        }),
        ..reading("c", 1, 0, 1.0)
    };
    let slow = Reading {
        clock: Some(ClockOffset {
            at_least: -3.0,
            at_most: 0.3,
        }),
        ..reading("b", 1, 0, 1.0)
    };
    members.hear(0, Ok(reading("a", 1, 0, 1.0)), at(0));
    members.hear(1, Ok(slow), at(0));
    members.hear(2, Ok(other), at(0));
    let fleet = members.picture();
    let headline = &fleet.headline;
    assert_eq!(headline.cause.as_str(), "files_differ");
    assert_eq!(
        headline.title.as_str(),
        "c has other zones, origins or routes than a"
    );
    assert_eq!(
        headline.evidence.as_str(),
        r#"zones.z.rate is "10r/s" at a, "20r/s" at c."#
    );
    let clocks = "The clock of c is ahead of that of a";
    assert_eq!(headline.also, [Plain::from(clocks)]);
    assert_eq!(fleet.gateways[2].clock, Some(1.3));
}

#[test]
fn places_are_summed_and_those_of_the_store_are_shown_once() {
    let with = |name: &str, places: Value| {
        let origins = json!([{"name": "db", "places": places}, {"name": "app"}]);
        Reading {
            origins: read(origins),
            ..reading(name, 1, 0, 1.0)
        }
    };
    let mut members = members(&["", "b:1", "c:1"]);
    let places = |held, in_use, withheld| json!({"of": 40, "held": held, "in_use": in_use, "withheld": withheld, "free": 8, "gateways": 3});
    members.hear(0, Ok(with("a", places(10, 10, 0))), at(0));
    members.hear(1, Ok(with("b", places(16, 16, 4))), at(0));
    members.hear(2, Ok(with("c", json!(null))), at(0));
    let fleet = members.picture();
    let [places] = &fleet.places[..] else {
        panic!("{:?}", fleet.places);
    };
    assert_eq!((places.of, places.withheld, places.free), (40, 4, 8));
    assert_eq!(
        (places.held, places.in_use, places.parts.len()),
        (26, 26, 2)
    );
    // The store counts three gateways, and two of them are read.
    assert_eq!(places.elsewhere, 2);
    assert_eq!(causes(&fleet), ("places_withheld", 0));
    assert_eq!(fleet.headline.title.as_str(), "4 places of db are withheld");
    // What was counted at another moment is no gateway.
    let idle = json!({"of": 40, "held": 1, "free": 39, "gateways": 1});
    members.hear(2, Ok(with("c", idle)), at(1));
    assert_eq!(members.picture().places[0].elsewhere, 0);
}

#[test]
fn a_gateway_of_another_version_may_tell_less() {
    let mut members = members(&["", "b:1"]);
    members.hear(0, Ok(reading("a", 1, 0, 1.0)), at(0));
    let old = Reading {
        zones: read(json!([{"name": "z", "depth": 4, "new": []}])),
        origins: read(json!([{"name": "app", "in_flight": 1, "gate": {"queue_depth": 9}}])),
        ..Reading::default()
    };
    members.hear(1, Ok(old), at(0));
    let fleet = members.picture();
    assert_eq!(fleet.gateways[1].name.as_str(), "b:1");
    assert_eq!(
        (fleet.gateways[1].depth, fleet.gateways[1].clock),
        (13, None)
    );
    assert_eq!(causes(&fleet), ("fine", 0));
}

#[test]
fn numbers_of_other_hosts_may_be_anything() {
    let mut members = members(&["a:1", "b:1"]);
    for (index, name) in ["a", "b"].into_iter().enumerate() {
        for seq in [1, 9] {
            let mut wild = reading(name, seq, u64::MAX - 9 + seq, f64::MAX);
            wild.zones[0].depth = u64::MAX;
            let sample = wild.sample.as_mut().unwrap();
            sample.time = [f64::MIN, f64::MAX, f64::NAN][index % 3];
            sample.zones[0].depth = u64::MAX;
            sample.zones[0].passed = u64::MAX;
            sample.deepest[0].depth = u64::MAX;
            members.hear(index, Ok(wild), at(seq));
        }
    }
    let fleet = members.picture();
    assert_eq!(fleet.zones[0].depth, u64::MAX);
    assert_eq!(fleet.keys[0].depth, u64::MAX);
}

#[test]
fn gateways_without_the_store_are_named_and_nobody_is_blamed_for_their_parts() {
    let picture = |out: [bool; 2]| {
        let mut members = members(&["", "b:9090"]);
        for seq in 1..=10 {
            for (index, name) in ["a", "b"].into_iter().enumerate() {
                let mut reading = reading(name, seq, seq * 90, 0.5);
                let store = json!({"up": !out[index], "out_for": 3.0, "reason": "no answer"});
                reading.sample.as_mut().unwrap().store = Some(read(store));
                members.hear(index, Ok(reading), at(seq));
            }
        }
        members.picture()
    };
    assert_eq!(causes(&picture([false, false])), ("over_part", 0));
    for (out, title) in [
        ([false, true], "b does not reach the store"),
        ([true, true], "No gateway reaches the store"),
    ] {
        let fleet = picture(out);
        assert_eq!(causes(&fleet), ("store_out", 0));
        assert_eq!(fleet.headline.severity.as_str(), "bad");
        assert_eq!(fleet.headline.title.as_str(), title);
    }
}
