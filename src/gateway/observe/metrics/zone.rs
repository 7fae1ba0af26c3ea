//! Metrics of a zone and of its plans.
//!
//! A zone limits the rate of each key. A key has a bucket, and while it is active an actor with a
//! queue. A plan is a list of keys with limits of their own.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use limit::{Rate, Reason};

use super::count::{Count, Level};
use super::durations::{DurationHistogram, Durations};
use super::label::{CountBy, labels};
use super::registry::Registry;

/// Requests of the keys of one plan of a zone.
pub type PlanMetrics = CountBy<LimitStatus>;

/// Metrics of one zone.
#[derive(Default)]
pub struct ZoneMetrics {
    /// Requests by their result.
    pub statuses: CountBy<LimitStatus>,
    /// Number of requests that wait.
    pub depth: Level,
    /// Number of running requests under limits with `in_flight`.
    pub in_flight: Level,
    /// Waits of requests for their slot.
    pub waits: Durations,
    /// Waits of requests whose clients disconnected.
    pub disconnects: Durations,
    /// Delay of departures after the instant of their slot.
    pub lateness: DurationHistogram,
    /// Effective rate in requests a second, as the bits of a float.
    rate: AtomicU64,
    /// Number of keys with an actor.
    pub keys_active: Level,
    /// Number of keys of which only the bucket is kept.
    pub keys_parked: Level,
    /// Keys forgotten because they were drained and idle.
    pub evicted_idle: Count,
    /// Keys forgotten to make room for others.
    pub evicted_lru: Count,
    /// Keys first seen, or seen again after they were forgotten.
    pub new_keys: Count,
    /// Requests of unknown keys that shared one bucket.
    pub flooded: Count,
    /// Rejected requests.
    pub rejections: CountBy<Rejected>,
    /// Operations in the store. Created at the first one, because most zones have no store.
    operations: OnceLock<CountBy<StoreResult>>,
    /// Metrics of each plan.
    plans: Registry<PlanMetrics>,
}

labels! {
    /// Reason of a rejection, for the metrics.
    pub enum Rejected {
        /// The bucket or the queue was full.
        Burst = "burst",
        /// The wait would have exceeded `max_wait`, or the wait for a permit has exceeded it.
        MaxWait = "max_wait",
        /// The key had the maximum numbers of running requests and of waiters.
        InFlight = "in_flight",
        /// The zone was full, and each of its keys had waiters.
        Keys = "keys",
        /// The store did not decide, and `on_store_failure` is `closed`.
        Store = "store",
        /// The key's actor or the zone's supervisor panicked and started again.
        Restart = "restart",
        /// The key or its zone was paused, and had the maximum number of waiters.
        Paused = "paused",
        /// The gateway was stopping.
        Stopping = "stopping",
    }
}

impl From<Reason> for Rejected {
    fn from(reason: Reason) -> Self {
        match reason {
            Reason::Burst => Self::Burst,
            Reason::MaxWait => Self::MaxWait,
            Reason::InFlight => Self::InFlight,
        }
    }
}

impl ZoneMetrics {
    /// Returns the metrics of a plan: the same ones as long as any handle of them exists.
    pub fn plan(&self, name: &str) -> Arc<PlanMetrics> {
        self.plans.get(name, PlanMetrics::default)
    }

    /// Counts a request by its result, also for the plan of its key if it has one.
    pub fn count(&self, plan: Option<&PlanMetrics>, status: LimitStatus) {
        self.statuses.add(status, 1);
        if let Some(plan) = plan {
            plan.add(status, 1);
        }
    }

    /// Counts operations in the store by their result.
    pub fn count_operations(&self, result: StoreResult, count: usize) {
        let operations = self.operations.get_or_init(CountBy::default);
        operations.add(result, count as u64);
    }

    /// Returns the operations in the store by their result; `None` before the first one.
    pub fn operations(&self) -> Option<&CountBy<StoreResult>> {
        self.operations.get()
    }

    /// Sets the effective rate.
    pub fn show_rate(&self, rate: Rate) {
        let is_limited = !rate.is_unlimited();
        let shown = if is_limited {
            rate.per_second()
        } else {
            f64::NAN
        };
        self.rate.store(shown.to_bits(), Ordering::Relaxed);
    }

    /// Returns the effective rate, in requests a second; NaN without a rate.
    pub fn rate(&self) -> f64 {
        f64::from_bits(self.rate.load(Ordering::Relaxed))
    }
}

labels! {
    /// Result of a request at its limits.
    ///
    /// The values are those of nginx's `$limit_req_status`, [`LimitStatus::Cancelled`],
    /// [`LimitStatus::RejectedElsewhere`] and [`LimitStatus::NoKey`].
    pub enum LimitStatus {
        /// The request passed at once.
        Passed = "passed",
        /// The request waited and then passed.
        Delayed = "delayed",
        /// The request was rejected.
        Rejected = "rejected",
        /// Dry run: the request would have waited.
        DelayedDryRun = "delayed_dry_run",
        /// Dry run: the request would have been rejected.
        RejectedDryRun = "rejected_dry_run",
        /// The client disconnected while the request waited.
        Cancelled = "cancelled",
        /// Another zone or the origin's gate rejected the request: its slot here was given back.
        RejectedElsewhere = "rejected_elsewhere",
        /// The key of the request is empty, so the request is not limited.
        NoKey = "no_key",
    }
}

labels! {
    /// Result of an operation in the store that gateways share.
    pub enum StoreResult {
        /// The store completed it.
        Ok = "ok",
        /// No response arrived in time.
        Late = "late",
        /// There was no connection, or it broke.
        Unreachable = "unreachable",
        /// The store refused it.
        Refused = "refused",
        /// Not tried, because the store was out.
        Skipped = "skipped",
        /// Not needed: a lease decided.
        Leased = "leased",
    }
}

impl StoreResult {
    /// Returns whether the operation was sent to the store.
    pub fn is_tried(self) -> bool {
        !matches!(self, Self::Skipped | Self::Leased)
    }
}
