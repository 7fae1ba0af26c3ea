//! Tests of the charge of each departure to its key: examples, a plain model, and attacks of a key.
//!
//! The cost of a departure is *charged* to its key, which moves the key back in the order. A *slot*
//! is an instant at which a request may leave: the slots of a rate are one interval apart.

use proptest::prelude::*;
use proptest::sample::Index;
use testing::config;

use super::*;
use crate::fair_queue::model::Model;
use crate::fixtures::{at, cost, millis_of, rate};

fn limits(rate: Option<Rate>, max_in_flight: Option<usize>) -> GateLimits {
    GateLimits {
        rate,
        max_in_flight,
        queue: Some(10_000),
        max_queue: 100_000,
    }
}

/// Returns a gate of 10r/s: its interval is 100 ms.
fn gate_of_10_a_second<K: Hash + Eq + Clone, W>() -> Gate<K, W> {
    Gate::new(limits(Some(rate("10r/s")), None))
}

fn share(key: char, weight: u32) -> Share<char> {
    Share {
        weight,
        ..Share::of(key)
    }
}

/// Joins requests of some keys: key, weight and number. Returns the keys that leave at once.
fn join_all(gate: &mut Gate<char, u32>, millis: u64, keys: &[(char, u32, u32)]) -> String {
    let mut left = String::new();
    for (key, weight, count) in keys {
        for _ in 0..*count {
            let joined = gate.join(&share(*key, *weight), Cost::ONE, at(millis), || 0);
            left.extend((joined == Admission::Passed).then_some(*key));
        }
    }
    left
}

/// Joins requests, and returns all keys in the order in which they leave.
fn order(gate: &mut Gate<char, u32>, millis: u64, keys: &[(char, u32, u32)]) -> String {
    let mut left = join_all(gate, millis, keys);
    left.extend(std::iter::from_fn(|| {
        gate.give_back(at(millis));
        gate.take(at(1_000_000)).map(|release| release.key)
    }));
    left
}

#[test]
fn keys_of_one_instant_leave_as_the_worked_example_says() {
    let keys = [('a', 3, 9), ('b', 1, 3), ('c', 1, 3)];
    for gate in [limits(Some(rate("10r/s")), None), limits(None, Some(1))] {
        let mut gate = Gate::new(gate);
        assert_eq!(order(&mut gate, 0, &keys), "abcaabcaaabcaaa");
        // After a time without requests, the order is the same.
        assert_eq!(order(&mut gate, 900_000, &keys), "abcaabcaaabcaaa");
    }
}

#[test]
fn idle_time_clears_the_charges_of_a_key() {
    let mut gate = gate_of_10_a_second();
    gate.join(&share('a', 1), cost(64), at(0), || 0);
    // A pause does not keep old charges.
    gate.pause(at(8_000));
    assert_eq!(order(&mut gate, 7_000, &[('a', 1, 2), ('b', 1, 2)]), "abab");
}

#[test]
fn a_gate_with_one_queue_needs_no_key() {
    let mut gate = gate_of_10_a_second();
    assert!(gate.pass(Cost::ONE, at(0)));
    assert!(!gate.pass(Cost::ONE, at(0)));
    assert_eq!(order(&mut gate, 0, &[('a', 1, 2), ('b', 1, 1)]), "aba");
}

#[derive(Clone, Debug)]
enum Step {
    /// A request of this key and cost joins.
    Join(u8, u32),
    /// One of the waiters disconnects.
    Leave(Index),
    /// A request at the origin ends.
    GiveBack,
}

fn step() -> impl Strategy<Value = Step> {
    let cost = prop_oneof![3 => Just(1_u32), 1 => 1..=64_u32];
    prop_oneof![
        6 => (0..5_u8, cost).prop_map(|(key, cost)| Step::Join(key, cost)),
        1 => any::<Index>().prop_map(Step::Leave),
        4 => Just(Step::GiveBack),
    ]
}

/// Step of a run in which one key always waits.
#[derive(Clone, Copy, Debug)]
enum Action {
    /// A waiter of another key leaves. If there is none, another key joins.
    Leave,
    /// Another key joins.
    Join,
    /// The next request departs.
    Serve,
}

