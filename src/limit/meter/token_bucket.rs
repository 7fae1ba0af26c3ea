//! Token bucket: each request takes a token. Computed as a leaky bucket that makes nobody wait.

use super::{Allowance, Metering};
use crate::{Bucket, Cost, Delay, Excess, Limit, Moment, Rate};

/// Bucket of tokens that arrive at the rate, up to the capacity. Each request takes one.
///
/// A leaky bucket in which each missing token is a request that has not leaked yet. Its burst is
/// one less than the capacity, and it has `nodelay`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenBucket(Bucket);

impl TokenBucket {
    /// Returns a meter with as many tokens missing as `bucket` holds requests.
    pub fn missing(bucket: Bucket) -> Self {
        Self(bucket)
    }

    /// Returns the bucket that holds as many requests as tokens are missing.
    pub(crate) fn bucket(&self) -> &Bucket {
        &self.0
    }
}

/// Returns the limit of the leaky bucket.
fn limit(allowance: Allowance) -> Limit {
    Limit {
        burst: allowance.capacity.saturating_sub(1),
        ..Limit::unlimited(Delay::Never, Cost::ONE)
    }
}

impl Metering for TokenBucket {
    fn excess(&self, rate: Rate, now: Moment) -> Excess {
        self.0.excess(rate, now)
    }

    fn accepts_at(&self, allowance: Allowance, others: u32, now: Moment) -> Moment {
        self.0
            .accepts_at(allowance.rate, limit(allowance), others, now)
    }

    fn charge(&mut self, rate: Rate, cost: Cost, now: Moment) {
        self.0.charge(rate, cost, now);
    }

    fn refund(&mut self, rate: Rate, cost: Cost, _at: Moment, now: Moment) {
        // If the bucket has been full of tokens since, there is nothing left to refund.
        if self.0.drained_at(rate) > now {
            self.0.take_back(rate, cost.get().into());
        }
    }

    fn drained_at(&self, rate: Rate) -> Moment {
        self.0.drained_at(rate)
    }

    fn retune(&mut self, from: Rate, to: Rate, now: Moment) {
        self.0.retune(from, to, now);
    }
}
