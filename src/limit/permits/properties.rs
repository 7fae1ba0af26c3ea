//! Properties of permits, against a naive model: all waiters in one list, searched linearly.
//!
//! A request of a key runs while fewer than `in_flight` of its requests run, and waits otherwise.

use std::num::NonZeroU32;

use proptest::collection::vec;
use proptest::prelude::*;

use super::{Permits, Terms};
use crate::fixtures::{START, ms, nonzero};
use crate::{Moment, Ticket};

#[derive(Clone, Debug)]
enum Step {
    /// A request is due that joined `ago` milliseconds before. `max_wait` is in milliseconds.
    Come {
        in_flight: u32,
        ago: u64,
        max_wait: Option<u64>,
    },
    /// The running request at this index of all running ones ends.
    End(usize),
    /// The waiter at this index disconnects.
    Leave(usize),
    /// Time passes, in milliseconds.
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let max_wait = prop_oneof![Just(None), (1..200_u64).prop_map(Some)];
    prop_oneof![
        4 => (1..4_u32, 0..20_u64, max_wait)
            .prop_map(|(in_flight, ago, max_wait)| Step::Come { in_flight, ago, max_wait }),
        3 => (0..8_usize).prop_map(Step::End),
        1 => (0..8_usize).prop_map(Step::Leave),
        2 => (1..60_u64).prop_map(Step::Pass),
    ]
}

/// Waiter of the model.
struct ModelWaiter {
    terms: Terms,
    joined: Moment,
    ticket: u64,
}

#[derive(Default)]
struct Model {
    running: Vec<u64>,
    waiting: Vec<ModelWaiter>,
}

impl Model {
    fn is_free(&self, in_flight: NonZeroU32) -> bool {
        self.running.len() < in_flight.get() as usize
    }

    /// Starts all waiters that can start, and returns their tickets.
    fn start(&mut self) -> Vec<u64> {
        let mut started = Vec::new();
        self.waiting
            .sort_by_key(|waiting| (waiting.joined, waiting.ticket));
        let next = |model: &Self| {
            let mut waiting = model.waiting.iter();
            waiting.position(|waiting| model.is_free(waiting.terms.in_flight))
        };
        while let Some(index) = next(self) {
            let ticket = self.waiting.remove(index).ticket;
            self.running.push(ticket);
            started.push(ticket);
        }
        started
    }

    /// Removes all waiters that have waited for their `max_wait`. Returns their tickets.
    fn expire(&mut self, now: Moment) -> Vec<u64> {
        let is_over = |waiting: &ModelWaiter| {
            let max = waiting.terms.max_wait;
            max.is_some_and(|max| waiting.joined + max <= now)
        };
        let over = self.waiting.extract_if(.., |waiting| is_over(waiting));
        let mut over: Vec<u64> = over.map(|waiting| waiting.ticket).collect();
        over.sort_unstable();
        over
    }
}

proptest! {
    #![proptest_config(testing::config())]

    #[test]
    fn permits_match_the_naive_model(steps in vec(step(), 1..200)) {
        let (mut permits, mut model) = (Permits::default(), Model::default());
        let mut now = START;
        for (ticket, step) in (0_u64..).zip(steps) {
            match step {
                Step::Come { in_flight, ago, max_wait } => {
                    let (in_flight, joined) = (nonzero(in_flight), now.before(ms(ago)));
                    let max_wait = max_wait.map(ms);
                    prop_assert_eq!(permits.is_free(in_flight), model.is_free(in_flight));
                    if permits.is_free(in_flight) {
                        permits.take(Ticket(ticket));
                        model.running.push(ticket);
                    } else {
                        let terms = Terms { in_flight, max_wait };
                        permits.wait(terms, Ticket(ticket), joined, ticket);
                        model.waiting.push(ModelWaiter { terms, joined, ticket });
                    }
                }
                Step::End(index) if index < model.running.len() => {
                    permits.free(Ticket(model.running.remove(index)));
                }
                Step::Leave(index) if index < model.waiting.len() => {
                    let ticket = model.waiting.remove(index).ticket;
                    prop_assert_eq!(permits.leave(Ticket(ticket)), Some(ticket));
                }
                Step::Pass(millis) => now = now + ms(millis),
                Step::End(_) | Step::Leave(_) => {}
            }
            let mut over: Vec<u64> =
                std::iter::from_fn(|| permits.take_expired(now)).collect();
            over.sort_unstable();
            prop_assert_eq!(over, model.expire(now));
            let started: Vec<u64> = std::iter::from_fn(|| {
                let ticket = permits.take_next()?;
                permits.take(Ticket(ticket));
                Some(ticket)
            })
            .collect();
            prop_assert_eq!(started, model.start());
            prop_assert_eq!(permits.running(), model.running.len());
            prop_assert_eq!(permits.depth(), model.waiting.len());
        }
    }
}