fn action() -> impl Strategy<Value = Action> {
    let actions = vec![Action::Leave, Action::Join, Action::Serve, Action::Serve];
    prop::sample::select(actions)
}

/// A gate in its plainest form. All instants are in milliseconds.
struct PlainGate {
    model: Model,
    /// Weight of each key.
    weights: Vec<u32>,
    /// Interval of the rate; 0: no rate.
    interval: u64,
    permits: Option<usize>,
    in_flight: usize,
    /// Instant of the next slot.
    next: u64,
    /// Instant at which a permit last became free.
    opens: u64,
    /// Number, cost and instant of arrival of each waiter.
    waiting: Vec<(u64, u32, u64)>,
}

impl PlainGate {
    fn has_permit(&self) -> bool {
        self.permits.is_none_or(|permits| self.in_flight < permits)
    }

    /// Records that a request leaves.
    fn depart(&mut self, due: u64, cost: u32) {
        self.in_flight += 1;
        self.next = due + self.interval * u64::from(cost);
    }

    /// Removes the next request that leaves by `until`. Returns its key, number and instant.
    fn take(&mut self, until: u64) -> Option<(u8, u64, u64)> {
        let due = self.next.max(self.opens);
        if self.waiting.is_empty() || !self.has_permit() || due > until {
            return None;
        }
        let (key, number) = self.model.take()?;
        let at = self.waiting.iter().position(|it| it.0 == number)?;
        let (_, cost, since) = self.waiting.remove(at);
        let due = due.max(since);
        self.depart(due, cost);
        Some((key, number, due))
    }

    /// Joins the gate. Returns whether the request leaves at once.
    fn join(&mut self, key: u8, cost: u32, number: u64, now: u64) -> bool {
        let weight = self.weights[usize::from(key)];
        if self.waiting.is_empty() && self.has_permit() && self.next <= now {
            self.model.restart();
            self.model.depart(key, weight, cost);
            self.depart(now, cost);
            return true;
        }
        self.model.join(key, weight, cost, number);
        self.waiting.push((number, cost, now));
        false
    }
}

