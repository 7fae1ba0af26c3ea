//! Limit of the frequency of a log event.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};

use limit::Moment;

/// Throttle that passes at most one event a second, or one in another period.
#[derive(Debug)]
pub struct Throttle {
    /// In seconds.
    period: u64,
    /// Period in which an event was last shown.
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
    fn one_event_a_second_is_shown_and_the_others_are_counted() {
        let throttle = Throttle::default();
        let at = |millis: u64| Moment::from_nanos(millis * 1_000_000);
        let shown: Vec<Option<u64>> = [1_000, 1_001, 1_999, 2_000, 2_500, 9_000]
            .map(|millis| throttle.show(at(millis)))
            .into();
        assert_eq!(shown, [Some(0), None, None, Some(2), None, Some(1)]);
    }

    #[test]
    fn a_longer_period_has_one_event_too() {
        let throttle = Throttle::every(NonZeroU64::new(60).expect("a period"));
        let at = |seconds: u64| Moment::from_nanos(seconds * 1_000_000_000);
        let shown: Vec<Option<u64>> = [60, 61, 119, 120, 300]
            .map(|seconds| throttle.show(at(seconds)))
            .into();
        assert_eq!(shown, [Some(0), None, None, Some(2), Some(0)]);
    }
}
