//! Tests of the charge of each departure to its key: examples, a plain model, and attacks of a key.

use proptest::prelude::*;
use proptest::sample::Index;
use testing::config;

use super::*;
use crate::fair_queue::model::Model;

fn at(millis: u64) -> Moment {
    Moment::from_nanos((1_000 + millis) * 1_000_000)
}

fn limits(rate: Option<&str>, max_in_flight: Option<usize>) -> GateLimits {
    GateLimits {
        rate: rate.map(|rate| rate.parse().expect("a rate")),
        max_in_flight,
        queue: Some(10_000),
        max_queue: 100_000,
    }
}

fn share(key: char, weight: u32) -> Share<char> {
    Share {
        weight,
        ..Share::of(key)
    }
}

/// Joins requests of each key and weight. Returns the keys in the order in which they leave.
fn order(gate: &mut Gate<char, u32>, millis: u64, keys: &[(char, u32, u32)]) -> String {
    let mut left = String::new();
    for (key, weight, many) in keys {
        for _ in 0..*many {
            let joined = gate.join(&share(*key, *weight), Cost::ONE, at(millis), || 0);
            left.extend((joined == Admission::Passed).then_some(*key));
        }
    }
    left.extend(std::iter::from_fn(|| {
        gate.give_back(at(millis));
        gate.take(at(1_000_000)).map(|release| release.key)
    }));
    left
}

#[test]
fn keys_of_one_instant_leave_as_the_worked_example_says() {
    let keys = [('a', 3, 9), ('b', 1, 3), ('c', 1, 3)];
    for gate in [limits(Some("10r/s"), None), limits(None, Some(1))] {
        let mut gate = Gate::new(gate);
        assert_eq!(order(&mut gate, 0, &keys), "abcaabcaaabcaaa");
        // After a time without requests, the order is the same.
        assert_eq!(order(&mut gate, 900_000, &keys), "abcaabcaaabcaaa");
    }
}

#[test]
fn idle_time_clears_the_charges_of_a_key() {
    let mut gate = Gate::new(limits(Some("10r/s"), None));
    let costly = Cost::new(64).expect("a cost");
    gate.join(&share('a', 1), costly, at(0), || 0);
    // A pause does not keep old charges.
    gate.pause(at(8_000));
    assert_eq!(order(&mut gate, 7_000, &[('a', 1, 2), ('b', 1, 2)]), "abab");
}

#[test]
fn a_gate_with_one_queue_needs_no_key() {
    let mut gate = Gate::<char, u32>::new(limits(Some("10r/s"), None));
    assert!(gate.pass(Cost::ONE, at(0)));
    assert!(!gate.pass(Cost::ONE, at(0)));
    assert_eq!(order(&mut gate, 0, &[('a', 1, 2), ('b', 1, 1)]), "aba");
}

#[derive(Clone, Debug)]
enum Step {
    Join { key: u8, cost: u32 },
    Leave(Index),
    GiveBack,
}

