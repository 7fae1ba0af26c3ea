use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::clock;
use crate::config::Redis;
use crate::limit::Moment;
use crate::metrics::StoreMetrics;
use crate::store::Error;

/// How often it is told that the store refuses requests.
const TELL_EVERY: Duration = Duration::from_secs(60);

/// The store that the file names, as all workers know it. It is out while any of them cannot ask it.
pub struct Remote {
    settings: Redis,
    outage: Mutex<Outage>,
    /// When it was last told that the store refused something.
    refused: Mutex<Option<Moment>>,
    metrics: StoreMetrics,
}

#[derive(Debug, Default)]
struct Outage {
    /// How many workers cannot ask it.
    workers: usize,
    since: Moment,
    reason: String,
}

impl Remote {
    /// The store of these settings. Nobody asks it yet.
    #[must_use]
    pub fn new(settings: Redis) -> Self {
        Self {
            settings,
            outage: Mutex::default(),
            refused: Mutex::default(),
            metrics: StoreMetrics::of_this_process(),
        }
    }

    /// Where it is, and how long is waited for it.
    #[must_use]
    pub fn settings(&self) -> &Redis {
        &self.settings
    }

    /// Since when it is out and why, if it is.
    #[must_use]
    pub fn outage(&self) -> Option<(Moment, String)> {
        let outage = self.outage.lock().unwrap_or_else(PoisonError::into_inner);
        (outage.workers > 0).then(|| (outage.since, outage.reason.clone()))
    }

    /// A worker cannot ask it any more.
    pub(super) fn lost(&self, error: &Error) {
        let mut outage = self.outage.lock().unwrap_or_else(PoisonError::into_inner);
        outage.workers += 1;
        if outage.workers == 1 {
            outage.since = clock::now();
            outage.reason = error.to_string();
            tracing::error!(store = %self.settings.url, %error, "the store is out; zones go on by their on_store_failure");
        }
    }

    /// A worker that could not ask it can again, if `is_back`; else it asks another by now, and nothing is known of this one.
    pub(super) fn found(&self, is_back: bool) {
        let mut outage = self.outage.lock().unwrap_or_else(PoisonError::into_inner);
        outage.workers = outage.workers.saturating_sub(1);
        if outage.workers == 0 && is_back {
            let out_for = clock::now().since(outage.since);
            tracing::info!(store = %self.settings.url, ?out_for, "the store is back");
        }
    }

    /// The store refused something of `zone`, but is there. It is told of the first, and once a minute while it goes on.
    pub(super) fn refused(&self, zone: &str, error: &Error) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let now = clock::now();
        if refused.is_some_and(|told| now.since(told) < TELL_EVERY) {
            return;
        }
        *refused = Some(now);
        tracing::error!(store = %self.settings.url, zone, %error, "the store refused a request's key; such requests go on by their zone's on_store_failure");
    }

    /// Tells Prometheus whether it is asked, or out.
    pub fn show_metrics(&self) {
        self.metrics.show_up(self.outage().is_none());
    }

    /// A batch was answered, or given up.
    pub(super) fn asked(&self, span: Duration) {
        self.metrics.asked(span);
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
