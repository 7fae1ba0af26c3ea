//! Sliding window counter: approximates the requests of the last period by two counts.

use std::time::Duration;

use super::{Allowance, Metering, nanos_into_window, period, start, window_index};
use crate::{Cost, Excess, Moment, Rate};

/// Number of requests in the current window and in the previous one.
///
/// A window is one period of the rate. A request of the previous window counts for a part: the part
/// of that window that is less than one period ago. So the number of requests that count is
/// `floor(current + previous * (1 - elapsed / period))`, computed in whole numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlidingWindowCounter {
    /// Index of the current window, counted from the Unix epoch.
    window: u64,
    previous: u32,
    current: u32,
}

impl SlidingWindowCounter {
    /// Returns a meter with these counts. `window` is the index of the current window.
    pub fn counted(window: u64, previous: u32, current: u32) -> Self {
        Self {
            window,
            previous,
            current,
        }
    }

    /// Returns the counts of the previous window and of the window that contains `now`.
    pub(crate) fn counts(&self, rate: Rate, now: Moment) -> (u32, u32) {
        let counts = self.moved_to(rate, now);
        (counts.previous, counts.current)
    }

    /// Returns the counts with the window that contains `now` as the current one.
    fn moved_to(&self, rate: Rate, now: Moment) -> Self {
        let window = window_index(rate, now);
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
        let previous = u128::from(self.previous) * left / u128::from(period(rate));
        let previous = u32::try_from(previous).unwrap_or(u32::MAX);
        self.current.saturating_add(previous)
    }

    /// Returns the first nanosecond of the window, from `elapsed` on, at which one more request
    /// fits.
    ///
    /// `None` if there is none. The result may be the end of the window.
    fn first_fit(&self, Allowance { rate, capacity }: Allowance, elapsed: u64) -> Option<u64> {
        let room = u128::from(
            capacity
                .checked_sub(self.current)
                .filter(|room| *room > 0)?,
        );
        let (period, previous) = (period(rate), u128::from(self.previous));
        if previous == 0 {
            return Some(elapsed);
        }
        // One more fits if previous * left / period < room. `left` are the nanoseconds until the
        // end of the window. This is the largest whole number for which it holds.
        let left = (room * u128::from(period)).div_ceil(previous);
        let left = left.saturating_sub(1).min(period.into());
        let left = u64::try_from(left).unwrap_or(period);
        Some(elapsed.max(period - left))
    }
}

impl Metering for SlidingWindowCounter {
    fn excess(&self, rate: Rate, now: Moment) -> Excess {
        let counts = self.moved_to(rate, now);
        Excess::of(counts.estimate(rate, nanos_into_window(rate, now)))
    }

    fn accepts_at(&self, allowance: Allowance, others: u32, now: Moment) -> Moment {
        let rate = allowance.rate;
        let mut counts = self.moved_to(rate, now);
        counts.current = counts.current.saturating_add(others);
        let mut from = nanos_into_window(rate, now);
        loop {
            let fit = counts.first_fit(allowance, from);
            if let Some(fit) = fit.filter(|nanos| *nanos < period(rate)) {
                return start(rate, counts.window) + Duration::from_nanos(fit);
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
        *self = self.moved_to(rate, now);
        self.current = self.current.saturating_add(cost.get());
    }

    fn refund(&mut self, rate: Rate, cost: Cost, at: Moment, now: Moment) {
        *self = self.moved_to(rate, now);
        let charged_in = window_index(rate, at);
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
            let counts = self.moved_to(from, now);
            let counting = counts.estimate(from, nanos_into_window(from, now));
            *self = Self {
                window: window_index(to, now),
                previous: 0,
                current: counting,
            };
        }
    }
}
