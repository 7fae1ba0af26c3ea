//! The part of a gate that is saved for the next process.
//!
//! A *slot* is an instant at which one request may leave for the origin. The old process still
//! sends its waiters after the new one has started. So the new process begins behind their slots.
//! *Ticks* are instants at a rate, without rounding: see `slots`.

use std::hash::Hash;
use std::time::Duration;

use super::reserved::Reserved;
use super::{Departed, Gate, Moment, Rate, Ticks, moment, ticks};
use crate::ExpectedRequest;

/// State of a gate that is saved for the next process. Durations count from the time of saving.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SavedGate {
    /// Time until the slot behind all waiters.
    #[cfg_attr(feature = "serde", serde(with = "crate::whole_numbers::nanos"))]
    pub next: Duration,
    /// Time until a pause ends.
    #[cfg_attr(feature = "serde", serde(with = "crate::whole_numbers::nanos"))]
    pub opens: Duration,
    /// Later spans (start, end) in which the old process still sends requests.
    ///
    /// Each span includes the interval after its last request.
    #[cfg_attr(
        feature = "serde",
        serde(default, with = "crate::whole_numbers::nanos_spans")
    )]
    pub reserved: Vec<(Duration, Duration)>,
}

impl<K: Hash + Eq + Clone, W> Gate<K, W> {
    /// Returns the state to save at `at`, an instant shortly before now.
    ///
    /// Waiters of this process keep their slots. `to_come` are requests that wait in zones of this
    /// process and will still join this gate, in any order.
    pub fn save(&self, at: Moment, to_come: &[ExpectedRequest]) -> SavedGate {
        let opens = self.opens.max(at);
        let without_rate = SavedGate {
            opens: opens.since(at),
            ..SavedGate::default()
        };
        let Some(rate) = self.rate else {
            return without_rate;
        };
        let costs = self.outage.costs + self.waiting.costs();
        if self.shares_grid() {
            // Requests that come later claim their own slots of the grid.
            let next = self.leaves_behind(costs, opens).since(at);
            return SavedGate {
                next,
                ..without_rate
            };
        }
        let (first, _) = self.slot(opens);
        let next = self.reserved.after(rate, first, costs);
        let mut to_come = to_come.to_vec();
        to_come.sort_unstable_by_key(|it| it.due);
        let mut spans: Vec<_> = self.reserved.spans().collect();
        // Instant from which the old process has no departure.
        let mut free = next;
        for ExpectedRequest { due, cost } in to_come {
            let ready = free.max(ticks(rate, due.max(opens)));
            let due = self.reserved.first_fit(rate, ready);
            free = self.reserved.after(rate, due, cost.get().into());
            spans.push((moment_before(rate, due), moment(rate, free)));
        }
        let mut reserved = Reserved::new(spans);
        let next = moment(rate, next);
        reserved.forget(next);
        let span = |(from, to): (Moment, Moment)| (from.since(at), to.since(at));
        SavedGate {
            next: next.since(at),
            reserved: reserved.spans().map(span).collect(),
            ..without_rate
        }
    }

    /// Restores the state that was saved at `at`, into a gate without departures.
    pub fn restore(&mut self, saved: &SavedGate, at: Moment) {
        self.before_last = None;
        let next = at + saved.next;
        self.last_departed = self.rate.map(|rate| Departed::new(rate, next, 0));
        self.opens = self.opens.max(at + saved.opens);
        let spans = saved.reserved.iter();
        self.reserved = Reserved::new(spans.map(|(from, to)| (at + *from, at + *to)).collect());
    }
}