fn step() -> impl Strategy<Value = Step> {
    let cost = prop_oneof![3 => Just(1_u32), 1 => 1..=64_u32];
    prop_oneof![
        6 => (0..5_u8, cost).prop_map(|(key, cost)| Step::Join { key, cost }),
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
    prop_oneof![
        1 => Just(Action::Leave),
        1 => Just(Action::Join),
        2 => Just(Action::Serve),
    ]
}

/// A gate in its plainest form. Its interval is 100 ms, if it has a rate.
struct PlainGate {
    model: Model,
    weights: Vec<u32>,
    has_pace: bool,
    permits: Option<usize>,
    in_flight: usize,
    /// Instant of the next slot, in milliseconds.
    next: u64,
    /// Instant at which a permit last became free, in milliseconds.
    opens: u64,
    /// Number, cost and instant of arrival of each waiter.
    waiting: Vec<(u64, u32, u64)>,
}

impl PlainGate {
    fn has_permit(&self) -> bool {
        self.permits.is_none_or(|permits| self.in_flight < permits)
    }

    fn leaves(&mut self, due: u64, cost: u32) {
        self.in_flight += 1;
        self.next = if self.has_pace {
            due + 100 * u64::from(cost)
        } else {
            0
        };
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
        self.leaves(due, cost);
        Some((key, number, due))
    }

    /// Joins the gate. Returns whether the request leaves at once.
    fn join(&mut self, key: u8, cost: u32, number: u64, now: u64) -> bool {
        let weight = self.weights[usize::from(key)];
        if self.waiting.is_empty() && self.has_permit() && self.next <= now {
            self.model.restart();
            self.model.depart(key, weight, cost);
            self.leaves(now, cost);
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
        let rate = has_pace.then_some("10r/s");
        let mut gate = Gate::<u8, u64>::new(limits(rate, permits));
        let mut plain = PlainGate {
            model: Model::new(), weights, has_pace, permits, in_flight: 0, next: 0, opens: 0,
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
                Step::Join { key, cost } => {
                    number += 1;
                    let share = Share { weight: plain.weights[usize::from(key)], ..Share::of(key) };
                    let passes = plain.join(key, cost, number, now);
                    let cost = Cost::new(cost).expect("a cost");
                    match gate.join(&share, cost, at(now), || number) {
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
        let mut gate = Gate::<u8, (u8, u32)>::new(limits(Some("10r/s"), None));
        let (mut now, mut positions) = (0, Vec::new());
        for (key, cost, millis) in before {
            now += millis;
            while gate.take(at(now)).is_some() {}
            let cost = Cost::new(cost).expect("a cost");
            gate.join(&Share::of(key), cost, at(now), || (key, cost.get()));
        }
        let mut cost_served = [0_u64; 10];
        let join_always_waiting = |gate: &mut Gate<u8, (u8, u32)>, served: &mut [u64; 10], now| {
            let share = Share::of(ALWAYS_WAITS);
            let joined = gate.join(&share, Cost::ONE, at(now), || (ALWAYS_WAITS, 1));
            served[usize::from(ALWAYS_WAITS)] += u64::from(joined == Admission::Passed);
        };
        for _ in 0..3 {
            join_always_waiting(&mut gate, &mut cost_served, now);
        }
        for (key, cost, index, action) in steps {
            match action {
                Action::Leave if !positions.is_empty() => {
                    let position = positions.remove(index.index(positions.len()));
                    gate.leave(&position);
                }
                Action::Leave | Action::Join => {
                    let cost = Cost::new(cost).expect("a cost");
                    let joined = gate.join(&Share::of(key), cost, at(now), || (key, cost.get()));
                    if let Admission::Waiting(position) = joined {
                        positions.push(position);
                    }
                }
                Action::Serve => {
                    let due = gate.due().expect("one waits");
                    now = due.since(at(0)).as_millis().try_into().expect("soon");
                    let left = gate.take(due).expect("it is due");
                    cost_served[usize::from(left.key)] += u64::from(left.cost);
                    if left.key == ALWAYS_WAITS {
                        join_always_waiting(&mut gate, &mut cost_served, now);
                    }
                }
            }
            for key in 0..3 {
                let of_waiting_key = cost_served[usize::from(ALWAYS_WAITS)];
                let ahead = cost_served[key].saturating_sub(of_waiting_key);
                // The largest cost, and one request: a key may lead by one departure.
                prop_assert!(ahead <= 64 + 1, "{:?}", cost_served);
            }
        }
    }
}

#[test]
fn departures_in_granted_slots_are_charged() {
    let mut gate = Gate::<char, u32>::new(limits(Some("10r/s"), None));
    gate.share_grid();
    let keys = [('a', 3, 5), ('b', 1, 2), ('c', 1, 2)];
    // The gate holds a slot for the first request. More slots are claimed later.
    let slots = |from: u64| {
        (0..12)
            .map(move |nth| at(from + 100 * nth))
            .collect::<Vec<_>>()
    };
    gate.grant(&slots(0)[..1], at(100), 1.0, at(0));
    let mut left = String::new();
    for (key, weight, many) in keys {
        for _ in 0..many {
            let joined = gate.join(&share(key, weight), Cost::ONE, at(0), || 0);
            left.extend((joined == Admission::Passed).then_some(key));
        }
    }
    gate.grant(&slots(0)[1..], at(1200), 1.0, at(0));
    left.extend(std::iter::from_fn(|| gate.take(at(1150)).map(|it| it.key)));
    assert_eq!(left, "abcaabcaa");
    // Much later no old charge counts, even while the next slot is being claimed.
    let long = at(600_000);
    for (key, weight) in [('c', 1), ('a', 3)] {
        gate.join(&share(key, weight), Cost::ONE, long, || 0);
    }
    gate.grant(&slots(600_000), at(601_200), 1.0, long);
    let left: String = std::iter::from_fn(|| gate.take(at(700_000)).map(|it| it.key)).collect();
    assert_eq!(left, "ca");
}
