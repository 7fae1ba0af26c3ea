use std::collections::VecDeque;

use super::origin::exponential;
use crate::simulation::random::Random;

/// What clients ask for: the requests that wait at the gate.
#[derive(Debug)]
pub(super) enum Demand {
    /// Always more than leave.
    Endless,
    /// Requests that come at random, so many a second, which may change at a time.
    Arrivals(Arrivals),
}

#[derive(Debug)]
pub(super) struct Arrivals {
    /// From which second on, and how many a second.
    rates: Vec<(f64, f64)>,
    waiting: VecDeque<f64>,
    next: f64,
    random: Random,
    has_been_empty: bool,
    pub most_waiting: usize,
}

impl Arrivals {
    pub fn new(rates: &[(f64, f64)], random: Random) -> Self {
        Self {
            rates: rates.to_vec(),
            waiting: VecDeque::new(),
            next: 0.0,
            random,
            has_been_empty: false,
            most_waiting: 0,
        }
    }

    fn arrive_until(&mut self, now: f64) {
        while self.next <= now {
            self.waiting.push_back(self.next);
            let rate = self.rates.iter().rev().find(|(from, _)| *from <= self.next);
            let rate = rate.map_or(1.0, |(_, rate)| *rate);
            self.next += exponential(&mut self.random, 1.0 / rate);
        }
        self.most_waiting = self.most_waiting.max(self.waiting.len());
    }
}

impl Demand {
    /// Takes the request that leaves at `now`, and how long it has waited; `None` if none waits.
    pub fn take(&mut self, now: f64) -> Option<f64> {
        match self {
            Self::Endless => Some(0.31),
            Self::Arrivals(arrivals) => {
                arrivals.arrive_until(now);
                let came = arrivals.waiting.pop_front();
                arrivals.has_been_empty |= arrivals.waiting.is_empty();
                came.map(|came| now - came)
            }
        }
    }

    /// Whether a request waited all the time since the last call.
    pub fn has_waited(&mut self) -> bool {
        match self {
            Self::Endless => true,
            Self::Arrivals(arrivals) => !std::mem::take(&mut arrivals.has_been_empty),
        }
    }
}
