use super::{
    Algorithm, Allowance, Bucket, Charge, Cost, Excess, Limit, Meter, Moment, Rate, Refusal,
    Verdict,
};

/// What one key has been charged, under any of the algorithms.
///
/// In a zone with a queue this is the bucket alone; a [`Queue`](super::Queue) keeps the waiters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Account {
    /// For the leaky bucket.
    Bucket(Bucket),
    /// For all other algorithms.
    Meter(Box<Meter>),
}

/// The allowance of a limit that never makes requests wait: its burst plus the request itself.
fn allowance(rate: Rate, limit: Limit) -> Allowance {
    Allowance {
        rate,
        most: limit.burst.saturating_add(1),
    }
}

impl Account {
    /// An account that has never been charged.
    pub fn new(algorithm: Algorithm) -> Self {
        Meter::new(algorithm).map_or_else(
            || Self::Bucket(Bucket::new()),
            |meter| Self::Meter(Box::new(meter)),
        )
    }

    /// Judges one request that arrives at `now`, and charges it unless it is rejected.
    pub fn decide(&mut self, rate: Rate, limit: Limit, now: Moment) -> Verdict {
        match self {
            Self::Bucket(bucket) => bucket.decide(rate, limit, now),
            Self::Meter(meter) => meter.decide(allowance(rate, limit), limit.cost, now),
        }
    }

    /// Returns why a request that arrives at `now` would be rejected, if it would.
    ///
    /// Charges nothing.
    pub fn refuses(&self, rate: Rate, limit: Limit, now: Moment) -> Option<Refusal> {
        match self {
            Self::Bucket(bucket) => bucket.refuses(rate, limit, now),
            Self::Meter(meter) => meter.refuses(allowance(rate, limit), limit.cost, now),
        }
    }

    /// How many requests of cost 1 in a row would be accepted at `now`.
    pub fn remaining(&self, rate: Rate, limit: Limit, now: Moment) -> u32 {
        match self {
            Self::Bucket(bucket) => bucket.remaining(rate, limit, now),
            Self::Meter(meter) => meter.remaining(allowance(rate, limit), now),
        }
    }

    /// The first moment, `now` or later, at which one more request would be accepted.
    ///
    /// `others` requests of cost 1 are assumed to come first, at `now`.
    pub fn accepts_at(&self, rate: Rate, limit: Limit, others: u32, now: Moment) -> Moment {
        match self {
            Self::Bucket(bucket) => bucket.accepts_at(rate, limit, others, now),
            Self::Meter(meter) => {
                meter.accepts_at(allowance(rate, limit).for_cost(limit.cost), others, now)
            }
        }
    }

    /// The level at `now`, without a new request.
    pub fn excess(&self, rate: Rate, now: Moment) -> Excess {
        match self {
            Self::Bucket(bucket) => bucket.excess(rate, now),
            Self::Meter(meter) => meter.excess(rate, now),
        }
    }

    /// Gives back the charge of a request that passed at once.
    ///
    /// Does nothing for a bucket: its [`Queue`](super::Queue) handles refunds.
    pub fn refund(&mut self, rate: Rate, charge: Charge, now: Moment) {
        if let Self::Meter(meter) = self {
            meter.refund(rate, charge.cost(), charge.at(), now);
        }
    }

    /// Changes what a request that passed at once was charged.
    ///
    /// What it cost more is charged at `now`, whatever is allowed. Does nothing for a bucket: see
    /// [`Queue::settle`](super::Queue::settle).
    pub fn settle(&mut self, rate: Rate, charge: Charge, cost: Cost, now: Moment) {
        let Self::Meter(meter) = self else {
            return;
        };
        if let Some(less) = charge.cost().above(cost) {
            meter.refund(rate, less, charge.at(), now);
        }
        if let Some(more) = cost.above(charge.cost()) {
            meter.charge(rate, more, now);
        }
    }

    /// The first moment at which forgetting this account changes no later verdict.
    pub fn drained_at(&self, rate: Rate) -> Moment {
        match self {
            Self::Bucket(bucket) => bucket.drained_at(rate),
            Self::Meter(meter) => meter.drained_at(rate),
        }
    }

    /// Continues under another rate, from `now` on.
    pub fn retune(&mut self, from: Rate, to: Rate, now: Moment) {
        match self {
            Self::Bucket(bucket) => bucket.retune(from, to, now),
            Self::Meter(meter) => meter.retune(from, to, now),
        }
    }
}
