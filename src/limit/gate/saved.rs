//! The part of a gate that is saved for the next process.

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
    /// Waiters of this process keep their slots. `to_come` are requests that will still join here,
    /// in any order.
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
        let mut free = next;
        for ExpectedRequest { due, cost } in to_come {
            let ready = free.max(ticks(rate, due.max(opens)));
            let due = self.reserved.fit(rate, ready);
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

/// Returns the last nanosecond at which at most `ticks` have passed.
fn moment_before(rate: Rate, ticks: Ticks) -> Moment {
    let nanos = ticks.div_euclid(rate.ticks_per_nano());
    Moment::from_nanos(u64::try_from(nanos).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Cost, GateLimits, Share};

    const START: Moment = Moment::from_nanos(1_700_000_000_000_000_000);

    fn paced(rate: &str) -> Gate<u8, u32> {
        Gate::new(GateLimits {
            rate: Some(rate.parse().unwrap()),
            ..GateLimits::NONE
        })
    }

    fn ask(gate: &mut Gate<u8, u32>, count: u32, now: Moment) {
        for number in 0..count {
            let cost = Cost::new(1 + number % 3).unwrap();
            gate.join(&Share::of(1), cost, now, || number);
        }
    }

    /// Returns the instants at which the waiters leave.
    fn dues(gate: &mut Gate<u8, u32>) -> Vec<Moment> {
        let far = START + Duration::from_secs(1_000);
        std::iter::from_fn(|| gate.take(far).map(|release| release.due)).collect()
    }

    #[test]
    fn a_restored_pause_continues() {
        let mut gate = paced("10r/s");
        gate.pause(START + Duration::from_secs(9));
        let now = START + Duration::from_secs(2);
        let mut next = paced("10r/s");
        next.restore(&gate.save(now, &[]), now);
        ask(&mut next, 1, now);
        assert_eq!(dues(&mut next), [START + Duration::from_secs(9)]);
    }

    #[test]
    fn a_gate_without_a_rate_saves_only_its_pause() {
        let mut gate: Gate<u8, u32> = Gate::new(GateLimits::NONE);
        ask(&mut gate, 5, START);
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

        fn join(&mut self, is_new: bool, key: u8, cost: u32, now: Moment) {
            self.take(now);
            let gate = if is_new { &mut self.new } else { &mut self.old };
            let whole = Cost::new(cost).unwrap();
            if gate.join(&Share::of(key), whole, now, || 0) == crate::Admission::Passed {
                self.left.push((now, cost));
            }
        }
    }

    fn rates() -> impl Strategy<Value = &'static str> {
        prop::sample::select(vec!["3r/s", "100r/s", "7r/250ms", "1000r/s"])
    }

    /// Requests, each with the milliseconds until it arrives, its key and its cost.
    fn requests() -> impl Strategy<Value = Vec<(u64, u8, u32)>> {
        prop::collection::vec((0..3_000_u64, 0..3_u8, 1..4_u32), 0..40)
    }

    proptest! {
        #![proptest_config(testing::config())]

        /// Checks that the old gate and the new one together send one stream.
        ///
        /// Some of the requests in `to_come` never come.
        ///
        /// Departures are an interval apart, no request waits without a reason, and in any window
        /// the origin gets at most the cost of its rate plus one request.
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
            let at = START + Duration::from_millis(150);
            let cost = |cost: u32| if is_uniform { 1 } else { cost };
            let due = |millis: u64| at + Duration::from_micros(millis * 997);
            let mut one = paced(rate);
            ask(&mut one, waiting, START);
            while one.take(at).is_some() {}
            let to_come = |(millis, _, of): &(u64, u8, u32)| ExpectedRequest {
                due: due(*millis),
                cost: Cost::new(cost(*of)).unwrap(),
            };
            let to_come: Vec<_> = coming.iter().map(to_come).collect();
            let mut new = paced(of_next.unwrap_or(rate));
            new.restore(&one.save(at, &to_come), at);
            let mut pair = Pair { old: one, new, left: Vec::new() };
            let mut joins: Vec<_> = coming
                .iter()
                .zip(&disconnected)
                .filter(|(_, disconnected)| !**disconnected)
                .map(|((millis, key, of), _)| (due(*millis), false, *key, cost(*of)))
                .chain(newcomers.iter().map(|(millis, key, of)| {
                    (due(*millis), true, *key, cost(*of))
                }))
                .collect();
            joins.sort_unstable();
            let last = joins.last().map_or(at, |join| join.0);
            for (now, is_new, key, cost) in joins {
                pair.join(is_new, key, cost, now);
            }
            let far = last + Duration::from_secs(10_000);
            pair.take(far);
            prop_assert_eq!((pair.old.depth(), pair.new.depth()), (0, 0));
            pair.new.reserved.forget(far);
            prop_assert!(pair.new.reserved.is_empty());
            pair.left.sort_unstable();
            let interval_of = |rate: &str| rate.parse::<Rate>().unwrap().interval();
            let interval = interval_of(of_next.unwrap_or(rate)).min(interval_of(rate));
            // Instants passed between processes are rounded to whole nanoseconds.
            let rounding = Duration::from_nanos(3);
            for two in pair.left.windows(2) {
                let apart = two[1].0.since(two[0].0);
                prop_assert!(apart + rounding >= interval, "{:?} of {:?}", apart, pair.left);
            }
        }

        /// Checks that the reserved spans contain all departures of the old gate.
        ///
        /// Nothing is reserved without `to_come`.
        #[test]
        fn reserved_spans_contain_the_departures_of_the_old_gate(rate in rates(), coming in requests()) {
            let gate = paced(rate);
            prop_assert_eq!(gate.save(START, &[]).reserved, []);
            let mut old = paced(rate);
            let to_come = |(millis, _, cost): &(u64, u8, u32)| ExpectedRequest {
                due: START + Duration::from_millis(*millis),
                cost: Cost::new(*cost).unwrap(),
            };
            let mut to_come: Vec<_> = coming.iter().map(to_come).collect();
            let saved = gate.save(START, &to_come);
            let spans = saved.reserved.iter().map(|(from, to)| (START + *from, START + *to));
            let known = Reserved::new(spans.collect());
            to_come.sort_unstable_by_key(|it| it.due);
            let mut left = Vec::new();
            for ExpectedRequest { due, cost } in to_come {
                while let Some(release) = old.take(due) {
                    left.push(release.due);
                }
                if old.join(&Share::of(1), cost, due, || 0) == crate::Admission::Passed {
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
