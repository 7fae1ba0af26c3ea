use super::{Allowance, Metering};
use crate::limit::{Bucket, Delay, Excess, Limit, Moment, Rate};

/// Tokens that come at the rate until there are `most` of them; each request takes one.
///
/// A token that is missing is a request that has not leaked yet: this is the leaky bucket's arithmetic, with `most - 1`
/// for its burst and nobody who waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenBucket(Bucket);

impl TokenBucket {
    /// Tokens that are missing as requests are in `bucket`.
    pub(crate) fn missing(bucket: Bucket) -> Self {
        Self(bucket)
    }
}

fn limit(allowance: Allowance) -> Limit {
    Limit {
        burst: allowance.most.saturating_sub(1),
        delay: Delay::Never,
        max_wait: None,
    }
}

impl Metering for TokenBucket {
    fn charged(&self, rate: Rate, now: Moment) -> Excess {
        self.0.excess(rate, now)
    }

    fn accepts_at(&self, allowance: Allowance, others: u32, now: Moment) -> Moment {
        self.0
            .accepts_at(allowance.rate, limit(allowance), others, now)
    }

    fn charge(&mut self, allowance: Allowance, now: Moment) {
        self.0.decide(allowance.rate, limit(allowance), now);
    }

    fn refund(&mut self, rate: Rate, _at: Moment, now: Moment) {
        // What has leaked since cannot be given back: the bucket was full of tokens by then.
        if self.0.drained_at(rate) > now {
            self.0.refund(rate.ticks_per_request());
        }
    }

    fn drained_at(&self, rate: Rate) -> Moment {
        self.0.drained_at(rate)
    }

    fn retune(&mut self, from: Rate, to: Rate, now: Moment) {
        self.0.retune(from, to, now);
    }
}
