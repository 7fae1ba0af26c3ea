//! Health of the store, Redis, as all workers see it: outages and refusals.
//!
//! In an *outage* the store cannot be reached or accepts no writes. A *refusal* is an error for one
//! operation alone. `link` finds the outages of one worker. `report` shows the health to users.

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

/// Minimum interval of log lines about refusals, in seconds.
const LOG_REFUSALS_EVERY: NonZeroU64 = NonZeroU64::new(60).expect("it is not zero");

/// Store named in the file, shared by all workers.
///
/// It is unavailable while any worker cannot reach it.
pub struct StoreHealth {
    /// Address, timeout and key prefix.
    settings: Redis,
    state: Mutex<State>,
    /// Limits the log lines about refusals.
    refusal_throttle: Throttle,
    /// Durations of round trips, from sending to the answer or to giving up.
    round_trips: Durations,
}

/// Mutable state of a [`StoreHealth`].
#[derive(Debug, Default)]
struct State {
    /// Effect of an outage, as a part of a message.
    during_outage: String,
    outage: Outage,
    /// Last refusal although the store was available.
    refusal: Option<Error>,
}

/// State of the present or last outage.
#[derive(Debug, Default)]
struct Outage {
    /// Number of workers that cannot reach the store.
    workers: usize,
    /// Start of the outage.
    since: Moment,
    /// Reason of the last failure.
    reason: String,
    /// Reasons that were logged.
    logged: Vec<String>,
}

impl StoreHealth {
    /// Creates the store with these settings. Does not connect.
    pub fn new(settings: Redis) -> Self {
        Self {
            settings,
            state: Mutex::default(),
            refusal_throttle: Throttle::every(LOG_REFUSALS_EVERY),
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

    /// Records that the store refused an operation of `zone` although it is available.
    ///
    /// Logs the first refusal, then at most one a minute.
    pub(crate) fn note_refusal(&self, zone: &str, error: &Error) {
        self.state().refusal = Some(error.clone());
        if self.refusal_throttle.show(clock::now()).is_none() {
            return;
        }
        let remedy = error.remedy();
        tracing::error!(store = %self.settings.url, zone, %error, "the store refused the key of a request: such requests follow on_store_failure of their zone; {remedy}");
    }

    /// Returns the last refusal for any zone while the store was available.
    pub fn last_refusal(&self) -> Option<Error> {
        self.state().refusal.clone()
    }

    /// Returns the durations of round trips, from sending to the answer or to giving up.
    pub fn round_trips(&self) -> &Durations {
        &self.round_trips
    }

    /// Creates a connection for one thread.
    pub(super) fn connection(&self) -> Store {
        let redis = &self.settings;
        let mut store = Store::new(redis.url.clone(), &redis.prefix, redis.timeout);
        store.authorities.clone_from(&redis.ca);
        store
    }

    /// Records that a worker can no longer reach the store.
    pub(super) fn begin_outage(&self, error: &Error) {
        let state = &mut *self.state();
        let (outage, during_outage) = (&mut state.outage, &state.during_outage);
        outage.workers += 1;
        if outage.workers == 1 {
            outage.since = clock::now();
            outage.reason = error.to_string();
            outage.logged = vec![outage.reason.clone()];
            tracing::error!(store = %self.settings.url, %error, "the store is out; {during_outage}");
        }
    }

    /// Records that a worker still cannot reach the store. `error`: failure of its last probe.
    pub(super) fn continue_outage(&self, error: &Error) {
        let outage = &mut self.state().outage;
        outage.reason = error.to_string();
        if outage.logged.len() < MAX_REASONS && !outage.logged.contains(&outage.reason) {
            let reason = outage.reason.clone();
            outage.logged.push(reason);
            tracing::error!(store = %self.settings.url, %error, "the store is still out, for another reason");
        }
    }

    /// Records the end of a worker's outage.
    ///
    /// `is_back`: the worker reaches the store again. If not, it no longer uses the store.
    pub(super) fn end_outage(&self, is_back: bool) {
        let outage = &mut self.state().outage;
        outage.workers = outage.workers.saturating_sub(1);
        // A worker that now uses another store cannot say whether this one is back.
        if outage.workers == 0 && is_back {
            let out_for = clock::now().since(outage.since);
            tracing::info!(store = %self.settings.url, ?out_for, "the store is back");
        }
    }

    /// Records the duration of a round trip until its answer or until it was given up.
    pub(super) fn record_round_trip(&self, span: Duration) {
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
        store.begin_outage(&Error::Unreachable("refused".to_owned()));
        store.continue_outage(&Error::Late);
        store.continue_outage(&Error::Late);
        assert_eq!(reason(), Some(Error::Late.to_string()));
        assert_eq!(store.state().outage.logged.len(), 2);
        for nth in 0..20 {
            store.continue_outage(&Error::NotWritable(nth.to_string()));
        }
        let newest = Error::NotWritable("19".to_owned()).to_string();
        assert_eq!(reason(), Some(newest));
        assert_eq!(store.state().outage.logged.len(), MAX_REASONS);
        store.end_outage(true);
        store.begin_outage(&Error::Late);
        assert_eq!(store.state().outage.logged.len(), 1);
    }
}
