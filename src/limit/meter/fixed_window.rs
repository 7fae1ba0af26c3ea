//! Fixed window: an algorithm that counts the requests in each period of the rate.

use super::{Allowance, Metering, start, window_index};
use crate::{Cost, Excess, Moment, Rate};

/// Number of requests in the current window.
///
/// Windows begin at multiples of the period since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FixedWindow {
    /// Index of the window, counted from the Unix epoch.
    window: u64,
    /// Sum of the costs of the requests that were accepted in it.
    count: u32,
}

impl FixedWindow {
    /// Returns a meter with `count` requests in the window with this index.
    pub fn counted(window: u64, count: u32) -> Self {
        Self { window, count }
    }

    /// Returns the number of requests in the window that contains `now`.
    pub(crate) fn count(&self, rate: Rate, now: Moment) -> u32 {
        // The clock never steps back, so any window before the current one is over.
        if self.window == window_index(rate, now) {
            self.count
        } else {
            0
        }
    }
}

impl Metering for FixedWindow {
    fn excess(&self, rate: Rate, now: Moment) -> Excess {
        Excess::of(self.count(rate, now))
    }

    fn accepts_at(
        &self,
        Allowance { rate, capacity }: Allowance,
        others: u32,
        now: Moment,
    ) -> Moment {
        if self.count(rate, now).saturating_add(others) < capacity {
            now
        } else {
            start(rate, window_index(rate, now) + 1)
        }
    }

    fn charge(&mut self, rate: Rate, cost: Cost, now: Moment) {
        self.count = self.count(rate, now).saturating_add(cost.get());
        self.window = window_index(rate, now);
    }

    fn refund(&mut self, rate: Rate, cost: Cost, at: Moment, _now: Moment) {
        if self.window == window_index(rate, at) {
            self.count = self.count.saturating_sub(cost.get());
        }
    }

    fn drained_at(&self, rate: Rate) -> Moment {
        match self.count {
            0 => Moment::from_nanos(0),
            _ => start(rate, self.window + 1),
        }
    }

    fn retune(&mut self, from: Rate, to: Rate, now: Moment) {
        // Requests of the current window also count in the new one, whether it is longer or
        // shorter.
        self.count = self.count(from, now);
        self.window = window_index(to, now);
    }
}
