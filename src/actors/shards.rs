use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use actix::dev::ToEnvelope;
use actix::{Addr, Context, Handler, Message};
use foldhash::fast::RandomState;

use super::answer::Rejection;
use super::messages::Retire;
use super::restart::Paused;
use super::supervisor::ZoneSupervisor;
use super::unused::Unused;
use crate::limit::Moment;
use crate::observe::metrics::{PlanMetrics, ZoneMetrics};

/// A zone's supervisors, one on each worker, and the metrics that they share.
///
/// A key's hash selects its supervisor. All versions of a zone have the same shards.
#[derive(Debug)]
pub(super) struct Shards {
    supervisors: Box<[Addr<ZoneSupervisor>]>,
    hasher: RandomState,
    metrics: Arc<ZoneMetrics>,
    paused: Paused,
    /// When the zone was started.
    started: Moment,
    /// Whether the zone has left the file.
    retired: AtomicBool,
}

impl Shards {
    pub(super) fn new(
        supervisors: Box<[Addr<ZoneSupervisor>]>,
        metrics: Arc<ZoneMetrics>,
        paused: Paused,
        started: Moment,
    ) -> Self {
        Self {
            supervisors,
            hasher: RandomState::default(),
            metrics,
            paused,
            started,
            retired: AtomicBool::new(false),
        }
    }

    /// The zone has left the file: the supervisors end once nothing waits or runs there.
    pub(super) fn retire(&self) {
        self.retired.store(true, Ordering::Relaxed);
        self.tell_all(Retire);
    }

    /// Whether the zone has left the file and the supervisor of `key` has ended.
    pub(super) fn has_ended(&self, key: &[u8]) -> bool {
        self.retired.load(Ordering::Relaxed) && !self.supervisor(key).connected()
    }

    pub(super) fn metrics(&self) -> &ZoneMetrics {
        &self.metrics
    }

    pub(super) fn started(&self) -> Moment {
        self.started
    }

    pub(super) fn is_paused(&self) -> bool {
        self.paused.any()
    }

    pub(super) fn count_rejection(
        &self,
        plan: Option<&PlanMetrics>,
        rejection: &Rejection,
        dry_run: bool,
    ) {
        self.metrics.count(plan, rejection.status(dry_run));
        self.metrics.count_rejection(rejection.reason);
    }

    /// Counts a request whose turn was not used.
    pub(super) fn count_unused(&self, plan: Option<&PlanMetrics>, why: Unused) {
        self.metrics.count(plan, why.status());
    }

    /// Sends a message to the supervisor of `key`.
    pub(super) fn send<M>(&self, key: &[u8], message: M)
    where
        M: Message + Send + 'static,
        M::Result: Send,
        ZoneSupervisor: Handler<M>,
        Context<ZoneSupervisor>: ToEnvelope<ZoneSupervisor, M>,
    {
        self.supervisor(key).do_send(message);
    }

    fn supervisor(&self, key: &[u8]) -> &Addr<ZoneSupervisor> {
        &self.supervisors[self.index(key)]
    }

    fn index(&self, key: &[u8]) -> usize {
        let hash = self.hasher.hash_one(key);
        // There are far fewer workers than hashes, so the remainder is nearly uniform.
        usize::try_from(hash % self.supervisors.len() as u64).unwrap_or_default()
    }

    /// Splits what belongs to keys by their supervisors, in the order of these.
    pub(super) fn split<T>(&self, all: Vec<T>, key: impl Fn(&T) -> &[u8]) -> Vec<Vec<T>> {
        let mut parts: Vec<Vec<T>> = self.supervisors.iter().map(|_| Vec::new()).collect();
        for one in all {
            let index = self.index(key(&one));
            parts[index].push(one);
        }
        parts
    }

    pub(super) fn supervisors(&self) -> &[Addr<ZoneSupervisor>] {
        &self.supervisors
    }

    /// The supervisors that have not ended.
    pub(super) fn living(&self) -> impl Iterator<Item = &Addr<ZoneSupervisor>> {
        let all = self.supervisors.iter();
        all.filter(|supervisor| supervisor.connected())
    }

    pub(super) fn tell_all<M>(&self, message: M)
    where
        M: Message<Result = ()> + Copy + Send + 'static,
        ZoneSupervisor: Handler<M>,
        Context<ZoneSupervisor>: ToEnvelope<ZoneSupervisor, M>,
    {
        for supervisor in &self.supervisors {
            supervisor.do_send(message);
        }
    }
}
