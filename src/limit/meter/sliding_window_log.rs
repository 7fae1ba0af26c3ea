use std::collections::VecDeque;

use super::{Allowance, Metering};
use crate::limit::{Excess, Moment, Rate};

/// When each accepted request of the last period came, the oldest first: never more than `most` in any period, wherever
/// it begins. A request counts until exactly one period after it came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlidingWindowLog(VecDeque<Moment>);

impl SlidingWindowLog {
    /// How many of the oldest count no longer.
    fn expired(&self, rate: Rate, now: Moment) -> usize {
        self.0.partition_point(|at| *at + rate.period() <= now)
    }
}

impl Metering for SlidingWindowLog {
    fn charged(&self, rate: Rate, now: Moment) -> Excess {
        let counting = self.0.len() - self.expired(rate, now);
        Excess::of(u32::try_from(counting).unwrap_or(u32::MAX))
    }

    fn accepts_at(&self, Allowance { rate, most }: Allowance, others: u32, now: Moment) -> Moment {
        let expired = self.expired(rate, now);
        let (most, others) = (most as usize, others as usize);
        // One is accepted once fewer than `most` of those before it count.
        let too_many = (self.0.len() - expired + others + 1).saturating_sub(most);
        let Some(last) = too_many.checked_sub(1) else {
            return now;
        };
        // `others` came last of all, at `now`.
        let at = self.0.get(expired + last).copied().unwrap_or(now);
        at + rate.period()
    }

    fn charge(&mut self, Allowance { rate, .. }: Allowance, now: Moment) {
        let expired = self.expired(rate, now);
        self.0.drain(..expired);
        self.0.push_back(now);
    }

    fn refund(&mut self, _rate: Rate, at: Moment, _now: Moment) {
        let from = self.0.partition_point(|came| *came < at);
        if self.0.get(from) == Some(&at) {
            self.0.remove(from);
        }
    }

    fn drained_at(&self, rate: Rate) -> Moment {
        self.0
            .back()
            .map_or(Moment::from_nanos(0), |last| *last + rate.period())
    }

    fn retune(&mut self, _from: Rate, to: Rate, now: Moment) {
        let expired = self.expired(to, now);
        self.0.drain(..expired);
    }
}
