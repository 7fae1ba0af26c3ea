//! Sliding window, approximated by two counts.

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
        let here = self.at(rate, now);
        (here.previous, here.current)
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
        let left = u128::from(period(rate) - elapsed);
        let before = u128::from(self.previous) * left / u128::from(period(rate));
        self.current
            .saturating_add(u32::try_from(before).unwrap_or(u32::MAX))
    }

    /// Returns the first nanosecond from `elapsed` on at which fewer than `most` requests count.
    ///
    /// `None` if there is none in this window.
    fn below(&self, Allowance { rate, most }: Allowance, elapsed: u64) -> Option<u64> {
        let room = u128::from(most.checked_sub(self.current).filter(|room| *room > 0)?);
        let (period, previous) = (period(rate), u128::from(self.previous));
        if previous == 0 {
            return Some(elapsed);
        }
        // The largest whole `left` for which previous * left < room * period.
        let left = (room * u128::from(period))
            .div_ceil(previous)
            .saturating_sub(1);
        let left = u64::try_from(left).unwrap_or(u64::MAX).min(period);
        Some(elapsed.max(period - left))
    }
}

impl Metering for SlidingWindowCounter {
    fn excess(&self, rate: Rate, now: Moment) -> Excess {
        Excess::of(self.at(rate, now).estimate(rate, window(rate, now).1))
    }

    fn accepts_at(&self, allowance: Allowance, others: u32, now: Moment) -> Moment {
        let (rate, elapsed) = (allowance.rate, window(allowance.rate, now).1);
        let mut here = self.at(rate, now);
        here.current = here.current.saturating_add(others);
        let begins = |window| start(rate, window).as_nanos();
        let mut window = here.window;
        let mut from = elapsed;
        loop {
            if let Some(at) = here.below(allowance, from).filter(|at| *at < period(rate)) {
                return Moment::from_nanos(begins(window).saturating_add(at));
            }
            // Two windows later no request counts, so the loop ends.
            window += 1;
            from = 0;
            here = Self {
                window,
                previous: here.current,
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
        let came = window(rate, at).0;
        if came == self.window {
            self.current = self.current.saturating_sub(cost.get());
        } else if came + 1 == self.window {
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
