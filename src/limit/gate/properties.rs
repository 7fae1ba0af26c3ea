//! Property test of the gate: any trace keeps its rules.
//!
//! A *slot* is an instant at which a request may leave, by the rate. A *permit* is the right to run
//! one request at the origin: `max_in_flight` is their number.

use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::Index;
use testing::config;

use super::*;
use crate::fixtures::{START, ms};

#[derive(Clone, Debug)]
enum Step {
    /// A request of this key joins.
    Join(u8),
    /// One of the waiters disconnects.
    Leave(Index),
    /// A request at the origin ends.
    GiveBack,
    /// The limits change.
    Limits(GateLimits),
    /// The gate pauses for these milliseconds.
    Pause(u64),
}

fn limits() -> impl Strategy<Value = GateLimits> {
    let rate = prop_oneof![Just("none"), Just("3r/s"), Just("100r/s"), Just("7r/250ms")];
    let (max_in_flight, queue) = (prop::option::of(0_usize..4), prop::option::of(1_usize..20));
    let limits = (rate, max_in_flight, queue, 1_usize..40);
    limits.prop_map(|(rate, max_in_flight, queue, max_queue)| GateLimits {
        rate: rate.parse().ok(),
        max_in_flight,
        queue,
        max_queue,
    })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..4_u8).prop_map(Step::Join),
        1 => any::<Index>().prop_map(Step::Leave),
        4 => Just(Step::GiveBack),
        1 => limits().prop_map(Step::Limits),
        1 => (0_u64..500).prop_map(Step::Pause),
    ]
}

proptest! {
    #![proptest_config(config())]

    /// Checks the rules of a gate for any trace with changing limits.
    ///
    /// Every request passes, leaves, waits or is rejected, exactly once. Departures at one rate are
    /// never closer than its interval. No request leaves without a permit or in a pause. No request
    /// waits when its slot has come and a permit is free.
    #[test]
    fn any_trace_keeps_the_rules(
        first in limits(),
        steps in prop::collection::vec((step(), 0_u64..300), 1..200),
    ) {
        let (mut gate, mut now) = (Gate::<u8, u32>::new(first), START);
        let (mut number, mut waiting, mut at_origin) = (0, Vec::new(), 0);
        // Last departure under the current limits.
        let mut last: Option<Moment> = None;
        // End of the last pause, and instant of the last change of the limits.
        let (mut paused_until, mut changed) = (START, START);
        for (step, millis) in steps {
            let until = now + ms(millis);
            let opens = paused_until;
            let limits = *gate.limits();
            // Checks a departure.
            let mut depart = |due: Moment| {
                if let (Some(rate), Some(last)) = (limits.rate, last) {
                    let apart = due.since(last) + Duration::from_nanos(1);
                    prop_assert!(apart >= rate.interval(), "{:?}", apart);
                }
                prop_assert!(due >= opens, "nobody leaves in a pause");
                prop_assert!(due >= changed, "nobody leaves at a time that is over");
                last = Some(due);
                at_origin += 1;
                prop_assert!(limits.max_in_flight.is_none_or(|most| at_origin <= most));
                Ok(())
            };
            while let Some(release) = gate.take(until) {
                prop_assert!(release.due <= until);
                let found = waiting.iter().position(|(known, _)| *known == release.waiter);
                prop_assert!(found.is_some(), "nobody leaves twice");
                waiting.remove(found.unwrap_or_default());
                depart(release.due)?;
            }
            now = until;
            match step {
                Step::Join(key) => {
                    number += 1;
                    match gate.join(&Share::of(key), Cost::ONE, now, || number) {
                        Admission::Passed => depart(now)?,
                        Admission::Waiting(position) => waiting.push((number, position)),
                        Admission::Rejected(full) => {
                            prop_assert!(full.retry_at >= now);
                            prop_assert!(gate.depth() > 0 || limits.max_queue == 0);
                        }
                    }
                }
                Step::Leave(index) => {
                    if !waiting.is_empty() {
                        let (number, position) = waiting.remove(index.index(waiting.len()));
                        prop_assert_eq!(gate.leave(&position), Some(number));
                    }
                }
                Step::GiveBack => {
                    if at_origin > 0 {
                        at_origin -= 1;
                        gate.give_back(now);
                    }
                }
                Step::Limits(limits) => {
                    gate.set_limits(limits, now);
                    (last, changed) = (None, now);
                }
                Step::Pause(millis) => {
                    paused_until = paused_until.max(now + ms(millis));
                    gate.pause(paused_until);
                }
            }
            prop_assert_eq!((gate.depth(), gate.in_flight()), (waiting.len(), at_origin));
            let free = gate.limits().max_in_flight.is_none_or(|most| at_origin < most);
            prop_assert_eq!(gate.due().is_some(), free && !waiting.is_empty());
        }
        let mut left = gate.clear();
        left.sort_unstable();
        prop_assert_eq!(left, waiting.iter().map(|(number, _)| *number).collect::<Vec<_>>());
    }
}