/// Converts ticks to an instant, rounded down to a nanosecond.
fn moment_before(rate: Rate, ticks: Ticks) -> Moment {
    let nanos = ticks.div_euclid(rate.ticks_per_nano());
    Moment::from_nanos(u64::try_from(nanos).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fixtures::{START, at, cost, rate, secs};
    use crate::{Admission, GateLimits, Share};

    fn paced(rate: Rate) -> Gate<u8, u32> {
        Gate::new(GateLimits {
            rate: Some(rate),
            ..GateLimits::NONE
        })
    }

    /// Joins requests of cost 1, 2, 3, 1 and so on.
    fn join_all(gate: &mut Gate<u8, u32>, count: u32, now: Moment) {
        for number in 0..count {
            gate.join(&Share::of(1), cost(1 + number % 3), now, || number);
        }
    }

    /// Returns the instants at which the waiters leave.
    fn dues(gate: &mut Gate<u8, u32>) -> Vec<Moment> {
        let far = START + secs(1_000);
        std::iter::from_fn(|| gate.take(far).map(|release| release.due)).collect()
    }

    #[test]
    fn a_restored_pause_continues() {
        let mut gate = paced(rate("10r/s"));
        gate.pause(at(9_000));
        let mut next = paced(rate("10r/s"));
        next.restore(&gate.save(at(2_000), &[]), at(2_000));
        join_all(&mut next, 1, at(2_000));
        assert_eq!(dues(&mut next), [at(9_000)]);
    }

    #[test]
    fn a_gate_without_a_rate_saves_only_its_pause() {
        let mut gate: Gate<u8, u32> = Gate::new(GateLimits::NONE);
        join_all(&mut gate, 5, START);
        assert_eq!(gate.save(START, &[]), SavedGate::default());
    }

    /// Two gates of one origin: the old one with waiters and later requests, and the new one.
    #[derive(Debug)]
    struct Pair {
        old: Gate<u8, u32>,
        new: Gate<u8, u32>,
        /// Instant and cost of each departure.
        left: Vec<(Moment, u32)>,
    }

    impl Pair {
        fn take(&mut self, until: Moment) {
            for gate in [&mut self.old, &mut self.new] {
                while let Some(release) = gate.take(until) {
                    self.left.push((release.due, release.cost));
                }
            }
        }

        /// Joins the new gate or the old one.
        fn join(&mut self, is_new: bool, key: u8, of_request: u32, now: Moment) {
            self.take(now);
            let gate = if is_new { &mut self.new } else { &mut self.old };
            let joined = gate.join(&Share::of(key), cost(of_request), now, || 0);
            if joined == Admission::Passed {
                self.left.push((now, of_request));
            }
        }
    }

    fn rates() -> impl Strategy<Value = Rate> {
        prop::sample::select(["3r/s", "100r/s", "7r/250ms", "1000r/s"].map(rate).to_vec())
    }

    /// Requests, each with the milliseconds until it arrives, its key and its cost.
    fn requests() -> impl Strategy<Value = Vec<(u64, u8, u32)>> {
        prop::collection::vec((0..3_000_u64, 0..3_u8, 1..4_u32), 0..40)
    }

    proptest! {
        #![proptest_config(testing::config())]

        /// Checks that the old gate and the new one together send one stream.
        ///
        /// Some of the requests that were expected when the old gate was saved never come.
        ///
        /// Departures are an interval apart, and no request waits for ever.
        #[test]
        fn two_gates_are_one_stream(
            rate in rates(),
            of_next in prop::option::of(rates()),
            waiting in 0..10_u32,
            coming in requests(),
            disconnected in prop::collection::vec(any::<bool>(), 40),
            newcomers in requests(),
            is_uniform in any::<bool>(),
        ) {
            let (saved_at, rate_of_next) = (at(150), of_next.unwrap_or(rate));
            // Instant, key and cost of a request.
            let arrival = |(millis, key, cost): &(u64, u8, u32)| {
                let due = saved_at + Duration::from_micros(millis * 997);
                (due, *key, if is_uniform { 1 } else { *cost })
            };
            let coming: Vec<_> = coming.iter().map(arrival).collect();
            let mut old = paced(rate);
            join_all(&mut old, waiting, START);
            while old.take(saved_at).is_some() {}
            let expected = coming.iter();
            let expected = expected.map(|it| ExpectedRequest { due: it.0, cost: cost(it.2) });
            let mut new = paced(rate_of_next);
            new.restore(&old.save(saved_at, &expected.collect::<Vec<_>>()), saved_at);
            let mut pair = Pair { old, new, left: Vec::new() };
            let coming = coming.into_iter().zip(disconnected).filter(|(_, disconnected)| !disconnected);
            let coming = coming.map(|((due, key, cost), _)| (due, false, key, cost));
            let newcomers = newcomers.iter().map(arrival);
            let newcomers = newcomers.map(|(due, key, cost)| (due, true, key, cost));
            let mut joins: Vec<_> = coming.chain(newcomers).collect();
            joins.sort_unstable();
            let last = joins.last().map_or(saved_at, |join| join.0);
            for (now, is_new, key, cost) in joins {
                pair.join(is_new, key, cost, now);
            }
            let far = last + secs(10_000);
            pair.take(far);
            prop_assert_eq!((pair.old.depth(), pair.new.depth()), (0, 0));
            pair.new.reserved.forget(far);
            prop_assert!(pair.new.reserved.is_empty());
            pair.left.sort_unstable();
            let interval = rate_of_next.interval().min(rate.interval());
            // Instants passed between processes are rounded to whole nanoseconds.
            let rounding = Duration::from_nanos(3);
            for two in pair.left.windows(2) {
                let apart = two[1].0.since(two[0].0);
                prop_assert!(apart + rounding >= interval, "{:?} of {:?}", apart, pair.left);
            }
        }

        /// Checks that the reserved spans contain all departures of the old gate.
        ///
        /// Without expected requests, nothing is reserved.
        #[test]
        fn reserved_spans_contain_the_departures_of_the_old_gate(rate in rates(), coming in requests()) {
            let mut old = paced(rate);
            prop_assert_eq!(old.save(START, &[]).reserved, []);
            let expect = |(millis, _, of_request): &(u64, u8, u32)| ExpectedRequest {
                due: at(*millis),
                cost: cost(*of_request),
            };
            let mut to_come: Vec<_> = coming.iter().map(expect).collect();
            let saved = old.save(START, &to_come);
            let spans = saved.reserved.iter().map(|(from, to)| (START + *from, START + *to));
            let known = Reserved::new(spans.collect());
            to_come.sort_unstable_by_key(|it| it.due);
            let mut left = Vec::new();
            for ExpectedRequest { due, cost } in to_come {
                while let Some(release) = old.take(due) {
                    left.push(release.due);
                }
                if old.join(&Share::of(1), cost, due, || 0) == Admission::Passed {
                    left.push(due);
                }
            }
            left.extend(dues(&mut old));
            let rounding = Duration::from_nanos(2);
            for due in left {
                let is_in = |(from, to): (Moment, Moment)| {
                    from.before(rounding) <= due && due < to
                };
                prop_assert!(known.spans().any(is_in), "{:?} in {:?}", due, known);
            }
        }
    }
}
