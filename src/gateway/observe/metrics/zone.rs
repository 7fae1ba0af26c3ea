use std::num::NonZeroUsize;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ::metrics::{Gauge, Histogram, counter, gauge, histogram};
use limit::{Rate, Reason};

use super::atomic_histogram::{AtomicHistogram, Counts};
use super::limit_status::LimitStatus;
use super::plan::PlanMetrics;
use super::registry::Registry;
use super::store::StoreResult;
use super::tally::Tally;
use super::{
    STORE_OPERATIONS, ZONE_DEPTH, ZONE_EVICTIONS, ZONE_FLOODED, ZONE_IN_FLIGHT, ZONE_KEYS,
    ZONE_LATENESS, ZONE_LEFT, ZONE_MAX_KEYS, ZONE_NEW_KEYS, ZONE_OVERRIDDEN_KEYS, ZONE_OVERRIDE,
    ZONE_RATE, ZONE_REJECTIONS, ZONE_REQUESTS, ZONE_WAIT,
};

/// Metrics of one zone.
#[derive(Debug)]
pub struct ZoneMetrics {
    statuses: [Tally; LimitStatus::ALL.len()],
    /// Requests that wait.
    pub depth: Gauge,
    /// Running requests, of those that a limit with `in_flight` bounds.
    pub in_flight: Gauge,
    wait: Histogram,
    /// The same waits as in `wait`, for readers that need their quantiles each second.
    waits: AtomicHistogram,
    left: Histogram,
    /// The same as in `left`, as `waits`.
    lefts: AtomicHistogram,
    /// How late waiting requests left after their due time, in seconds.
    pub lateness: Histogram,
    /// The rate in force, in requests a second.
    pub rate: Gauge,
    /// 1 while the zone is not as in the file: its rate, a pause, a dry run.
    overrides: [Gauge; 3],
    overridden_keys: Gauge,
    /// Keys with an actor.
    pub keys_active: Gauge,
    /// Keys of which only the bucket is kept.
    pub keys_parked: Gauge,
    /// Keys forgotten because they were drained and idle.
    pub evicted_idle: Tally,
    /// Keys forgotten to make room for others.
    pub evicted_lru: Tally,
    /// Keys that were not known before, or no longer.
    pub new_keys: Tally,
    /// Requests of unknown keys that shared one bucket.
    pub flooded: Tally,
    max_keys: Gauge,
    rejections: [Tally; Rejected::ALL.len()],
    /// Created at the first operation, because most zones have no store.
    operations: OnceLock<[Tally; StoreResult::ALL.len()]>,
    plans: Registry<PlanMetrics>,
    name: String,
}

/// The reason of a rejection, for the metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejected {
    /// The bucket or the queue was full.
    Burst,
    /// The request would have waited longer than `max_wait`, or has waited that long for a place.
    MaxWait,
    /// As many requests of the key ran as may, and as many waited as may.
    InFlight,
    /// The zone was full, and each of its keys had waiters.
    Keys,
    /// The store did not decide, and `on_store_failure` is `closed`.
    Store,
    /// The key's actor or the zone's supervisor panicked and started again.
    Restart,
    /// The key or its zone was paused, and as many requests waited as may.
    Paused,
    /// The gateway was stopping.
    Stopping,
}

impl Rejected {
    /// All reasons.
    pub const ALL: [Self; 8] = [
        Self::Burst,
        Self::MaxWait,
        Self::InFlight,
        Self::Keys,
        Self::Store,
        Self::Restart,
        Self::Paused,
        Self::Stopping,
    ];