proptest! {
    #![proptest_config(config())]

    /// Compares departures with a model that uses fractions and searches all waiters.
    #[test]
    fn any_trace_leaves_as_in_the_model(
        weights in prop::collection::vec(1..=64_u32, 5),
        has_pace in any::<bool>(),
        permits in prop::option::of(1..4_usize),
        steps in prop::collection::vec((step(), 0..300_u64), 1..200),
    ) {
        let rate = has_pace.then_some(rate("10r/s"));
        let mut gate = Gate::<u8, u64>::new(limits(rate, permits));
        let interval = if has_pace { 100 } else { 0 };
        let mut plain = PlainGate {
            model: Model::new(), weights, interval, permits, in_flight: 0, next: 0, opens: 0,
            waiting: Vec::new(),
        };
        let (mut now, mut number, mut positions) = (0, 0, Vec::new());
        for (step, millis) in steps {
            now += millis;
            loop {
                let left = gate.take(at(now)).map(|it| (it.key, it.waiter, it.due));
                let expected = plain.take(now).map(|(key, number, due)| (key, number, at(due)));
                prop_assert_eq!(left, expected);
                let Some((_, number, _)) = left else { break };
                positions.retain(|(known, _)| *known != number);
            }
            match step {
                Step::Join(key, of_request) => {
                    number += 1;
                    let share = Share { weight: plain.weights[usize::from(key)], ..Share::of(key) };
                    let passes = plain.join(key, of_request, number, now);
                    match gate.join(&share, cost(of_request), at(now), || number) {
                        Admission::Passed => prop_assert!(passes),
                        Admission::Waiting(position) => {
                            prop_assert!(!passes);
                            positions.push((number, position));
                        }
                        Admission::Rejected(_) => prop_assert!(false, "there is room"),
                    }
                }
                Step::Leave(index) => {
                    if !positions.is_empty() {
                        let (number, position) = positions.remove(index.index(positions.len()));
                        prop_assert_eq!(gate.leave(&position), Some(number));
                        prop_assert!(plain.model.leave(number));
                        plain.waiting.retain(|(known, ..)| *known != number);
                    }
                }
                Step::GiveBack => {
                    if plain.in_flight > 0 {
                        if !plain.has_permit() {
                            plain.opens = now;
                        }
                        plain.in_flight -= 1;
                        gate.give_back(at(now));
                    }
                }
            }
        }
    }

    /// Checks that no key gets more than a key that always waits.
    ///
    /// The other keys may arrive at any time, send requests of high cost, leave and join again.
    #[test]
    fn no_key_gets_more_than_a_key_that_always_waits(
        before in prop::collection::vec((0..3_u8, 1..=64_u32, 0..20_000_u64), 0..6),
        steps in prop::collection::vec((0..3_u8, 1..=64_u32, any::<Index>(), action()), 1..200),
    ) {
        const ALWAYS_WAITS: u8 = 9;
        let mut gate = gate_of_10_a_second::<u8, ()>();
        let (mut now, mut positions) = (0, Vec::new());
        for (key, of_request, millis) in before {
            now += millis;
            while gate.take(at(now)).is_some() {}
            gate.join(&Share::of(key), cost(of_request), at(now), || ());
        }
        // By key: total cost of the departures.
        let mut cost_served = [0_u64; 10];
        let join_always_waiting = |gate: &mut Gate<u8, ()>, served: &mut [u64; 10], now| {
            let joined = gate.join(&Share::of(ALWAYS_WAITS), Cost::ONE, at(now), || ());
            served[usize::from(ALWAYS_WAITS)] += u64::from(joined == Admission::Passed);
        };
        for _ in 0..3 {
            join_always_waiting(&mut gate, &mut cost_served, now);
        }
        for (key, of_request, index, action) in steps {
            match action {
                Action::Leave if !positions.is_empty() => {
                    let position = positions.remove(index.index(positions.len()));
                    gate.leave(&position);
                }
                Action::Leave | Action::Join => {
                    let joined = gate.join(&Share::of(key), cost(of_request), at(now), || ());
                    if let Admission::Waiting(position) = joined {
                        positions.push(position);
                    }
                }
                Action::Serve => {
                    let due = gate.due().expect("one waits");
                    now = millis_of(due);
                    let left = gate.take(due).expect("it is due");
                    cost_served[usize::from(left.key)] += u64::from(left.cost);
                    if left.key == ALWAYS_WAITS {
                        join_always_waiting(&mut gate, &mut cost_served, now);
                    }
                }
            }
            for served in &cost_served[..3] {
                let ahead = served.saturating_sub(cost_served[usize::from(ALWAYS_WAITS)]);
                // The largest cost, and one request: a key may lead by one departure.
                prop_assert!(ahead <= 64 + 1, "{:?}", cost_served);
            }
        }
    }
}

#[test]
fn departures_in_granted_slots_are_charged() {
    let mut gate = gate_of_10_a_second();
    gate.share_grid();
    // Twelve slots, 100 ms apart.
    let slots = |from: u64| std::array::from_fn::<_, 12, _>(|nth| at(from + 100 * nth as u64));
    // The gate holds a slot for the first request. More slots are granted later.
    gate.grant(&slots(0)[..1], at(100), 1.0, at(0));
    let mut left = join_all(&mut gate, 0, &[('a', 3, 5), ('b', 1, 2), ('c', 1, 2)]);
    gate.grant(&slots(0)[1..], at(1200), 1.0, at(0));
    left.extend(std::iter::from_fn(|| gate.take(at(1150)).map(|it| it.key)));
    assert_eq!(left, "abcaabcaa");
    // Much later no old charge counts, even while the next slot is being claimed.
    join_all(&mut gate, 600_000, &[('c', 1, 1), ('a', 3, 1)]);
    gate.grant(&slots(600_000), at(601_200), 1.0, at(600_000));
    let left: String = std::iter::from_fn(|| gate.take(at(700_000)).map(|it| it.key)).collect();
    assert_eq!(left, "ca");
}
