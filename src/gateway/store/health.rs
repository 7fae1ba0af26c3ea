//! Health of the store: outages and refusals.

use std::num::NonZeroU64;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use config::Redis;
use limit::Moment;

use super::{Error, Store};
use crate::observe::metrics::{Durations, StoreResult};
use crate::observe::throttle::Throttle;
use crate::time::clock;

/// Upper bound of the reasons of one outage that are logged, each once.
const MAX_REASONS: usize = 8;

/// Store named in the file, shared by all workers.
///
/// It is unavailable while any worker cannot reach it.
pub struct StoreHealth {
    settings: Redis,
    state: Mutex<State>,
    /// Limits the log messages about refusals to one a minute.
    refusals: Throttle,
    round_trips: Durations,
}

/// Mutable state of a [`StoreHealth`].
#[derive(Debug, Default)]
struct State {
    /// Effect of an outage, as a part of a message.
    during_outage: String,
    outage: Outage,
    /// Last refusal although the store was available.
    refusal: Option<StoreRefusal>,
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
            state: Mutex::default(),
            refusals: Throttle::every(NonZeroU64::new(60).unwrap_or(NonZeroU64::MIN)),
            round_trips: Durations::default(),
        }
    }

    /// Returns the store's address and timeout.
    pub fn settings(&self) -> &Redis {
        &self.settings
    }

    /// Returns the effect of an outage, as a part of a message.
    pub fn during_outage(&self) -> String {
        self.state().during_outage.clone()
    }

    /// Sets the effect of an outage from now on.
    pub fn set_during_outage(&self, effect: String) {
        self.state().during_outage = effect;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the start and the reason of the present outage; `None` if the store is available.
    pub fn outage(&self) -> Option<(Moment, String)> {
        let outage = &self.state().outage;
        (outage.workers > 0).then(|| (outage.since, outage.reason.clone()))
    }

    /// Logs that the store refused an operation of `zone` although it is available.
    ///
    /// Logs the first refusal, then at most one a minute.
    pub(crate) fn refused(&self, zone: &str, error: &Error) {
        self.state().refusal = Some(error.into());
        if self.refusals.show(clock::now()).is_none() {
            return;
        }
        let remedy = error.remedy();
        tracing::error!(store = %self.settings.url, zone, %error, "the store refused the key of a request: such requests follow on_store_failure of their zone; {remedy}");
    }

    /// Returns the last refusal for any zone while the store was available.
    pub fn last_refusal(&self) -> Option<StoreRefusal> {
        self.state().refusal.clone()
    }

    /// Returns the durations of batches, from sending to the answer or to giving up.
    pub fn round_trips(&self) -> &Durations {
        &self.round_trips
    }

    /// Creates a connection for one thread.
    pub(super) fn store(&self) -> Store {
        let redis = &self.settings;
        let mut store = Store::new(redis.url.clone(), &redis.prefix, redis.timeout);
        store.authorities.clone_from(&redis.ca);
        store
    }

    /// Notes that a thread can no longer reach the store.
    pub(super) fn lost(&self, error: &Error) {
        let State {
            during_outage,
            outage,
            ..
        } = &mut *self.state();
        outage.workers += 1;
        if outage.workers == 1 {
            outage.since = clock::now();
            outage.reason = error.to_string();
            outage.logged = vec![outage.reason.clone()];
            tracing::error!(store = %self.settings.url, %error, "the store is out; {during_outage}");
        }
    }

    /// Notes that a thread still cannot reach the store. `error`: failure of its last try.
    pub(super) fn still_lost(&self, error: &Error) {
        let outage = &mut self.state().outage;
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
        let outage = &mut self.state().outage;
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
        assert_eq!(store.state().outage.logged.len(), 2);
        for nth in 0..20 {
            store.still_lost(&Error::NotWritable(nth.to_string()));
        }
        let newest = Error::NotWritable("19".to_owned()).to_string();
        assert_eq!(reason(), Some(newest));
        assert_eq!(store.state().outage.logged.len(), MAX_REASONS);
        store.found(true);
        store.lost(&Error::Late);
        assert_eq!(store.state().outage.logged.len(), 1);
    }
}
