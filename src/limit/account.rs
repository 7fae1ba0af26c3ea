//! Account of one key: what its earlier requests were charged, under one of the five algorithms.
//!
//! A leaky bucket may make requests wait. The other algorithms are *meters*: they accept or reject
//! a request at once. `rate` and `limit` are not stored here, so routes with different limits can
//! share an account.

use super::{
    Algorithm, Allowance, Bucket, Charge, Cost, Excess, Limit, Meter, Moment, Rate, Refusal,
    Verdict,
};

/// Account of one key, under any of the algorithms.
///
/// In a zone with a queue this is only the bucket: a [`Queue`](super::Queue) keeps the waiters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Account {
    /// State of [`Algorithm::LeakyBucket`].
    Bucket(Bucket),
    /// State of any other algorithm.
    Meter(Box<Meter>),
}

/// Allowance of a limit that never makes requests wait: its burst plus one request.
fn allowance(rate: Rate, limit: Limit) -> Allowance {
    Allowance {
        rate,
        capacity: limit.burst.saturating_add(1),
    }
}

impl Account {
    /// Returns an account without any charge.
    pub fn new(algorithm: Algorithm) -> Self {
        Meter::new(algorithm).map_or_else(
            || Self::Bucket(Bucket::new()),
            |meter| Self::Meter(Box::new(meter)),
        )
    }

    /// Decides on a request that arrives at `now`, and charges it unless it is rejected.
    pub fn decide(&mut self, rate: Rate, limit: Limit, now: Moment) -> Verdict {
        match self {
            Self::Bucket(bucket) => bucket.decide(rate, limit, now),
            Self::Meter(meter) => meter.decide(allowance(rate, limit), limit.cost, now),
        }
    }

    /// Returns the reason why a request that arrives at `now` would be rejected, if it would.
    ///
    /// Charges nothing.
    pub fn refuses(&self, rate: Rate, limit: Limit, now: Moment) -> Option<Refusal> {
        match self {
            Self::Bucket(bucket) => bucket.refuses(rate, limit, now),
            Self::Meter(meter) => meter.refuses(allowance(rate, limit), limit.cost, now),
        }
    }

    /// Returns the number of consecutive requests of cost 1 that would be accepted at `now`.
    pub fn remaining(&self, rate: Rate, limit: Limit, now: Moment) -> u32 {
        match self {
            Self::Bucket(bucket) => bucket.remaining(rate, limit, now),
            Self::Meter(meter) => meter.remaining(allowance(rate, limit), now),
        }
    }

    /// Returns the first instant, `now` or later, at which one more request would be accepted.
    ///
    /// Assumes that `others` requests of cost 1 come first, at `now`.
    pub fn accepts_at(&self, rate: Rate, limit: Limit, others: u32, now: Moment) -> Moment {
        match self {
            Self::Bucket(bucket) => bucket.accepts_at(rate, limit, others, now),
            Self::Meter(meter) => {
                // `accepts_at` asks for a request of cost 1. `for_cost` takes the rest of the cost
                // off the capacity.
                meter.accepts_at(allowance(rate, limit).for_cost(limit.cost), others, now)
            }
        }
    }

    /// Returns the level at `now`, without a new request.
    pub fn excess(&self, rate: Rate, now: Moment) -> Excess {
        match self {
            Self::Bucket(bucket) => bucket.excess(rate, now),
            Self::Meter(meter) => meter.excess(rate, now),
        }
    }

    /// Refunds the charge of a request that passed at once.
    ///
    /// Does nothing for a bucket: its [`Queue`](super::Queue) handles refunds.
    pub fn refund(&mut self, rate: Rate, charge: Charge, now: Moment) {
        if let Self::Meter(meter) = self {
            meter.refund(rate, charge.cost(), charge.at(), now);
        }
    }

    /// Corrects the charge of a request that passed at once to its actual `cost`.
    ///
    /// A higher cost is charged at `now`, even above the limit. Does nothing for a bucket: see
    /// [`Queue::settle`](super::Queue::settle).
    pub fn settle(&mut self, rate: Rate, charge: Charge, cost: Cost, now: Moment) {
        let Self::Meter(meter) = self else {
            return;
        };
        if let Some(surplus) = charge.cost().above(cost) {
            meter.refund(rate, surplus, charge.at(), now);
        }
        if let Some(missing) = cost.above(charge.cost()) {
            meter.charge(rate, missing, now);
        }
    }

    /// Returns the first instant at which removing this account changes no later verdict.
    pub fn drained_at(&self, rate: Rate) -> Moment {
        match self {
            Self::Bucket(bucket) => bucket.drained_at(rate),
            Self::Meter(meter) => meter.drained_at(rate),
        }
    }

    /// Changes the rate from `from` to `to`, at `now`. Keeps what was charged.
    pub fn retune(&mut self, from: Rate, to: Rate, now: Moment) {
        match self {
            Self::Bucket(bucket) => bucket.retune(from, to, now),
            Self::Meter(meter) => meter.retune(from, to, now),
        }
    }
}
