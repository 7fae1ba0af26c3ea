//! Tests of the grid of an origin: gateways take slots by weight, and no slot is lost.

use std::collections::BTreeMap;
use std::time::Duration;

use gateway::store::{Claim, Error, GRID_FORM, StoreRate};
use limit::{Algorithm, ClassDemand};

use super::server::in_redis;
use super::{at, pace};

const LEAKY: Algorithm = Algorithm::LeakyBucket;

pub fn class(class: u32, weight: u32, keys: u64) -> ClassDemand {
    ClassDemand {
        class,
        weight,
        keys,
    }
}

pub fn claim<'a>(
    grid: &'a [u8],
    gateway: u64,
    pace: &'a StoreRate,
    slots: u64,
    classes: &'a [ClassDemand],
    millis: u64,
) -> Claim<'a> {
    Claim {
        grid,
        gateway: gateway.to_le_bytes(),
        pace,
        slots,
        part: 1.0,
        lead: Duration::ZERO,
        classes,
        keys: None,
        at: Some(at(millis)),
    }
}

/// Returns the slots granted until `end`, in microseconds from the start, with their gateways.
///
/// Each gateway has the given number of waiting keys in class 1, and claims slots every 10 ms.
fn simulate(rate: &str, all: &[(u64, u64)], end: u64) -> BTreeMap<u128, u64> {
    in_redis(async |server, store| {
        let (grid, pace) = (server.key(), pace(rate, LEAKY, 0));
        let mut slots = BTreeMap::new();
        for millis in 0..end {
            for (gateway, keys) in all {
                // The gateways do not all claim in the same millisecond.
                if !(millis + 3 * gateway).is_multiple_of(10) {
                    continue;
                }
                let classes = [class(1, 1, *keys)];
                let claim = claim(&grid, *gateway, &pace, 1000, &classes, millis);
                let granted = store.call(&claim).await.expect("it answers");
                for slot in granted.slots {
                    let micros = slot.since(at(0)).as_micros();
                    assert!(micros >= u128::from(millis) * 1000, "not in the past");
                    let other = slots.insert(micros, *gateway);
                    assert_eq!(other, None, "a slot is for one");
                }
            }
        }
        slots.retain(|micros, _| *micros < u128::from(end) * 1000);
        slots
    })
}

fn count(slots: &BTreeMap<u128, u64>, gateway: u64, from: u64, until: u64) -> usize {
    let within = slots.range(u128::from(from) * 1000..u128::from(until) * 1000);
    within.filter(|(_, of)| **of == gateway).count()
}

/// Checks that each slot is one interval after the previous one.
fn assert_even(slots: &BTreeMap<u128, u64>, interval: u128) {
    let times: Vec<u128> = slots.keys().copied().collect();
    for pair in times.windows(2) {
        let gap = pair[1] - pair[0];
        assert!(gap.abs_diff(interval) <= 1, "{gap} us at {}", pair[0]);
    }
}

/// The slots of all gateways are one even stream, shared by weight.
///
/// The simulation tests other rates and loads.
#[test]
fn the_slots_of_all_gateways_are_one_even_stream_shared_by_weight() {
    // Slots at the fast rate are granted in pieces.
    for (rate, interval, slack) in [("200r/s", 5000, 2), ("100000r/s", 10, 600)] {
        let slots = simulate(rate, &[(0, 5), (1, 1)], 1100);
        assert_even(&slots, interval);
        // The second after the first span.
        let got = count(&slots, 1, 100, 1100);
        let expected = usize::try_from(1_000_000 / interval / 6).expect("few");
        let is_as_weighted = got.abs_diff(expected) <= slack;
        assert!(is_as_weighted, "{rate}: {got}, not {expected}");
    }
}

#[test]
fn the_table_of_gateways_is_bounded() {
    in_redis(async |server, store| {
        let (grid, pace) = (server.key(), pace("100r/s", LEAKY, 0));
        let waits = [class(1, 1, 1)];
        let mut last = 0;
        for (gateway, millis) in (0..1100).map(|nth| (nth, 0)).chain([(2000, 1)]) {
            let claim = claim(&grid, gateway, &pace, 1, &waits, millis);
            last = store.call(&claim).await.unwrap().gateways.get();
        }
        assert_eq!(last, 1024);
    });
}

