//! Sliding window log: an algorithm that remembers the arrival time of each request of the last
//! period.

use std::collections::VecDeque;
use std::time::Duration;

use super::{Allowance, Metering};
use crate::{Cost, Excess, Moment, Rate};

/// Arrival times of the accepted requests of the last period, the oldest first.
///
/// In any interval of one period, at most as many requests arrive as the capacity. A request counts
/// until exactly one period after its arrival.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlidingWindowLog {
    times: VecDeque<Moment>,
    /// Set if the log is in the store that gateways share: its last reported state.
    ///
    /// `times` is then empty. A charge here replaces the report by arrival times.
    reported: Option<ReportedLog>,
}

/// State of a log that is kept in a store, as the store reported it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ReportedLog {
    /// Number of requests.
    count: u32,
    /// Instant of the report.
    at: Moment,
    /// Instant at which one more request would be accepted.
    one_more_at: Moment,
}

impl SlidingWindowLog {
    /// Returns a log that had `count` requests at `at` and accepts one more at `one_more_at`.
    ///
    /// When it is charged here, the times of these requests are assumed to be evenly spaced.
    pub fn counted(count: u32, at: Moment, one_more_at: Moment) -> Self {
        let reported = (count > 0).then_some(ReportedLog {
            count,
            at,
            one_more_at,
        });
        Self {
            times: VecDeque::new(),
            reported,
        }
    }

    /// Returns a log of requests by their ages before `at` in nanoseconds, the oldest first.
    pub(crate) fn aged(ages: &[u64], at: Moment) -> Self {
        let times = ages.iter().map(|age| Duration::from_nanos(*age));
        let mut times: Vec<Moment> = times.map(|age| at.before(age)).collect();
        times.sort_unstable();
        Self {
            times: times.into(),
            reported: None,
        }
    }

    /// Returns the ages in nanoseconds of the requests that still count, the oldest first.
    pub(crate) fn ages(&self, rate: Rate, now: Moment) -> Vec<u64> {
        let mut log = self.clone();
        log.spread_reported(rate);
        let counting = log.times.iter().skip(log.expired(rate, now));
        let ages = counting.map(|at| now.as_nanos().saturating_sub(at.as_nanos()));
        ages.collect()
    }

    /// Returns the number of oldest requests that no longer count.
    fn expired(&self, rate: Rate, now: Moment) -> usize {
        self.times.partition_point(|at| *at + rate.period() <= now)
    }

    /// Returns the reported state, if it still counts.
    fn reported_at(&self, rate: Rate, now: Moment) -> Option<ReportedLog> {
        self.reported
            .filter(|reported| reported.at + rate.period() > now)
    }

    /// Replaces the reported state by arrival times that are evenly spaced.
    fn spread_reported(&mut self, rate: Rate) {
        let Some(reported) = self.reported.take() else {
            return;
        };
        // The next request is accepted when the oldest arrival expires. If that was at once, the
        // oldest arrival is unknown: assume the latest possible one.
        let oldest = if reported.one_more_at > reported.at {
            reported.one_more_at.before(rate.period())
        } else {
            reported.at
        };
        let span = reported.at.since(oldest);
        let step = |nth: u32| oldest + span.mul_f64(f64::from(nth) / f64::from(reported.count));
        self.times = (0..reported.count).map(step).collect();
    }
}

impl Metering for SlidingWindowLog {
    fn excess(&self, rate: Rate, now: Moment) -> Excess {
        let counting = self.times.len() - self.expired(rate, now);
        let counting = u32::try_from(counting).unwrap_or(u32::MAX);
        let reported = self
            .reported_at(rate, now)
            .map_or(0, |reported| reported.count);
        Excess::of(counting.saturating_add(reported))
    }

    fn accepts_at(
        &self,
        Allowance { rate, capacity }: Allowance,
        others: u32,
        now: Moment,
    ) -> Moment {
        if let Some(reported) = self.reported_at(rate, now) {
            return match others {
                _ if reported.count.saturating_add(others) < capacity => now,
                0 => reported.one_more_at.max(now),
                _ => reported.at + rate.period(),
            };
        }
        let expired = self.expired(rate, now);
        let (capacity, others) = (capacity as usize, others as usize);
        // A request is accepted once fewer requests than the capacity count.
        let too_many = (self.times.len() - expired + others + 1).saturating_sub(capacity);
        let Some(last) = too_many.checked_sub(1) else {
            return now;
        };
        // The `others` are the newest requests: they arrive at `now`.
        let arrival = self.times.get(expired + last).copied().unwrap_or(now);
        arrival + rate.period()
    }

    fn charge(&mut self, rate: Rate, cost: Cost, now: Moment) {
        self.spread_reported(rate);
        let expired = self.expired(rate, now);
        self.times.drain(..expired);
        self.times.extend((0..cost.get()).map(|_| now));
    }

    fn refund(&mut self, _rate: Rate, cost: Cost, at: Moment, _now: Moment) {
        let first = self.times.partition_point(|arrival| *arrival < at);
        let end = self.times.partition_point(|arrival| *arrival <= at);
        self.times
            .drain(first..end.min(first + cost.get() as usize));
    }

    fn drained_at(&self, rate: Rate) -> Moment {
        let reported = self.reported.map(|reported| reported.at);
        let last = self.times.back().copied().max(reported);
        last.map_or(Moment::from_nanos(0), |last| last + rate.period())
    }

    fn retune(&mut self, _from: Rate, to: Rate, now: Moment) {
        let expired = self.expired(to, now);
        self.times.drain(..expired);
    }
}
