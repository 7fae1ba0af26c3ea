//! Shards of a zone: its supervisors, one on each worker, and the choice of a supervisor by key.

use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use foldhash::fast::RandomState;
use limit::Moment;
use tokio::sync::oneshot;

use super::answer::{Answer, Rejection};
use super::join::{Join, Key};
use super::restart::PausedActors;
use super::supervisor::{SupervisorAddress, ZoneSupervisor};
use crate::observe::events::Events;
use crate::observe::metrics::{PlanMetrics, ZoneMetrics};

/// Supervisors of a zone, one on each worker, and the metrics and log events that they share.
///
/// A key's hash selects its supervisor. All versions of a zone have the same shards.
pub(super) struct Shards {
    pub(super) supervisors: Box<[SupervisorAddress]>,
    hasher: RandomState,
    pub(super) metrics: Arc<ZoneMetrics>,
    /// Log events of the zone's requests.
    pub(super) events: Arc<Events>,
    /// Supervisors that pause before a restart after repeated panics.
    pub(super) paused: PausedActors,
    /// Start of the zone.
    pub(super) started: Moment,
    /// Whether the zone was removed from the file.
    retired: AtomicBool,
}

impl Shards {
    /// Creates the shards of a zone that started at `started`.
    pub(super) fn new(
        supervisors: Box<[SupervisorAddress]>,
        metrics: Arc<ZoneMetrics>,
        events: Arc<Events>,
        paused: PausedActors,
        started: Moment,
    ) -> Self {
        Self {
            supervisors,
            hasher: RandomState::default(),
            metrics,
            events,
            paused,
            started,
            retired: AtomicBool::new(false),
        }
    }

    /// Notes that the zone was removed from the file. Supervisors end once they have no waiters.
    pub(super) fn retire(&self) {
        self.retired.store(true, Ordering::Relaxed);
        self.call_all(ZoneSupervisor::retire);
    }

    /// Returns whether the zone was removed from the file and the supervisor of `key` has ended.
    pub(super) fn has_ended(&self, key: &[u8]) -> bool {
        self.retired.load(Ordering::Relaxed) && !self.supervisor(key).connected()
    }

    /// Counts a rejection in the metrics of the zone and of the plan.
    pub(super) fn count_rejection(
        &self,
        plan: Option<&PlanMetrics>,
        rejection: &Rejection,
        dry_run: bool,
    ) {
        self.metrics.count(plan, rejection.status(dry_run));
        self.metrics.rejections.add(rejection.reason, 1);
    }

    /// Joins at the supervisor of the request's key.
    ///
    /// Returns the answer, or a receiver for it.
    pub(super) fn join(&self, join: &Join) -> Result<Answer, oneshot::Receiver<Answer>> {
        self.supervisor(&join.key).join(join)
    }

    /// Calls `call` at the supervisor of `key`. Calls from one thread are executed in order.
    pub(super) fn send(
        &self,
        key: &Key,
        call: impl FnOnce(&mut ZoneSupervisor, &Key) + Send + 'static,
    ) {
        self.supervisor(key).send(key, call);
    }

    /// Returns the supervisor of a key.
    fn supervisor(&self, key: &[u8]) -> &SupervisorAddress {
        &self.supervisors[self.index(key)]
    }

    /// Returns the index of a key's supervisor.
    fn index(&self, key: &[u8]) -> usize {
        let hash = self.hasher.hash_one(key);
        // There are far fewer workers than hashes, so the remainder is nearly uniform.
        usize::try_from(hash % self.supervisors.len() as u64).unwrap_or_default()
    }

    /// Splits items by the supervisor of their key: one list for each supervisor, in their order.
    pub(super) fn split<T>(&self, items: Vec<T>, key: impl Fn(&T) -> &[u8]) -> Vec<Vec<T>> {
        let mut parts: Vec<Vec<T>> = self.supervisors.iter().map(|_| Vec::new()).collect();
        for item in items {
            let index = self.index(key(&item));
            parts[index].push(item);
        }
        parts
    }

    /// Returns the supervisors that have not ended.
    pub(super) fn living(&self) -> impl Iterator<Item = &SupervisorAddress> {
        let all = self.supervisors.iter();
        all.filter(|supervisor| supervisor.connected())
    }

    /// Calls `call` at all supervisors.
    pub(super) fn call_all(&self, call: impl FnOnce(&mut ZoneSupervisor) + Copy + Send + 'static) {
        for supervisor in &self.supervisors {
            supervisor.post(call);
        }
    }
}
