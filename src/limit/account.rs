use super::{Algorithm, Allowance, Bucket, Excess, Limit, Meter, Moment, Rate, Refusal, Verdict};

/// What one key has been charged, by whichever algorithm its zone counts.
///
/// Of a zone with a queue it is the bucket alone; whoever waits there is kept by a [`Queue`](super::Queue).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Account {
    /// Of the leaky bucket.
    Bucket(Bucket),
    /// Of all others.
    Meter(Box<Meter>),
}

/// What a limit allows where nobody waits: its burst and the request itself.
fn allowance(rate: Rate, limit: Limit) -> Allowance {
    Allowance {
        rate,
        most: limit.burst.saturating_add(1),
    }
}

impl Account {
    /// An account that has never been charged.
    #[must_use]
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
            Self::Meter(meter) => meter.decide(allowance(rate, limit), now),
        }
    }

    /// Why a request that arrives at `now` would be rejected, if it would. Charges nothing.
    #[must_use]
    pub fn refuses(&self, rate: Rate, limit: Limit, now: Moment) -> Option<Refusal> {
        match self {
            Self::Bucket(bucket) => bucket.refuses(rate, limit, now),
            Self::Meter(meter) => meter.refuses(allowance(rate, limit), now),
        }
    }

    /// How many requests would be accepted at `now`, one right after the other.
    #[must_use]
    pub fn remaining(&self, rate: Rate, limit: Limit, now: Moment) -> u32 {
        match self {
            Self::Bucket(bucket) => bucket.remaining(rate, limit, now),
            Self::Meter(meter) => meter.remaining(allowance(rate, limit), now),
        }
    }

    /// The first moment from `now` on at which a request would be accepted after `others` that come at `now`.
    #[must_use]
    pub fn accepts_at(&self, rate: Rate, limit: Limit, others: u32, now: Moment) -> Moment {
        match self {
            Self::Bucket(bucket) => bucket.accepts_at(rate, limit, others, now),
            Self::Meter(meter) => meter.accepts_at(allowance(rate, limit), others, now),
        }
    }

    /// The level at `now`, without a new request.
    #[must_use]
    pub fn excess(&self, rate: Rate, now: Moment) -> Excess {
        match self {
            Self::Bucket(bucket) => bucket.excess(rate, now),
            Self::Meter(meter) => meter.excess(rate, now),
        }
    }

    /// Takes back what a request was charged that came at `at` and went on at once. What waits has a queue to tell.
    pub fn refund(&mut self, rate: Rate, at: Moment, now: Moment) {
        if let Self::Meter(meter) = self {
            meter.refund(rate, at, now);
        }
    }

    /// From when on forgetting this account changes no verdict.
    #[must_use]
    pub fn drained_at(&self, rate: Rate) -> Moment {
        match self {
            Self::Bucket(bucket) => bucket.drained_at(rate),
            Self::Meter(meter) => meter.drained_at(rate),
        }
    }

    /// Goes on under another rate.
    pub fn retune(&mut self, from: Rate, to: Rate, now: Moment) {
        match self {
            Self::Bucket(bucket) => bucket.retune(from, to, now),
            Self::Meter(meter) => meter.retune(from, to, now),
        }
    }
}
