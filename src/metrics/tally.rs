use std::sync::atomic::{AtomicU64, Ordering};

use ::metrics::Counter;

use super::sharded::Count;

/// A count that this process reads itself, too: counting is one atomic addition, and Prometheus is told of it when it
/// asks.
#[derive(Debug)]
pub struct Tally {
    count: Count,
    /// What of it Prometheus was told.
    told: AtomicU64,
    shown: Counter,
}

impl Tally {
    /// Counts from zero, into a series that may have been counted into before.
    #[must_use]
    pub fn into_series(shown: Counter) -> Self {
        Self {
            count: Count::default(),
            told: AtomicU64::new(0),
            shown,
        }
    }

    /// Counts so many more.
    pub fn add(&self, more: u64) {
        self.count.add(more);
    }

    /// The count so far.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.count.get()
    }

    /// Tells Prometheus.
    pub fn show(&self) {
        let count = self.get();
        // Of two that show at once, one tells each part.
        let told = self.told.fetch_max(count, Ordering::Relaxed);
        self.shown.increment(count.saturating_sub(told));
    }
}
