//! Health of the store: outages and refusals.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use config::Redis;
use limit::Moment;

use super::{Error, SharedBy, Store};
use crate::observe::metrics::{Durations, StoreResult};
use crate::time::clock;

/// Least time between two log messages about refusals by the store.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// Upper bound of the reasons of one outage that are logged, each once.
const MAX_REASONS: usize = 8;

/// Store named in the file, shared by all workers.
///
/// It is unavailable while any worker cannot reach it.
pub struct StoreHealth {
    settings: Redis,
    shared_by: Mutex<SharedBy>,
    outage: Mutex<Outage>,
    refused: Mutex<Refused>,
    round_trips: Durations,
}

/// State of the present or last outage.
#[derive(Debug, Default)]
struct Outage {
    /// Number of workers that cannot reach the store.
    workers: usize,
    since: Moment,
    /// Reason of the last failure.
    reason: String,
    /// Reasons that were logged.
    logged: Vec<String>,
}

/// Refusals by the store although it is available.
#[derive(Debug, Default)]
struct Refused {
    /// Time of the last log message about a refusal.
    logged_at: Option<Moment>,
    last: Option<StoreRefusal>,
}

/// Reason why the store did not do an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreRefusal {
    /// Whether the store answered.
    pub is_answer: bool,
    /// Reason, in the words of the store if it answered.
    pub reason: String,
    /// Remedy by an operator, as a part of a message.
    pub remedy: &'static str,
}

impl StoreRefusal {
    /// Creates the reason for a call that has panicked.
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
    /// Creates the store with these settings. Does not connect.
    pub fn new(settings: Redis) -> Self {
        Self {
            settings,
            shared_by: Mutex::default(),
            outage: Mutex::default(),
            refused: Mutex::default(),
            round_trips: Durations::default(),
        }
    }

    /// Returns the store's address and timeout.
    pub fn settings(&self) -> &Redis {
        &self.settings
    }

    /// Returns which features use the store.
    pub fn shared_by(&self) -> SharedBy {
        *self.lock_shared_by()
    }

    /// Sets which features use the store from now on.
    pub fn set_shared_by(&self, shared_by: SharedBy) {
        *self.lock_shared_by() = shared_by;
    }

    fn lock_shared_by(&self) -> MutexGuard<'_, SharedBy> {
        self.shared_by
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the start and the reason of the present outage; `None` if the store is available.
    pub fn outage(&self) -> Option<(Moment, String)> {
        let outage = self.outage.lock().unwrap_or_else(PoisonError::into_inner);
        (outage.workers > 0).then(|| (outage.since, outage.reason.clone()))
    }

    /// Logs that the store refused an operation of `zone` although it is available.
    ///
    /// Logs the first refusal, then at most one a minute.
    pub(crate) fn refused(&self, zone: &str, error: &Error) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let now = clock::now();
        refused.last = Some(error.into());
        if refused
            .logged_at
            .is_some_and(|logged_at| now.since(logged_at) < LOG_INTERVAL)
        {
            return;
        }
        refused.logged_at = Some(now);
        let remedy = error.remedy();
        tracing::error!(store = %self.settings.url, zone, %error, "the store refused a request's key; such requests follow their zone's on_store_failure; {remedy}");
    }

    /// Returns the last refusal for any zone while the store was available.
    pub fn last_refusal(&self) -> Option<StoreRefusal> {
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.last.clone()
    }

    /// Returns the durations of batches, from sending to the answer or to giving up.
    pub fn round_trips(&self) -> &Durations {
        &self.round_trips
    }

    /// Creates a connection for one thread.
    pub(super) fn store(&self) -> Store {
        let redis = &self.settings;
        Store::new(redis.url.clone(), &redis.prefix, redis.timeout)
            .with_authorities(redis.ca.clone())
    }

    /// Notes that a thread can no longer reach the store.
    pub(super) fn lost(&self, error: &Error) {
        let mut outage = self.outage.lock().unwrap_or_else(PoisonError::into_inner);
        outage.workers += 1;
        if outage.workers == 1 {
            outage.since = clock::now();
            outage.reason = error.to_string();
            outage.logged = vec![outage.reason.clone()];
            let meanwhile = self.shared_by().during_outage();
            tracing::error!(store = %self.settings.url, %error, "the store is out; {meanwhile}");
        }
    }

    /// Notes that a thread still cannot reach the store. `error`: failure of its last try.
    pub(super) fn still_lost(&self, error: &Error) {
        let mut outage = self.outage.lock().unwrap_or_else(PoisonError::into_inner);
        outage.reason = error.to_string();
        if outage.logged.len() < MAX_REASONS && !outage.logged.contains(&outage.reason) {
            let reason = outage.reason.clone();
            outage.logged.push(reason);
            tracing::error!(store = %self.settings.url, %error, "the store is still out, for another reason");
        }
    }

    /// Notes the end of the outage of a thread.
    ///
    /// `is_back`: the thread reaches the store again. If not, it no longer uses the store.
    pub(super) fn found(&self, is_back: bool) {
        let mut outage = self.outage.lock().unwrap_or_else(PoisonError::into_inner);
        outage.workers = outage.workers.saturating_sub(1);
        // If the worker uses another store by now, the state of this one is unknown.
        if outage.workers == 0 && is_back {
            let out_for = clock::now().since(outage.since);
            tracing::info!(store = %self.settings.url, ?out_for, "the store is back");
        }
    }

    /// Records the duration of a batch until its answer or until it was given up.
    pub(super) fn asked(&self, span: Duration) {
        self.round_trips.record(span);
    }
}

/// Returns the result under which an operation is counted.
pub fn store_result(error: Option<&Error>) -> StoreResult {
    match error {
        None => StoreResult::Ok,
        Some(Error::Late) => StoreResult::Late,
        Some(Error::Unreachable(_)) => StoreResult::Unreachable,
        Some(_) => StoreResult::Refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_keeps_its_newest_reason_and_logs_few_reasons_once() {
        let store = StoreHealth::new(Redis::default());
        let reason = || store.outage().map(|(_, reason)| reason);
        store.lost(&Error::Unreachable("refused".to_owned()));
        store.still_lost(&Error::Late);
        store.still_lost(&Error::Late);
        assert_eq!(reason(), Some(Error::Late.to_string()));
        assert_eq!(store.outage.lock().unwrap().logged.len(), 2);
        for nth in 0..20 {
            store.still_lost(&Error::NotWritable(nth.to_string()));
        }
        let newest = Error::NotWritable("19".to_owned()).to_string();
        assert_eq!(reason(), Some(newest));
        assert_eq!(store.outage.lock().unwrap().logged.len(), MAX_REASONS);
        store.found(true);
        store.lost(&Error::Late);
        assert_eq!(store.outage.lock().unwrap().logged.len(), 1);
    }
}