    /// The value of the label `reason`.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Burst => "burst",
            Self::MaxWait => "max_wait",
            Self::InFlight => "in_flight",
            Self::Keys => "keys",
            Self::Store => "store",
            Self::Restart => "restart",
            Self::Paused => "paused",
            Self::Stopping => "stopping",
        }
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
    /// The metrics of the zone called `zone`; each call returns the same series.
    #[must_use]
    pub fn of(zone: &str) -> Self {
        let name = zone.to_owned();
        let keys = |state| gauge!(ZONE_KEYS, "zone" => name.clone(), "state" => state);
        let evicted = |reason| {
            Tally::into_series(counter!(ZONE_EVICTIONS, "zone" => name.clone(), "reason" => reason))
        };
        Self {
            statuses: LimitStatus::ALL.map(|status| {
                Tally::into_series(
                    counter!(ZONE_REQUESTS, "zone" => name.clone(), "status" => status.label()),
                )
            }),
            depth: gauge!(ZONE_DEPTH, "zone" => name.clone()),
            in_flight: gauge!(ZONE_IN_FLIGHT, "zone" => name.clone()),
            wait: histogram!(ZONE_WAIT, "zone" => name.clone()),
            waits: AtomicHistogram::default(),
            left: histogram!(ZONE_LEFT, "zone" => name.clone()),
            lefts: AtomicHistogram::default(),
            lateness: histogram!(ZONE_LATENESS, "zone" => name.clone()),
            rate: gauge!(ZONE_RATE, "zone" => name.clone()),
            overrides: ["rate", "pause", "dry_run"]
                .map(|kind| gauge!(ZONE_OVERRIDE, "zone" => name.clone(), "kind" => kind)),
            overridden_keys: gauge!(ZONE_OVERRIDDEN_KEYS, "zone" => name.clone()),
            keys_active: keys("active"),
            keys_parked: keys("parked"),
            evicted_idle: evicted("idle"),
            evicted_lru: evicted("lru"),
            new_keys: Tally::into_series(counter!(ZONE_NEW_KEYS, "zone" => name.clone())),
            flooded: Tally::into_series(counter!(ZONE_FLOODED, "zone" => name.clone())),
            max_keys: gauge!(ZONE_MAX_KEYS, "zone" => name.clone()),
            rejections: Rejected::ALL.map(|reason| {
                Tally::into_series(
                    counter!(ZONE_REJECTIONS, "zone" => name.clone(), "reason" => reason.label()),
                )
            }),
            operations: OnceLock::new(),
            plans: Registry::default(),
            name,
        }
    }

    /// The metrics of one of its plans; each call returns the same ones while they are in use.
    #[must_use]
    pub fn plan(&self, name: &str) -> Arc<PlanMetrics> {
        self.plans.get(name, || PlanMetrics::of(&self.name, name))
    }

    /// Counts a request by its result, and for the plan of its key if it has one.
    pub fn count(&self, plan: Option<&PlanMetrics>, status: LimitStatus) {
        self.statuses[status as usize].add(1);
        if let Some(plan) = plan {
            plan.count(status);
        }
    }

    /// How many requests had this result.
    #[must_use]
    pub fn counted(&self, status: LimitStatus) -> u64 {
        self.statuses[status as usize].get()
    }

    /// Records how long a request had waited when its client left.
    pub fn left_after(&self, span: Duration) {
        self.left.record(span);
        self.lefts.record(span);
    }

    /// Records how long a request had waited whose client left just after its turn.
    pub fn gave_up_after(&self, span: Duration) {
        self.lefts.record(span);
    }

    /// How long requests had waited when their clients left, or just before.
    #[must_use]
    pub fn lefts(&self) -> Counts {
        self.lefts.counts()
    }

    /// Records how long a request waited for its turn.
    pub fn waited(&self, span: Duration) {
        self.wait.record(span);
        self.waits.record(span);
    }

    /// The waits recorded so far.
    #[must_use]
    pub fn waits(&self) -> Counts {
        self.waits.counts()
    }

    /// Counts a rejection by its reason.
    pub fn count_rejection(&self, reason: Rejected) {
        self.rejections[reason as usize].add(1);
    }

    /// How many requests were rejected for this reason.
    #[must_use]
    pub fn rejected(&self, reason: Rejected) -> u64 {
        self.rejections[reason as usize].get()
    }

    /// Counts operations in the store by their result.
    pub fn count_operations(&self, result: StoreResult, count: usize) {
        let operations = self.operations.get_or_init(|| {
            StoreResult::ALL.map(|result| {
                let zone = self.name.clone();
                Tally::into_series(
                    counter!(STORE_OPERATIONS, "zone" => zone, "result" => result.label()),
                )
            })
        });
        operations[result as usize].add(count as u64);
    }

    /// Reports what is not as in the file: the rate, a pause, a dry run, and how many keys.
    #[allow(clippy::cast_precision_loss)]
    pub fn show_overrides(&self, kinds: [bool; 3], keys: usize) {
        for (gauge, is_on) in self.overrides.iter().zip(kinds) {
            gauge.set(if is_on { 1.0 } else { 0.0 });
        }
        self.overridden_keys.set(keys as f64);
    }

    /// How many operations in the store had this result.
    #[must_use]
    pub fn operations(&self, result: StoreResult) -> u64 {
        let operations = self.operations.get();
        operations.map_or(0, |operations| operations[result as usize].get())
    }

    /// Reports the rate now in force.
    pub fn show_rate(&self, rate: Rate) {
        let is_limited = !rate.is_unlimited();
        self.rate.set(if is_limited {
            rate.per_second()
        } else {
            f64::NAN
        });
    }

    /// Reports the most keys that are remembered.
    #[allow(clippy::cast_precision_loss)]
    pub fn show_max_keys(&self, max_keys: NonZeroUsize) {
        self.max_keys.set(max_keys.get() as f64);
    }

    /// Reports the counts to Prometheus.
    pub fn show(&self) {
        let keys = [
            &self.evicted_idle,
            &self.evicted_lru,
            &self.new_keys,
            &self.flooded,
        ];
        let tallies = self.statuses.iter().chain(&self.rejections);
        let operations = self.operations.get().into_iter().flatten();
        tallies.chain(keys).chain(operations).for_each(Tally::show);
        self.plans.all().iter().for_each(|plan| plan.show());
    }
}

/// Reports the last counts, so that they are not lost.
impl Drop for ZoneMetrics {
    fn drop(&mut self) {
        self.show();
    }
}
