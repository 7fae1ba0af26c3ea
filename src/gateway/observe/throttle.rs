//! Limit of the frequency of a log event.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};

use limit::Moment;

/// Throttle that passes at most one event a second, or one in another period.
#[derive(Debug)]
pub struct Throttle {
    /// Length of a period, in seconds.
    period: u64,
    /// Number of the period in which an event was last shown, counted from the Unix epoch.
    shown: AtomicU64,
    /// Number of events not shown since.
    hidden: AtomicU64,
}

impl Throttle {
    /// Creates a throttle of one second.
    pub const fn new() -> Self {
        Self::every(NonZeroU64::MIN)
    }

    /// Creates a throttle of another period.
    pub const fn every(seconds: NonZeroU64) -> Self {
        Self {
            period: seconds.get(),
            shown: AtomicU64::new(0),
            hidden: AtomicU64::new(0),
        }
    }

    /// Returns whether to show an event now: if so, the number of hidden events since the last one.
    pub fn show(&self, now: Moment) -> Option<u64> {
        let period = now.as_nanos() / 1_000_000_000 / self.period;
        // Load first: a write for each rejection of a flood would move the cache line between
        // workers.
        // Of several threads, one shows its event: the first to write this period.
        let is_shown = || self.shown.swap(period, Ordering::Relaxed) == period;
        if self.shown.load(Ordering::Relaxed) == period || is_shown() {
            self.hidden.fetch_add(1, Ordering::Relaxed);
            None
        } else {
            Some(self.hidden.swap(0, Ordering::Relaxed))
        }
    }
}

impl Default for Throttle {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_event_a_period_is_shown_and_the_others_are_counted() {
        let at = |millis: u64| Moment::from_nanos(millis * 1_000_000);
        let second = Throttle::default();
        let shown = [1_000, 1_001, 1_999, 2_000, 2_500, 9_000].map(|now| second.show(at(now)));
        assert_eq!(shown, [Some(0), None, None, Some(2), None, Some(1)]);
        let minute = Throttle::every(NonZeroU64::new(60).expect("a period"));
        let shown = [60_000, 61_000, 119_000, 120_000, 300_000].map(|now| minute.show(at(now)));
        assert_eq!(shown, [Some(0), None, None, Some(2), Some(0)]);
    }
}
