//! Properties of the fair queue, against the naive model.
//!
//! A departure is *charged* to its key by its cost, also if the request has not waited.

use proptest::prelude::*;
use testing::config;

use super::model::Model;
use super::*;

const KEYS: u8 = 6;

#[derive(Clone, Debug)]
enum Step {
    /// A request of this key and cost joins.
    Join(u8, u32),
    /// The next waiter departs.
    Take,
    /// A request of this key and cost departs at once, if there are no waiters.
    Depart(u8, u32),
    /// All charges are forgotten, if there are no waiters.
    Restart,
    /// One of the waiters leaves, by their order of joining.
    Leave(proptest::sample::Index),
}

fn step(costs: std::ops::Range<u32>) -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..KEYS, costs.clone()).prop_map(|(key, cost)| Step::Join(key, cost)),
        4 => Just(Step::Take),
        2 => (0..KEYS, costs).prop_map(|(key, cost)| Step::Depart(key, cost)),
        1 => Just(Step::Restart),
        1 => any::<proptest::sample::Index>().prop_map(Step::Leave),
    ]
}

/// Queue, the model beside it, and the waiters.
struct Both {
    queue: FairQueue<u8, u64>,
    model: Model,
    /// Weight of each key.
    weights: Vec<u32>,
    /// Number and position of each waiter.
    waiting: Vec<(u64, Position)>,
    /// Number of joins so far.
    joined: u64,
}

impl Both {
    fn new(weights: &[u32]) -> Self {
        Self {
            queue: FairQueue::default(),
            model: Model::new(),
            weights: weights.to_vec(),
            waiting: Vec::new(),
            joined: 0,
        }
    }

    fn step(&mut self, step: &Step) -> Result<(), TestCaseError> {
        match step {
            Step::Join(key, cost) => {
                let weight = self.weights[usize::from(*key)];
                let position = self.queue.join(key, weight, *cost, self.joined);
                self.model.join(*key, weight, *cost, self.joined);
                self.waiting.push((self.joined, position));
                self.joined += 1;
            }
            Step::Take => {
                let next = self.queue.take().map(|next| (next.key, next.waiter));
                prop_assert_eq!(next, self.model.take());
                self.waiting
                    .retain(|(number, _)| next.is_none_or(|it| it.1 != *number));
            }
            Step::Depart(key, cost) => {
                if self.queue.is_empty() {
                    let weight = self.weights[usize::from(*key)];
                    self.queue.depart(key, weight, *cost);
                    self.model.depart(*key, weight, *cost);
                }
            }
            Step::Restart => {
                if self.queue.is_empty() {
                    self.queue.restart();
                    self.model.restart();
                }
            }
            Step::Leave(index) => {
                if !self.waiting.is_empty() {
                    let (number, position) = self.waiting.remove(index.index(self.waiting.len()));
                    prop_assert_eq!(self.queue.leave(position), Some(number));
                    prop_assert!(self.model.leave(number));
                }
            }
        }
        prop_assert_eq!(self.queue.len(), self.model.len());
        Ok(())
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_trace_leaves_as_in_the_model(
        weights in prop::collection::vec(1..=MAX_WEIGHT, usize::from(KEYS)),
        steps in prop::collection::vec(step(1..20), 1..300),
    ) {
        let mut both = Both::new(&weights);
        for step in &steps {
            both.step(step)?;
        }
        while !both.queue.is_empty() {
            both.step(&Step::Take)?;
        }
    }

    #[test]
    fn a_prediction_is_what_happens_or_a_round_too_long(
        steps in prop::collection::vec(step(1..2), 1..200),
        key in 0..=KEYS,
    ) {
        let mut both = Both::new(&[1; KEYS as usize]);
        for step in &steps {
            both.step(step)?;
        }
        let predicted = both.queue.ahead_of_new(&key);
        let happens = both.model.ahead_of_new(key, 1) as u64;
        // Number of keys that have more waiters.
        let mut deeper = 0;
        both.queue.depths(0, usize::MAX, |_, depth| {
            deeper += usize::from(depth > both.queue.depth(&key));
        });
        let is_right = (happens..=happens + deeper as u64).contains(&predicted);
        prop_assert!(is_right, "{predicted} predicted, {happens} happen");
    }
}
