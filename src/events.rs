//! Log events for frequent incidents, at a bounded rate.
//!
//! They are enough to see that an incident happens, but never so many that a flood of requests
//! fills a disk.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::access::escape;
use crate::limit::{Excess, Moment};
use crate::metrics::LimitStatus;

/// The log events of one zone: at most one a second for rejections, and one for delays.
#[derive(Debug, Default)]
pub struct Events {
    rejections: Throttle,
    delays: Throttle,
}

/// Lets at most one event a second through.
#[derive(Debug, Default)]
pub struct Throttle {
    /// The second in which an event was last shown.
    shown: AtomicU64,
    /// Number of events not shown since.
    hidden: AtomicU64,
}

impl Throttle {
    /// Whether to show an event now. If so, returns how many were hidden since the last.
    pub fn show(&self, now: Moment) -> Option<u64> {
        let second = now.as_nanos() / 1_000_000_000;
        // Load first: a write for each rejection of a flood would move the cache line between
        // workers.
        let is_shown = || self.shown.swap(second, Ordering::Relaxed) == second;
        if self.shown.load(Ordering::Relaxed) == second || is_shown() {
            self.hidden.fetch_add(1, Ordering::Relaxed);
            None
        } else {
            Some(self.hidden.swap(0, Ordering::Relaxed))
        }
    }
}

impl Events {
    /// Logs a request that was rejected or delayed, or would have been in a dry run.
    ///
    /// As in nginx, rejections are errors and delays are one level lower.
    pub fn tell(&self, zone: &str, key: &[u8], status: LimitStatus, excess: Excess, now: Moment) {
        let what = status.label();
        match status {
            LimitStatus::Rejected | LimitStatus::RejectedDryRun => {
                if let Some(hidden) = self.rejections.show(now) {
                    tracing::error!(
                        zone,
                        key = escape(key),
                        what,
                        excess = excess.requests(),
                        hidden,
                        "limiting requests"
                    );
                }
            }
            LimitStatus::Delayed | LimitStatus::DelayedDryRun => {
                if let Some(hidden) = self.delays.show(now) {
                    tracing::warn!(
                        zone,
                        key = escape(key),
                        what,
                        excess = excess.requests(),
                        hidden,
                        "delaying requests"
                    );
                }
            }
            LimitStatus::Passed | LimitStatus::Cancelled => {}
        }
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
}
