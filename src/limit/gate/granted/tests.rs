//! Tests of granted slots: a gate that shares a grid of slots with other gateways.
//!
//! A *slot* is an instant at which a request may leave: the slots of 100r/s are 10 ms apart. The
//! store *grants* a gate slots. A granted slot is *used*, or it *expires*.

use std::num::NonZeroU32;

use proptest::prelude::*;
use testing::config;

use super::*;
use crate::fixtures::{START, at, cost, millis_of, ms, nonzero, rate};
use crate::{Admission, Cost, GateLimits, Share};

type Gate = crate::Gate<u8, u32>;

/// Returns a gate that shares a grid of this rate.
fn shared(text: &str) -> Gate {
    let mut gate = Gate::new(GateLimits {
        rate: Some(rate(text)),
        queue: Some(100),
        max_queue: 1000,
        ..GateLimits::NONE
    });
    gate.share_grid();
    gate
}

/// Returns a gate that shares a grid of 100r/s, with the waiters 0, 1, ... that came at the start.
fn waiting(count: u32) -> Gate {
    let mut gate = shared("100r/s");
    for number in 0..count {
        join(&mut gate, number, 1, START);
    }
    gate
}

/// Joins a request of a cost, with a number as its name. It must wait.
fn join(gate: &mut Gate, number: u32, of_request: u32, now: Moment) {
    let admission = gate.join(&Share::of(1), cost(of_request), now, || number);
    assert!(matches!(admission, Admission::Waiting(_)), "{admission:?}");
}

/// Grants slots at these milliseconds, at half of the rate.
fn grant(gate: &mut Gate, millis: &[u64], now: Moment) {
    let slots: Vec<Moment> = millis.iter().map(|slot| at(*slot)).collect();
    let free = slots.last().map_or(now, |last| *last + ms(10));
    gate.grant(&slots, free, 0.5, now);
}

/// Takes the requests that leave by `until`: numbers, and the milliseconds at which they are due.
fn take(gate: &mut Gate, until: u64) -> Vec<(u32, u64)> {
    let releases = std::iter::from_fn(|| gate.take(at(until)));
    let releases = releases.map(|it| (it.waiter, millis_of(it.due)));
    releases.collect()
}

/// Checks the counts of granted slots.
fn assert_counts(gate: &Gate, used: u64, expired: u64) {
    assert_eq!(gate.slot_counts(), SlotCounts { used, expired });
}

#[test]
fn requests_leave_only_in_granted_slots() {
    let mut gate = waiting(3);
    assert_eq!(gate.due(), None);
    assert_eq!(gate.slots_to_request(START), 3);
    grant(&mut gate, &[10, 30], at(1));
    assert_eq!(gate.slots_to_request(at(1)), 1);
    assert_eq!(gate.due(), Some(at(10)));
    assert_eq!(take(&mut gate, 100), [(0, 10), (1, 30)]);
    // A later grant may have an earlier slot.
    grant(&mut gate, &[60], at(31));
    join(&mut gate, 3, 1, at(32));
    grant(&mut gate, &[40], at(33));
    assert_eq!(take(&mut gate, 100), [(2, 40), (3, 60)]);
    assert_counts(&gate, 4, 0);
}

#[test]
fn a_slot_that_is_not_used_in_time_is_lost() {
    let mut gate = shared("100r/s");
    grant(&mut gate, &[0, 10, 20], START);
    // A slot may be used up to 5 ms late.
    assert!(gate.pass(Cost::ONE, at(4)));
    assert!(!gate.pass(Cost::ONE, at(5)), "the next one has not come");
    join(&mut gate, 1, 1, at(16));
    assert_eq!(take(&mut gate, 20), [(1, 20)]);
    assert_counts(&gate, 2, 1);
    // The answer comes too late for the first slot.
    join(&mut gate, 2, 1, at(30));
    grant(&mut gate, &[31, 41], at(40));
    assert_eq!(take(&mut gate, 100), [(2, 41)]);
    assert_counts(&gate, 3, 2);
}

#[test]
fn a_request_with_a_future_slot_is_not_overtaken() {
    let mut gate = shared("1000r/s");
    join(&mut gate, 0, 1, START);
    join(&mut gate, 1, 1, START);
    grant(&mut gate, &[11], at(9));
    // The caller takes waiters a little before their slots.
    assert_eq!(take(&mut gate, 11), [(0, 11)]);
    grant(&mut gate, &[10, 12], at(9));
    assert_eq!(take(&mut gate, 100), [(1, 12)]);
    assert_counts(&gate, 2, 1);
}

#[test]
fn a_cost_uses_the_following_slots_even_if_granted_later() {
    let mut gate = shared("100r/s");
    join(&mut gate, 0, 3, START);
    join(&mut gate, 1, 1, START);
    assert_eq!(gate.slots_to_request(START), 4);
    grant(&mut gate, &[0, 10], START);
    assert_eq!(take(&mut gate, 9), [(0, 0)]);
    assert_eq!(gate.slots_to_request(at(9)), 2, "one is owed");
    grant(&mut gate, &[20, 30], at(10));
    assert_eq!(take(&mut gate, 100), [(1, 30)]);
    // A bill is owed, a credit lowers the debt.
    gate.bill(2, at(31));
    assert_eq!(gate.slots_to_request(at(31)), 2);
    gate.credit(1, at(31));
    join(&mut gate, 2, 1, at(32));
    grant(&mut gate, &[40, 50], at(33));
    assert_eq!(take(&mut gate, 100), [(2, 50)]);
}