#[test]
fn classes_have_their_parts_first_and_keys_within_them() {
    in_redis(async |server, store| {
        let (grid, pace) = (server.key(), pace("100r/s", LEAKY, 0));
        // Classes 8 : 1. In the first class one gateway has 3 keys of 4; in the second it has all.
        let one = [class(1, 8, 3), class(2, 1, 5)];
        let other = [class(1, 8, 1)];
        let ask = async |gateway, classes: &[ClassDemand], millis| {
            let claim = claim(&grid, gateway, &pace, 10, classes, millis);
            store.call(&claim).await.unwrap()
        };
        assert!((ask(1, &one, 0).await.part - 1.0).abs() < 1e-9);
        let part = ask(2, &other, 1).await.part;
        assert!((part - 8.0 / 9.0 / 4.0).abs() < 1e-9, "{part}");
        let granted = ask(1, &one, 2).await;
        assert_eq!(granted.classes, [0.75, 1.0]);
        let part = granted.part;
        let expected = 8.0 / 9.0 * 3.0 / 4.0 + 1.0 / 9.0;
        assert!((part - expected).abs() < 1e-9, "{part}");
        // No request of the first class waits anywhere.
        let part = ask(2, &[], 3).await;
        assert_eq!(part.gateways.get(), 2);
        let part = ask(1, &[class(2, 1, 5)], 4).await.part;
        assert!((part - 1.0).abs() < 1e-9, "{part}");
    });
}

#[test]
fn the_rate_of_the_newest_file_is_in_force() {
    in_redis(async |server, store| {
        let grid = server.key();
        let (old, new) = (pace("10r/s", LEAKY, 100), pace("1000r/s", LEAKY, 200));
        let waits = [class(1, 1, 1)];
        let ask = async |pace, millis| {
            let claim = claim(&grid, 1, pace, 5, &waits, millis);
            store.call(&claim).await.unwrap()
        };
        let first = ask(&old, 0).await;
        assert_eq!((first.rate, first.slots.len()), (old.rate(), 1));
        // The slot is one new interval after the last one, or now. The old slot, 0.1 s away, does
        // not apply.
        let second = ask(&new, 20).await;
        assert_eq!(second.rate, new.rate());
        assert_eq!(second.slots[0], at(20));
        assert_eq!(second.slots.len(), 5);
        let third = ask(&old, 21).await;
        assert_eq!(third.rate, new.rate());
    });
}

#[test]
fn a_clock_that_is_set_back_stops_nobody() {
    in_redis(async |server, store| {
        let (grid, pace) = (server.key(), pace("100r/s", LEAKY, 0));
        let waits = [class(1, 1, 1)];
        let ask = async |millis| {
            let claim = claim(&grid, 1, &pace, 5, &waits, millis);
            store.call(&claim).await.unwrap().slots.len()
        };
        assert_eq!(ask(3_600_000).await, 5);
        // Slots granted ahead are not granted again. A clock that is slightly behind catches up.
        assert_eq!(ask(3_599_500).await, 0, "half a second back");
        assert!(ask(3_598_500).await > 0, "one second and a half back");
        assert!(ask(0).await > 0, "an hour back");
    });
}

#[test]
fn another_use_of_the_key_is_refused_and_left_alone() {
    in_redis(async |server, store| {
        let grid = server.key();
        let pace = pace("100r/s", LEAKY, 0);
        let name = format!("{}.{GRID_FORM}", String::from_utf8_lossy(&grid));
        let claim = Claim {
            at: None,
            ..claim(name.as_bytes(), 1, &pace, 1, &[], 0)
        };
        let key = format!("drip:{name}");
        server.ask::<()>(&format!("SET {key} mine"), &[]);
        let refused = store.call(&claim).await;
        assert!(matches!(refused, Err(Error::Refused(_))), "{refused:?}");
        assert_eq!(server.ask::<String>(&format!("GET {key}"), &[]), "mine");
        server.ask::<()>(&format!("DEL {key}"), &[]);
        server.ask::<()>(&format!("RPUSH {key} mine"), &[]);
        let refused = store.call(&claim).await;
        assert!(matches!(refused, Err(Error::Refused(_))), "{refused:?}");
    });
}
