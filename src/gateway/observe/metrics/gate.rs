//! An origin's gate.

use std::sync::{Arc, OnceLock};

use limit::Cuts;

use super::atomic_histogram::AtomicHistogram;
use super::count::Count;
use super::durations::Durations;
use super::label::{CountBy, labels};
use super::registry::Registry;
use super::zone::StoreResult;

labels! {
    /// Why an origin's gate rejected a request.
    pub enum GateRejected {
        /// Its key had as many waiters as it may have.
        Queue = "queue",
        /// As many requests waited as may wait together.
        MaxQueue = "max_queue",
        /// It waited for `queue_timeout`.
        Timeout = "timeout",
        /// It would have waited longer than `max_wait`.
        MaxWait = "max_wait",
        /// The gateway was stopping.
        Stopping = "stopping",
        /// The origin could not be reached for all of `hold`.
        Outage = "outage",
    }
}

labels! {
    /// What the back-off of an origin has cut.
    pub enum BackoffReason {
        /// The rate: too many answers were trouble.
        Trouble = "trouble",
        /// The places: too many answers were slow.
        Slow = "slow",
        /// All departures, for a time that the origin named.
        RetryAfter = "retry_after",
    }
}

/// Metrics of an origin's gate.
#[derive(Debug, Default)]
pub struct GateMetrics {
    /// Requests that it rejected.
    pub rejections: CountBy<GateRejected>,
    /// What its back-off cut.
    pub backoffs: CountBy<BackoffReason>,
    /// Cuts that other gateways made.
    pub adopted: CountBy<BackoffReason>,
    /// Slots given to requests whose client had gone.
    pub lost_slots: Count,
    /// Each `Retry-After` that could not be read.
    pub invalid_retry_afters: Count,
    /// How long requests waited.
    pub waits: Durations,
    /// How long requests had waited when their clients left.
    pub lefts: AtomicHistogram,
    /// Created by the first link to the store.
    claims: OnceLock<Arc<CountBy<StoreResult>>>,
    classes: Registry<Count>,
}

impl GateMetrics {
    /// Requests of one of its classes that passed; the same count while anybody holds it.
    pub fn class(&self, name: &str) -> Arc<Count> {
        self.classes.get(name, Count::default)
    }

    /// What it asked the store for, for a link to the store.
    pub fn claims(&self) -> Arc<CountBy<StoreResult>> {
        Arc::clone(self.claims.get_or_init(Arc::default))
    }

    /// What it asked the store for; `None` if it never had a link to it.
    pub fn claims_made(&self) -> Option<&CountBy<StoreResult>> {
        self.claims.get().map(|claims| &**claims)
    }
}

impl CountBy<BackoffReason> {
    /// Counts what was cut.
    pub fn add_cuts(&self, cuts: Cuts) {
        self.add(BackoffReason::Trouble, cuts.trouble.into());
        self.add(BackoffReason::Slow, cuts.slow.into());
        self.add(BackoffReason::RetryAfter, cuts.retry_after.into());
    }
}
