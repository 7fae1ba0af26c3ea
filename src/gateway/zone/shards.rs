use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use actix::Message;
use foldhash::fast::RandomState;
use limit::Moment;
use tokio::sync::oneshot;

use super::answer::{Answer, Rejection};
use super::messages::Retire;
use super::restart::Paused;
use super::supervisor::{Handle, JoinRequest, SupervisorAddress, ZoneSupervisor};
use super::unused::Unused;
use crate::observe::metrics::{PlanMetrics, ZoneMetrics};

/// A zone's supervisors, one on each worker, and the metrics that they share.
///
/// A key's hash selects its supervisor. All versions of a zone have the same shards.
#[derive(Debug)]
pub(super) struct Shards {
    supervisors: Box<[SupervisorAddress]>,
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
        supervisors: Box<[SupervisorAddress]>,
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

    pub(super) fn metrics(&self) -> &Arc<ZoneMetrics> {
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
        self.metrics.rejections.add(rejection.reason, 1);
    }

    /// Counts a request whose turn was not used.
    pub(super) fn count_unused(&self, plan: Option<&PlanMetrics>, why: Unused) {
        self.metrics.count(plan, why.status());
    }

    /// Asks the supervisor of a request's key for a turn.
    ///
    /// Returns the answer, or where it will come.
    pub(super) fn ask(
        &self,
        request: &JoinRequest<'_>,
    ) -> Result<Answer, oneshot::Receiver<Answer>> {
        self.supervisor(request.key).ask(request)
    }

    /// Sends a message to the supervisor of `key`. What one thread sends is handled in its order.
    pub(super) fn send<M>(&self, key: &[u8], message: M)
    where
        M: Message<Result = ()> + Send + 'static,
        ZoneSupervisor: Handle<M>,
    {
        self.supervisor(key).send(message);
    }

    fn supervisor(&self, key: &[u8]) -> &SupervisorAddress {
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

    pub(super) fn supervisors(&self) -> &[SupervisorAddress] {
        &self.supervisors
    }

    /// The supervisors that have not ended.
    pub(super) fn living(&self) -> impl Iterator<Item = &SupervisorAddress> {
        let all = self.supervisors.iter();
        all.filter(|supervisor| supervisor.connected())
    }

    pub(super) fn tell_all<M>(&self, message: M)
    where
        M: Message<Result = ()> + Copy + Send + 'static,
        ZoneSupervisor: Handle<M>,
    {
        for supervisor in &self.supervisors {
            supervisor.post(message);
        }
    }
}