#[test]
fn owed_costs_are_claimed_without_waiters() {
    let mut gate = shared("100r/s");
    join(&mut gate, 0, 3, START);
    grant(&mut gate, &[0], START);
    assert_eq!(take(&mut gate, 0), [(0, 0)]);
    let demand = gate.demand(at(1));
    assert_eq!((demand.slots, demand.classes.len()), (2, 1));
    grant(&mut gate, &[10, 20], at(1));
    assert_eq!(gate.demand(at(2)), crate::Demand::default());
}

#[test]
fn slots_in_a_pause_or_without_a_free_permit_are_lost_and_not_requested() {
    let mut gate = waiting(4);
    let permits = GateLimits {
        max_in_flight: Some(1),
        ..*gate.limits()
    };
    gate.set_limits(permits, START);
    assert_eq!(gate.slots_to_request(START), 1, "one permit is free");
    grant(&mut gate, &[0, 10, 20], START);
    assert_eq!(take(&mut gate, 15), [(0, 0)]);
    gate.give_back(at(18));
    assert_eq!(take(&mut gate, 100), [(1, 20)], "that at 10 ms is over");
    gate.give_back(at(21));
    gate.pause(at(200));
    assert_eq!(gate.slots_to_request(at(21)), 0);
    grant(&mut gate, &[30, 200], at(21));
    assert_eq!(take(&mut gate, 300), [(2, 200)]);
}

#[test]
fn waits_are_predicted_from_granted_slots_and_then_from_the_part_of_the_rate() {
    let predicted = |gate: &Gate, millis| {
        let wait = gate.predict(&Share::of(1), at(millis)).unwrap();
        wait.as_millis()
    };
    assert_eq!(predicted(&waiting(0), 0), 0);
    let mut gate = waiting(3);
    // Half of 100r/s.
    gate.grant(&[at(10), at(30)], at(40), 0.5, START);
    assert_eq!(predicted(&gate, 0), 70);
    join(&mut gate, 3, 1, START);
    assert_eq!(predicted(&gate, 0), 90);
    assert_eq!(take(&mut gate, 40).len(), 2);
    // The first free slot is at 40 ms.
    assert_eq!(predicted(&gate, 35), 45);
}

#[test]
fn alone_a_gate_continues_after_its_last_departure_at_a_part_of_the_rate() {
    let mut gate = waiting(5);
    grant(&mut gate, &[0, 10, 20], START);
    assert_eq!(take(&mut gate, 12), [(0, 0), (1, 10)]);
    gate.stand_alone(nonzero(4), at(12));
    assert_eq!(take(&mut gate, 100), [(2, 50), (3, 90)]);
    // A new rate is divided as well.
    let faster = GateLimits {
        rate: Some(rate("200r/s")),
        ..*gate.limits()
    };
    gate.set_limits(faster, at(100));
    assert_eq!(gate.due(), Some(at(110)));
    gate.share_grid();
    assert_eq!(gate.due(), None);
    grant(&mut gate, &[115], at(100));
    assert_eq!(take(&mut gate, 200), [(4, 115)]);
    assert_counts(&gate, 3, 1);
}

#[test]
fn demand_has_key_weights_by_class_or_requests_without_fair_keys() {
    let mut gate = shared("100r/s");
    for (key, weight) in [(1, 3), (1, 3), (2, 1)] {
        join_as(&mut gate, key, weight);
    }
    let keys = |gate: &mut Gate| -> Vec<u64> {
        let demand = gate.demand(START);
        demand.classes.iter().map(|class| class.keys).collect()
    };
    assert_eq!(keys(&mut gate), [4]);
    let unfair = GateLimits {
        queue: None,
        ..*gate.limits()
    };
    gate.set_limits(unfair, START);
    assert_eq!(keys(&mut gate), [3]);
}

/// Joins a request of a key with a weight.
fn join_as(gate: &mut Gate, key: u8, weight: u32) {
    let share = Share {
        weight,
        ..Share::of(key)
    };
    gate.join(&share, Cost::ONE, START, || key.into());
}

fn news(is_noted: bool, gateways: &[(u64, u16)]) -> crate::KeyNews {
    crate::KeyNews {
        is_noted,
        generation: 7,
        gateways: gateways.to_vec(),
    }
}

/// Returns the keys that a claim reports, with their weights.
fn reported(gate: &mut Gate) -> Vec<(u64, u32)> {
    let report = gate.demand(START).keys;
    let changes = report.changes.iter();
    let mut reported: Vec<_> = changes.map(|it| (named(it.key), it.weight)).collect();
    reported.sort_unstable();
    reported
}

