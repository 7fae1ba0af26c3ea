use std::sync::atomic::{AtomicU64, Ordering};

use ::metrics::Counter;

use super::sharded::Count;

/// A counter that this process also reads itself.
///
/// Counting is one atomic addition. The count is reported to Prometheus when Prometheus asks.
#[derive(Debug)]
pub struct Tally {
    count: Count,
    /// The part of the count that was reported to Prometheus.
    told: AtomicU64,
    shown: Counter,
}

impl Tally {
    /// Counts from zero, into a series that may already have a value.
    #[must_use]
    pub fn into_series(shown: Counter) -> Self {
        Self {
            count: Count::default(),
            told: AtomicU64::new(0),
            shown,
        }
    }

    /// Adds `more` to the count.
    pub fn add(&self, more: u64) {
        self.count.add(more);
    }

    /// The count so far.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.count.get()
    }

    /// Reports the count to Prometheus.
    pub fn show(&self) {
        let count = self.get();
        // If two threads report at once, each part of the count is reported by one of them.
        let told = self.told.fetch_max(count, Ordering::Relaxed);
        self.shown.increment(count.saturating_sub(told));
    }
}
