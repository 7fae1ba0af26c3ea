//! Property tests of adversarial arrivals: keys that are new, come back, cost much or disconnect.
//!
//! In a *round* each waiting key departs once. A *first* request is one whose key had no waiter
//! when it joined.

use std::collections::HashMap;

use proptest::prelude::*;
use testing::config;

use super::*;

/// Keys below this number come back. Every other key comes once.
const KNOWN: u32 = 4;

#[derive(Clone, Debug)]
enum Step {
    /// A request of this key, which comes back, with this cost.
    Join(u32, u32),
    /// One request each of this number of new keys.
    Newcomers(u32),
    /// The next waiter departs.
    Take,
    /// A request of this key and cost departs at once, if there are no waiters.
    Depart(u32, u32),
    /// The client of a waiter disconnects.
    Leave(proptest::sample::Index),
}

fn step(max_cost: u32) -> impl Strategy<Value = Step> {
    let known = (0..KNOWN, 1..=max_cost);
    prop_oneof![
        3 => known.clone().prop_map(|(key, cost)| Step::Join(key, cost)),
        3 => (1..4_u32).prop_map(Step::Newcomers),
        6 => Just(Step::Take),
        1 => known.prop_map(|(key, cost)| Step::Depart(key, cost)),
        1 => any::<proptest::sample::Index>().prop_map(Step::Leave),
    ]
}

/// Request that was the first of its key when it joined.
#[derive(Debug)]
struct First {
    key: u32,
    /// Departures since the first one after it joined, by key. `None` before that departure.
    ///
    /// Contains the keys that waited then, and keys that have come back.
    others: Option<HashMap<u32, u32>>,
    /// Departures since it joined.
    departures: u64,
}

/// A queue, and what a test has to know of its waiters.
#[derive(Default)]
struct Scene {
    queue: FairQueue<u32, u64>,
    /// Number, key and position of each waiter.
    waiting: Vec<(u64, u32, Position)>,
    /// By number of the waiter.
    firsts: HashMap<u64, First>,
    /// Number of new keys so far.
    new_keys: u32,
    next_waiter: u64,
    /// Largest number of keys that waited at the same time.
    most_keys: u64,
}

impl Scene {
    /// Returns the waiting keys, each with a count of 0.
    fn keys(&self) -> HashMap<u32, u32> {
        self.waiting.iter().map(|(_, key, _)| (*key, 0)).collect()
    }

    fn join(&mut self, key: u32, cost: u32) {
        let waiter = self.next_waiter;
        self.next_waiter += 1;
        if self.queue.depth(&key) == 0 {
            let first = First {
                key,
                others: None,
                departures: 0,
            };
            self.firsts.insert(waiter, first);
        }
        let position = self.queue.join(&key, 1, cost, waiter);
        self.waiting.push((waiter, key, position));
        self.most_keys = self.most_keys.max(self.keys().len() as u64);
    }

    /// Removes the next waiter. Returns it if it was the first of its key when it joined.
    fn take(&mut self) -> Option<First> {
        let keys = self.keys();
        let next = self.queue.take()?;
        self.waiting.retain(|(waiter, ..)| *waiter != next.waiter);
        let taken = self.firsts.remove(&next.waiter);
        for first in self.firsts.values_mut() {
            first.departures += 1;
            let others = first.others.get_or_insert_with(|| keys.clone());
            // A new key counts twice, and fails the test.
            let least = u32::from(next.key >= KNOWN);
            *others.entry(next.key).or_insert(least) += 1;
        }
        taken
    }

    fn step(&mut self, step: &Step) -> Option<First> {
        match step {
            Step::Join(key, cost) => self.join(*key, *cost),
            Step::Newcomers(count) => {
                for _ in 0..*count {
                    self.join(KNOWN + self.new_keys, 1);
                    self.new_keys += 1;
                }
            }
            Step::Take => return self.take(),
            Step::Depart(key, cost) => {
                if self.queue.is_empty() {
                    self.queue.depart(key, 1, *cost);
                }
            }
            Step::Leave(index) => {
                if !self.waiting.is_empty() {
                    let (waiter, _, position) =
                        self.waiting.remove(index.index(self.waiting.len()));
                    self.queue.leave(position);
                    self.firsts.remove(&waiter);
                }
            }
        }
        None
    }
}

proptest! {
    #![proptest_config(config())]

    /// The first request of a key waits for at most one request of each other key.
    ///
    /// The other keys are the ones that wait at the next departure, and known keys that come back.
    #[test]
    fn a_key_waits_for_one_request_of_each_other_key_whoever_comes(
        steps in prop::collection::vec(step(1), 1..400),
    ) {
        let mut scene = Scene::default();
        for step in steps.iter().chain(&vec![Step::Take; 400]) {
            let Some(left) = scene.step(step) else {
                continue;
            };
            for (key, count) in left.others.iter().flatten() {
                prop_assert!(*count <= 1, "{} of {} ahead of {}", count, key, left.key);
            }
        }
    }

    /// The cost of a key's last request delays it by as many rounds, and not by more.
    #[test]
    fn a_key_that_has_cost_much_waits_for_as_many_rounds_whoever_comes(
        steps in prop::collection::vec(step(5), 1..400),
    ) {
        let mut scene = Scene::default();
        for step in &steps {
            if let Some(left) = scene.step(step) {
                // The largest cost, and two rounds of tolerance.
                let rounds = 5 + 2;
                prop_assert!(left.departures <= rounds * scene.most_keys, "{:?}", left);
            }
        }
    }
}
