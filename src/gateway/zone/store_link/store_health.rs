use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use config::Redis;
use limit::Moment;

use super::SharedBy;
use crate::observe::metrics::{Counts, StoreMetrics, StoreResult};
use crate::store::{Error, Store, StoreWatch};
use crate::time::clock;

/// How often a refusal by the store is logged.
const TELL_EVERY: Duration = Duration::from_secs(60);

/// The store named in the file, shared by all workers.
///
/// It is unavailable while any worker cannot reach it.
pub struct StoreHealth {
    settings: Redis,
    shared_by: Mutex<SharedBy>,
    outage: Mutex<Outage>,
    refused: Mutex<Refused>,
    metrics: StoreMetrics,
}

#[derive(Debug, Default)]
struct Outage {
    /// Number of workers that cannot reach the store.
    workers: usize,
    since: Moment,
    reason: String,
}

/// What the store refused, although it is available.
#[derive(Debug, Default)]
struct Refused {
    /// When a refusal was last logged.
    told: Option<Moment>,
    last: Option<StoreRefusal>,
}

/// Why the store did not do what it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreRefusal {
    /// Whether it answered.
    pub is_answer: bool,
    /// In the words of the store, if it answered.
    pub reason: String,
    /// What an operator can do about it, as a part of a message.
    pub remedy: &'static str,
}

impl StoreRefusal {
    /// The call itself has panicked.
    pub(crate) fn panicked() -> Self {
        Self {
            is_answer: false,
            reason: "the call failed".to_owned(),
            remedy: "see the log for a panic",
        }
    }
}

impl From<&Error> for StoreRefusal {
    fn from(error: &Error) -> Self {
        Self {
            is_answer: error.is_answer(),
            reason: error.to_string(),
            remedy: error.remedy(),
        }
    }
}

impl StoreHealth {
    /// The store with these settings. Does not connect.
    #[must_use]
    pub fn new(settings: Redis) -> Self {
        Self {
            settings,
            shared_by: Mutex::default(),
            outage: Mutex::default(),
            refused: Mutex::default(),
            metrics: StoreMetrics::of_this_process(),
        }
    }

    /// The store's address and timeout.
    #[must_use]
    pub fn settings(&self) -> &Redis {
        &self.settings
    }

    /// Who shares through the store.
    #[must_use]
    pub fn shared_by(&self) -> SharedBy {
        *self.lock_shared_by()
    }

    /// Notes who shares through the store from now on.
    pub fn set_shared_by(&self, shared_by: SharedBy) {
        *self.lock_shared_by() = shared_by;
    }

    fn lock_shared_by(&self) -> MutexGuard<'_, SharedBy> {
        self.shared_by
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// When the present outage began and why; `None` if the store is available.
    #[must_use]
    pub fn outage(&self) -> Option<(Moment, String)> {
        let outage = self.outage.lock().unwrap_or_else(PoisonError::into_inner);
        (outage.workers > 0).then(|| (outage.since, outage.reason.clone()))
    }

    /// Logs that the store refused an operation of `zone`, although it is available.
    ///
    /// The first refusal is logged, then one a minute while it goes on.
    pub(super) fn refused(&self, zone: &str, error: &Error) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let now = clock::now();
        refused.last = Some(error.into());
        if refused
            .told
            .is_some_and(|told| now.since(told) < TELL_EVERY)
        {
            return;
        }
        refused.told = Some(now);
        let remedy = error.remedy();
        tracing::error!(store = %self.settings.url, zone, %error, "the store refused a request's key; such requests follow their zone's on_store_failure; {remedy}");
    }

    /// What it last refused of any zone, although it was available.
    #[must_use]
    pub fn last_refusal(&self) -> Option<StoreRefusal> {
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.last.clone()
    }

    /// Updates the metric that shows whether the store is available.
    pub fn show_metrics(&self) {
        self.metrics.show_up(self.outage().is_none());
    }

    /// The times of the round trips so far.
    #[must_use]
    pub fn latencies(&self) -> Counts {
        self.metrics.latencies()
    }
}

impl StoreWatch for StoreHealth {
    fn store(&self) -> Store {
        let redis = &self.settings;
        Store::new(redis.url.clone(), &redis.prefix, redis.timeout)
            .with_authorities(redis.ca.clone())
    }

    fn lost(&self, error: &Error) {
        let mut outage = self.outage.lock().unwrap_or_else(PoisonError::into_inner);
        outage.workers += 1;
        if outage.workers == 1 {
            outage.since = clock::now();
            outage.reason = error.to_string();
            let meanwhile = self.shared_by().during_outage();
            tracing::error!(store = %self.settings.url, %error, "the store is out; {meanwhile}");
        }
    }

    fn found(&self, is_back: bool) {
        let mut outage = self.outage.lock().unwrap_or_else(PoisonError::into_inner);
        outage.workers = outage.workers.saturating_sub(1);
        // If the worker uses another store by now, the state of this one is unknown.
        if outage.workers == 0 && is_back {
            let out_for = clock::now().since(outage.since);
            tracing::info!(store = %self.settings.url, ?out_for, "the store is back");
        }
    }

    fn asked(&self, span: Duration) {
        self.metrics.asked(span);
    }
}

/// How what was asked of the store is counted.
#[must_use]
pub fn store_result(error: Option<&Error>) -> StoreResult {
    match error {
        None => StoreResult::Ok,
        Some(Error::Late) => StoreResult::Late,
        Some(Error::Unreachable(_)) => StoreResult::Unreachable,
        Some(_) => StoreResult::Refused,
    }
}

impl fmt::Debug for StoreHealth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreHealth")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
