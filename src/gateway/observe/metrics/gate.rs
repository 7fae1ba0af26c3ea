//! Metrics of an origin's gate, which bounds the pace and the number of requests to the origin.

use std::sync::{Arc, OnceLock};

use limit::Cuts;

use super::atomic_histogram::AtomicHistogram;
use super::count::Count;
use super::durations::Durations;
use super::label::{CountBy, labels};
use super::registry::Registry;
use super::zone::StoreResult;

labels! {
    /// Reason why an origin's gate rejected a request.
    pub enum GateRejected {
        /// The key of the request had the maximum number of waiters.
        Queue = "queue",
        /// The gate had the maximum number of waiters.
        MaxQueue = "max_queue",
        /// The request waited for `queue_timeout`.
        Timeout = "timeout",
        /// The request would have waited longer than `max_wait`.
        MaxWait = "max_wait",
        /// The gateway was stopping.
        Stopping = "stopping",
        /// The origin could not be reached for all of `hold`.
        Outage = "outage",
    }
}

labels! {
    /// Value that the back-off of an origin has cut.
    pub enum BackoffReason {
        /// The rate: too many responses were trouble.
        Trouble = "trouble",
        /// The permits: too many responses were slow.
        Slow = "slow",
        /// All departures, for a time that the origin named.
        RetryAfter = "retry_after",
    }
}

/// Metrics of an origin's gate.
#[derive(Default)]
pub struct GateMetrics {
    /// Rejected requests.
    pub rejections: CountBy<GateRejected>,
    /// Cuts by the back-off of this gateway: the origin was slow or failed, and gets less.
    pub backoffs: CountBy<BackoffReason>,
    /// Cuts by the back-off of other gateways, which this one adopted.
    pub adopted: CountBy<BackoffReason>,
    /// Slots given to requests whose client had disconnected.
    pub lost_slots: Count,
    /// Number of `Retry-After` fields that could not be parsed.
    pub invalid_retry_afters: Count,
    /// Waits of requests.
    pub waits: Durations,
    /// Waits of requests whose clients disconnected.
    pub disconnects: AtomicHistogram,
    /// Operations at the store that claim slots. Created by the first link to the store.
    claims: OnceLock<Arc<CountBy<StoreResult>>>,
    /// Passed requests of each class.
    classes: Registry<Count>,
}

impl GateMetrics {
    /// Returns the count of passed requests of a class.
    ///
    /// The same count as long as any handle of it exists.
    pub fn class(&self, name: &str) -> Arc<Count> {
        self.classes.get(name, Count::default)
    }

    /// Creates or returns the operations at the store, for a link to the store.
    pub fn claims(&self) -> Arc<CountBy<StoreResult>> {
        Arc::clone(self.claims.get_or_init(Arc::default))
    }

    /// Returns the operations at the store; `None` if the gate never had a link to it.
    pub fn claims_made(&self) -> Option<&CountBy<StoreResult>> {
        self.claims.get().map(|claims| &**claims)
    }
}

impl CountBy<BackoffReason> {
    /// Counts cuts.
    pub fn add_cuts(&self, cuts: Cuts) {
        self.add(BackoffReason::Trouble, cuts.trouble.into());
        self.add(BackoffReason::Slow, cuts.slow.into());
        self.add(BackoffReason::RetryAfter, cuts.retry_after.into());
    }
}