/// Converts a key to its name in a report of a gate without classes, or a name to its key.
fn named(key: u64) -> u64 {
    key ^ u64::from(0x811c_9dc5_u32).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[test]
fn keys_are_reported_once_and_again_after_a_lost_answer_or_a_lost_store() {
    let mut gate = shared("100r/s");
    gate.name_keys_by(|key| (*key).into());
    join_as(&mut gate, 1, 1);
    assert_eq!(reported(&mut gate), [], "it does not know the store yet");
    gate.receive_key_news(&news(false, &[]));
    join_as(&mut gate, 2, 5);
    assert_eq!(reported(&mut gate), [(1, 1), (2, 5)]);
    gate.receive_key_news(&news(true, &[]));
    assert_eq!(reported(&mut gate), []);
    gate.receive_key_news(&news(true, &[]));
    // One waiter leaves, and the store does not answer.
    grant(&mut gate, &[0], START);
    assert_eq!(take(&mut gate, 0), [(1, 0)]);
    assert_eq!(reported(&mut gate), [(1, 0)]);
    gate.keys_unanswered();
    join_as(&mut gate, 1, 1);
    assert_eq!(reported(&mut gate), [(1, 1)], "it may count or not");
    gate.receive_key_news(&news(true, &[]));
    assert_eq!(reported(&mut gate), []);
    gate.receive_key_news(&news(false, &[]));
    assert_eq!(reported(&mut gate), [(1, 1), (2, 5)], "all is forgotten");
    gate.receive_key_news(&news(true, &[(0, 0)]));
    assert_eq!(reported(&mut gate), [(1, 1), (2, 5)], "news were lost");
    gate.stand_alone(NonZeroU32::MIN, at(1));
    gate.share_grid();
    assert_eq!(gate.demand(at(1)).keys.generation, 0, "it begins anew");
}

#[test]
fn a_key_that_waits_at_three_gateways_counts_a_third_at_each() {
    let mut gate = shared("1000r/s");
    gate.name_keys_by(|key| (*key).into());
    for number in 0..24 {
        gate.join(&Share::of(1), Cost::ONE, START, || number);
        gate.join(&Share::of(2), Cost::ONE, START, || 100 + number);
    }
    reported(&mut gate);
    gate.receive_key_news(&news(false, &[]));
    reported(&mut gate);
    gate.receive_key_news(&news(true, &[(named(1), 3), (named(2), 1)]));
    // A request of a third key: the predicted wait is less than that behind all waiters.
    let predicted = gate.predict(&Share::of(3), START).unwrap();
    grant(&mut gate, &[0, 1, 2, 3, 4, 5, 6, 7], START);
    let left = take(&mut gate, 7);
    let of_first = left.iter().filter(|(waiter, _)| *waiter < 100).count();
    assert_eq!((left.len(), of_first), (8, 2), "{left:?}");
    assert!(predicted < ms(10), "{predicted:?}");
    // Alone, each key counts in full.
    gate.stand_alone(NonZeroU32::MIN, at(8));
    let left = take(&mut gate, 28);
    let of_first = left.iter().filter(|(waiter, _)| *waiter < 100).count();
    assert!((9..=11).contains(&of_first), "{left:?}");
}

#[test]
fn time_before_standing_alone_is_lost() {
    let mut gate = waiting(5);
    grant(&mut gate, &[0], START);
    assert_eq!(take(&mut gate, 12), [(0, 0)]);
    gate.stand_alone(nonzero(2), at(150));
    assert_eq!(take(&mut gate, 195), [(1, 150), (2, 170), (3, 190)]);
}

proptest! {
    #![proptest_config(config())]

    /// Checks that a departure uses granted slots, as many as its cost, and none twice.
    ///
    /// So in any span of time at most as many costs leave as it has slots, plus the slots of the 5
    /// ms before it and the owed costs.
    #[test]
    fn nothing_leaves_without_slots(
        // Whether a request joins or slots are granted, its cost or their number, and the
        // milliseconds before.
        steps in prop::collection::vec((any::<bool>(), 1..4_u32, 0..15_u64), 1..150),
    ) {
        let (mut gate, mut now) = (shared("100r/s"), 0);
        let (mut next, mut granted, mut cost_left) = (0, 0_u64, 0_u64);
        for (joins, count, pause) in steps {
            now += pause;
            while let Some(release) = gate.take(at(now)) {
                cost_left += u64::from(release.cost);
                prop_assert!(release.due <= at(now));
            }
            if joins {
                let joined = gate.join(&Share::of(1), cost(count), at(now), || 0);
                if joined == Admission::Passed {
                    cost_left += u64::from(count);
                }
            } else {
                let count = u64::from(count);
                let slots: Vec<u64> = (0..count).map(|nth| next.max(now) + 5 * nth).collect();
                next = slots[slots.len() - 1] + 5;
                granted += count;
                grant(&mut gate, &slots, at(now));
            }
            let counts = gate.slot_counts();
            let held = granted - counts.used - counts.expired;
            prop_assert!(gate.granted_slots(at(now)) <= held);
            // Costs beyond the used slots are owed, and no request leaves until they are paid.
            prop_assert!(counts.used <= cost_left);
            prop_assert!(cost_left - counts.used < 3 || held == 0);
        }
    }
}
