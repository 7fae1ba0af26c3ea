//! Algorithms that never make a request wait: each accepts or rejects at once.
//!
//! A [`Meter`] is the state of one key. An [`Allowance`] is the limit of a request, so limits with
//! different numbers can share one meter. A *window* is a period of the rate, and begins at a
//! multiple of its length since the Unix epoch. [`Metering`] has the operations of all algorithms.

mod fixed_window;
mod sliding_window_counter;
mod sliding_window_log;
mod token_bucket;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

use std::ops::{Deref, DerefMut};

use super::{Algorithm, Cost, Excess, Moment, Rate, Reason, Refusal, Verdict, nanos};
pub use fixed_window::FixedWindow;
pub use sliding_window_counter::SlidingWindowCounter;
pub use sliding_window_log::SlidingWindowLog;
pub use token_bucket::TokenBucket;

/// Limit of a key, as a meter applies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// Rate at which tokens arrive. For windows, the period is the window's length.
    pub rate: Rate,
    /// Size of the bucket in tokens, or the number of requests in one window. At least 1.
    pub capacity: u32,
}

impl Allowance {
    /// Returns the allowance that decides a request of cost 1 as this one decides one of `cost`.
    ///
    /// Its capacity is lower by `cost - 1`, because such a request takes as many tokens more.
    /// A cost above the capacity is treated as equal to it.
    #[must_use]
    pub fn for_cost(self, cost: Cost) -> Self {
        Self {
            capacity: self.capacity.saturating_sub(cost.above_one()).max(1),
            ..self
        }
    }
}

/// State of one key, under one of the algorithms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meter {
    /// See [`Algorithm::TokenBucket`].
    TokenBucket(TokenBucket),
    /// See [`Algorithm::FixedWindow`].
    FixedWindow(FixedWindow),
    /// See [`Algorithm::SlidingWindowLog`].
    SlidingWindowLog(SlidingWindowLog),
    /// See [`Algorithm::SlidingWindowCounter`].
    SlidingWindowCounter(SlidingWindowCounter),
}

/// Operations that each algorithm implements.
pub trait Metering {
    /// Returns the charged requests that still count at `now`.
    ///
    /// The counter of a sliding window estimates this number and rounds it down, as for its
    /// decision.
    fn excess(&self, rate: Rate, now: Moment) -> Excess;

    /// Returns the first instant, `now` or later, at which one more request would be accepted.
    ///
    /// Assumes that `others` requests of cost 1 come first, at `now`. If the result is `now`, the
    /// request is accepted.
    fn accepts_at(&self, allowance: Allowance, others: u32, now: Moment) -> Moment;

    /// Charges a cost at `now`.
    fn charge(&mut self, rate: Rate, cost: Cost, now: Moment);

    /// Refunds a cost that was charged at `at`.
    fn refund(&mut self, rate: Rate, cost: Cost, at: Moment, now: Moment);

    /// Returns the first instant at which removing all charges changes no later answer.
    fn drained_at(&self, rate: Rate) -> Moment;

    /// Changes the rate from `from` to `to`, at `now`.
    fn retune(&mut self, from: Rate, to: Rate, now: Moment);
}

impl Meter {
    /// Returns a meter without any charge; `None` for an algorithm that has a queue.
    pub fn new(algorithm: Algorithm) -> Option<Self> {
        Some(match algorithm {
            Algorithm::LeakyBucket => return None,
            Algorithm::TokenBucket => Self::TokenBucket(TokenBucket::default()),
            Algorithm::FixedWindow => Self::FixedWindow(FixedWindow::default()),
            Algorithm::SlidingWindowLog => Self::SlidingWindowLog(SlidingWindowLog::default()),
            Algorithm::SlidingWindowCounter => {
                Self::SlidingWindowCounter(SlidingWindowCounter::default())
            }
        })
    }

    /// Decides on a request that arrives at `now`, and charges it unless it is rejected.
    ///
    /// Never returns [`Verdict::Delay`].
    pub fn decide(&mut self, allowance: Allowance, cost: Cost, now: Moment) -> Verdict {
        if let Some(refusal) = self.refuses(allowance, cost, now) {
            return Verdict::Reject(refusal);
        }
        self.charge(allowance.rate, cost, now);
        Verdict::Pass {
            excess: self.excess(allowance.rate, now),
        }
    }

    /// Returns the reason why a request that arrives at `now` would be rejected, if it would.
    ///
    /// Charges nothing.
    pub fn refuses(&self, allowance: Allowance, cost: Cost, now: Moment) -> Option<Refusal> {
        let retry_at = self.accepts_at(allowance.for_cost(cost), 0, now);
        (retry_at > now).then(|| Refusal {
            reason: Reason::Burst,
            excess: self.excess(allowance.rate, now).plus(cost),
            retry_at,
        })
    }

    /// Returns the number of consecutive requests of cost 1 that would be accepted at `now`.
    pub fn remaining(&self, allowance: Allowance, now: Moment) -> u32 {
        // Binary search: a request is accepted only if the one before it is.
        let accepted = |others| self.accepts_at(allowance, others, now) <= now;
        let (mut low, mut high) = (0, allowance.capacity);
        while low < high {
            let middle = low + (high - low) / 2;
            if accepted(middle) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// Gives access to the operations of the key's algorithm, without a `match` for each of them.
impl Deref for Meter {
    type Target = dyn Metering;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::TokenBucket(meter) => meter,
            Self::FixedWindow(meter) => meter,
            Self::SlidingWindowLog(meter) => meter,
            Self::SlidingWindowCounter(meter) => meter,
        }
    }
}

impl DerefMut for Meter {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            Self::TokenBucket(meter) => meter,
            Self::FixedWindow(meter) => meter,
            Self::SlidingWindowLog(meter) => meter,
            Self::SlidingWindowCounter(meter) => meter,
        }
    }
}

/// Returns the index of the window that contains `now`, counted from the Unix epoch.
pub(super) fn window_index(rate: Rate, now: Moment) -> u64 {
    now.as_nanos() / period(rate)
}

/// Returns the nanoseconds from the beginning of the window to `now`.
fn nanos_into_window(rate: Rate, now: Moment) -> u64 {
    now.as_nanos() % period(rate)
}

/// Returns the instant at which the window with this index begins.
fn start(rate: Rate, window: u64) -> Moment {
    Moment::from_nanos(window.saturating_mul(period(rate)))
}

/// Returns the length of a window, in nanoseconds.
fn period(rate: Rate) -> u64 {
    nanos(rate.period()).max(1)
}
