//! Tests of outages of an origin.
//!
//! An *unsent* request had left the gate, could not be sent, and waits again before the queue.

use super::*;
use crate::fixtures::{at, millis_of};
use crate::gate::Admission;
use crate::{Cost, GateLimits, Release, Share};

fn gate(rate: &str, max_in_flight: Option<usize>) -> Gate<char, u32> {
    Gate::new(GateLimits {
        rate: rate.parse().ok(),
        max_in_flight,
        ..GateLimits::NONE
    })
}

/// Joins a request of a key, with a number as its name.
///
/// Returns its departure number if it passes.
fn join(gate: &mut Gate<char, u32>, key: char, name: u32, millis: u64) -> Option<u64> {
    match gate.join(&Share::of(key), Cost::ONE, at(millis), || name) {
        Admission::Passed => Some(gate.departures()),
        Admission::Waiting(_) => None,
        Admission::Rejected(full) => panic!("{full:?}"),
    }
}

/// Takes the requests that leave by then: names, and due instants in milliseconds.
fn take(gate: &mut Gate<char, u32>, millis: u64) -> Vec<(u32, u64)> {
    let releases = std::iter::from_fn(|| gate.take(at(millis)));
    let describe = |release: Release<char, u32>| (release.waiter, millis_of(release.due));
    releases.map(describe).collect()
}

#[test]
fn the_slot_of_a_request_that_could_not_be_sent_is_not_lost() {
    let mut gate = gate("1r/m", None);
    assert_eq!(join(&mut gate, 'a', 1, 0), Some(1));
    assert_eq!(join(&mut gate, 'a', 2, 1), None);
    gate.begin_outage();
    gate.put_back(1, 'a', 1, at(2), 1);
    gate.end_outage(at(1000));
    assert_eq!(take(&mut gate, 120_000), [(1, 1000), (2, 61_000)]);
}

#[test]
fn without_a_rate_a_recovered_origin_gets_one_request_and_then_two_for_each_answer() {
    let mut gate = gate("none", None);
    gate.begin_outage();
    for name in 1..=20 {
        assert_eq!(join(&mut gate, 'a', name, 0), None);
    }
    gate.end_outage(at(10));
    let mut rounds = Vec::new();
    for millis in 10..15 {
        let left = take(&mut gate, millis);
        rounds.push(left.len());
        for _ in left {
            gate.give_back(at(millis));
        }
    }
    assert_eq!(rounds, [1, 2, 4, 8, 5]);
    assert!(gate.is_free(at(15)) && gate.has_permit(), "it is as before");
    // No request waited, so new requests are not limited.
    gate.begin_outage();
    gate.end_outage(at(20));
    assert!((0..9).all(|name| join(&mut gate, 'a', name, 20).is_some()));
}

#[test]
fn unsent_requests_count_toward_the_bounds() {
    let mut gate = Gate::new(GateLimits {
        max_in_flight: Some(2),
        max_queue: 3,
        ..GateLimits::NONE
    });
    assert!(join(&mut gate, 'a', 1, 0).is_some() && join(&mut gate, 'a', 2, 0).is_some());
    gate.begin_outage();
    gate.put_back(1, 'a', 1, at(1), 1);
    gate.put_back(2, 'a', 1, at(1), 2);
    assert_eq!(join(&mut gate, 'a', 3, 1), None);
    let full = gate.join(&Share::of('a'), Cost::ONE, at(1), || 4);
    assert!(matches!(full, Admission::Rejected(full) if full.for_all));
    assert!(gate.check_room_at_head(&'a', at(1)).is_ok(), "one more");
    gate.put_back(3, 'a', 1, at(1), 5);
    let over = gate.check_room_at_head(&'a', at(1));
    assert!(over.is_err_and(|full| full.for_all));
    assert_eq!(gate.clear(), [1, 2, 5, 3]);
}

#[test]
fn a_recovered_origin_gets_one_more_request_every_100_ms_without_answers() {
    let mut gate = gate("none", None);
    gate.begin_outage();
    for name in 0..5 {
        assert_eq!(join(&mut gate, 'a', name, 0), None);
    }
    gate.end_outage(at(1000));
    assert_eq!(take(&mut gate, 1099), [(0, 1000)]);
    assert_eq!(take(&mut gate, 1299), [(1, 1100), (2, 1200)]);
    gate.give_back(at(1299));
    let names: Vec<_> = take(&mut gate, 1300).iter().map(|it| it.0).collect();
    assert_eq!(names, [3, 4], "one for the answer, and one for the time");
    assert_eq!(gate.due(), None);
}

#[test]
fn one_key_gets_half_of_the_room_for_unsent_requests() {
    for (queue, expected) in [(Some(10), 2), (None, 4)] {
        let mut gate: Gate<char, u32> = Gate::new(GateLimits {
            queue,
            max_queue: 4,
            ..GateLimits::NONE
        });
        for name in 0..6 {
            assert!(join(&mut gate, 'a', name, 0).is_some());
        }
        gate.begin_outage();
        let mut kept = 0;
        for number in 1..=6 {
            if gate.check_room_at_head(&'a', at(1)).is_ok() {
                gate.put_back(number, 'a', 1, at(1), 0);
                kept += 1;
            }
        }
        assert_eq!(kept, expected);
        let found = gate.check_room_at_head(&'b', at(1)).is_ok();
        assert_eq!(found, queue.is_some());
    }
}
