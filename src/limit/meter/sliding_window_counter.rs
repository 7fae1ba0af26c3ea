//! Sliding window, approximated by two counts.

use std::time::Duration;

use super::{Allowance, Metering, period, start, window};
use crate::{Cost, Excess, Moment, Rate};

/// Number of requests in this window and in the previous one.
///
/// Requests of the previous window count by the fraction of it that is still within one period of
/// now: `floor(current + previous * (1 - elapsed / period))`, computed in whole numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlidingWindowCounter {
    window: u64,
    previous: u32,
    current: u32,
}

impl SlidingWindowCounter {
    /// Returns a meter with these counts in this window and the previous one.
    pub fn counted(window: u64, previous: u32, current: u32) -> Self {
        Self {
            window,
            previous,
            current,
        }
    }

    /// Returns the counts of the previous window and of the window that contains `now`.
    pub(crate) fn counts(&self, rate: Rate, now: Moment) -> (u32, u32) {
        let counts = self.at(rate, now);
        (counts.previous, counts.current)
    }

    /// Returns the same counts, seen from the window that contains `now`.
    fn at(&self, rate: Rate, now: Moment) -> Self {
        let window = window(rate, now).0;
        let (previous, current) = match window.saturating_sub(self.window) {
            0 => (self.previous, self.current),
            1 => (self.current, 0),
            _ => (0, 0),
        };
        Self {
            window,
            previous,
            current,
        }
    }

    /// Returns the number of requests that count at `elapsed` nanoseconds into the window.
    fn estimate(&self, rate: Rate, elapsed: u64) -> u32 {
        let rest = u128::from(period(rate) - elapsed);
        let previous = u128::from(self.previous) * rest / u128::from(period(rate));
        let previous = u32::try_from(previous).unwrap_or(u32::MAX);
        self.current.saturating_add(previous)
    }

    /// Returns the first nanosecond from `elapsed` on at which fewer requests count than fit.
    ///
    /// `None` if there is none in this window.
    fn below(&self, Allowance { rate, capacity }: Allowance, elapsed: u64) -> Option<u64> {
        let room = u128::from(
            capacity
                .checked_sub(self.current)
                .filter(|room| *room > 0)?,
        );
        let (period, previous) = (period(rate), u128::from(self.previous));
        if previous == 0 {
            return Some(elapsed);
        }
        // The largest whole `rest` for which previous * rest < room * period.
        let rest = (room * u128::from(period)).div_ceil(previous);
        let rest = rest.saturating_sub(1).min(period.into());
        let rest = u64::try_from(rest).unwrap_or(period);
        Some(elapsed.max(period - rest))
    }
}

impl Metering for SlidingWindowCounter {
    fn excess(&self, rate: Rate, now: Moment) -> Excess {
        Excess::of(self.at(rate, now).estimate(rate, window(rate, now).1))
    }

    fn accepts_at(&self, allowance: Allowance, others: u32, now: Moment) -> Moment {
        let (rate, elapsed) = (allowance.rate, window(allowance.rate, now).1);
        let mut counts = self.at(rate, now);
        counts.current = counts.current.saturating_add(others);
        let mut from = elapsed;
        loop {
            let fits = counts.below(allowance, from);
            if let Some(fits) = fits.filter(|nanos| *nanos < period(rate)) {
                return start(rate, counts.window) + Duration::from_nanos(fits);
            }
            // Two windows later no request counts, so the loop ends.
            from = 0;
            counts = Self {
                window: counts.window + 1,
                previous: counts.current,
                current: 0,
            };
        }
    }

    fn charge(&mut self, rate: Rate, cost: Cost, now: Moment) {
        *self = self.at(rate, now);
        self.current = self.current.saturating_add(cost.get());
    }

    fn refund(&mut self, rate: Rate, cost: Cost, at: Moment, now: Moment) {
        *self = self.at(rate, now);
        let charged_in = window(rate, at).0;
        if charged_in == self.window {
            self.current = self.current.saturating_sub(cost.get());
        } else if charged_in + 1 == self.window {
            self.previous = self.previous.saturating_sub(cost.get());
        }
    }

    fn drained_at(&self, rate: Rate) -> Moment {
        match (self.previous, self.current) {
            (0, 0) => Moment::from_nanos(0),
            (_, 0) => start(rate, self.window + 1),
            _ => start(rate, self.window + 2),
        }
    }

    fn retune(&mut self, from: Rate, to: Rate, now: Moment) {
        // With another window length the old counts are not exact. So everything that counts now is
        // counted in the current window.
        if from.period() != to.period() {
            let counting = self.at(from, now).estimate(from, window(from, now).1);
            *self = Self {
                window: window(to, now).0,
                previous: 0,
                current: counting,
            };
        }
    }
}
