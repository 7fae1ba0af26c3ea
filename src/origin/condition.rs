use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use metrics::Gauge;

use crate::config::ServerUrl;
use crate::limit::Moment;

/// Whether a server is asked, as far as that lies with itself: it is where requests did not find it wanting.
#[derive(Debug)]
pub(super) struct Condition {
    /// Requests that failed since the last answer.
    failures: AtomicU32,
    /// The moment, in nanoseconds, until which these keep it out; zero while they do not.
    out_until: AtomicU64,
    /// 1 while it is asked. Set by one at a time: whoever is last has seen all changes.
    healthy: Mutex<Gauge>,
}

impl Condition {
    pub(super) fn new(healthy: Gauge) -> Self {
        healthy.set(1.0);
        Self {
            failures: AtomicU32::new(0),
            out_until: AtomicU64::new(0),
            healthy: Mutex::new(healthy),
        }
    }

    pub(super) fn out_until(&self) -> Moment {
        Moment::from_nanos(self.out_until.load(Ordering::Relaxed))
    }

    /// A request was answered.
    pub(super) fn answered(&self, url: &ServerUrl) {
        // Loads are cheap and shared; stores are not, and after most answers there is nothing to change.
        if self.failures.load(Ordering::Relaxed) > 0 {
            self.failures.store(0, Ordering::Relaxed);
        }
        if self.out_until.load(Ordering::Relaxed) > 0 {
            self.out_until.store(0, Ordering::Relaxed);
            self.show();
            tracing::info!(server = %url, "the server answers again");
        }
    }

    /// A request got no answer; `max_fails`: how many of these in a row take it out, if any do, and for how long.
    pub(super) fn failed(&self, url: &ServerUrl, max_fails: Option<(u32, Duration)>, now: Moment) {
        let in_a_row = self
            .failures
            .fetch_add(1, Ordering::Relaxed)
            .saturating_add(1);
        let Some((max_fails, fail_timeout)) = max_fails else {
            return;
        };
        if in_a_row >= max_fails {
            let until = (now + fail_timeout).as_nanos();
            self.out_until.store(until, Ordering::Relaxed);
            self.show();
            tracing::warn!(server = %url, in_a_row, ?fail_timeout, "the server is taken out");
        }
    }

    fn show(&self) {
        let healthy = self.healthy.lock().unwrap_or_else(PoisonError::into_inner);
        let is_in = self.out_until.load(Ordering::Relaxed) == 0;
        healthy.set(if is_in { 1.0 } else { 0.0 });
    }
}
