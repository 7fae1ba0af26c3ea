//! One request at the gate of its origin.
//!
//! The gate limits all requests to an origin, and queues them fairly by key. `crate::gate` has its
//! rules. A request gets here after its *zones* (rate limits by key) have admitted it. A *plan*
//! sets weight and class of its keys. A *follower* has waited for the answer of another request,
//! its leader; *hold* lets requests wait for an origin that cannot be reached.

use std::cell::OnceCell;
use std::sync::Arc;
use std::time::Duration;

use config::{Origin, Plans};
use limit::{Cost, Moment, Share, WaitLimits, stable_hash};

use super::destination::Destination;
use super::gate_progress::{GateProgress, KeyAndPlan, RejectedAtGate};
use super::key;
use super::limits::{LimitOutcome, ZoneAdmissions};
use super::record::RequestRecord;
use super::request_info::RequestInfo;
use super::worker::Worker;
use crate::gate::{Admission, GateRejection, KeyAtGate, OriginGate, Permit, WaitError, Waiting};
use crate::http::gateway::Gateway;
use crate::observe::events::RejectionAtGate;
use crate::observe::key_names::KeyNames;
use crate::observe::metrics::GateRejected;
use crate::time::clock;
use crate::zone::{Key, NEW_KEYS};

/// A request before the gate of its origin.
pub(super) struct GateRequest<'a> {
    gate: &'a Arc<OriginGate>,
    gateway: &'a Gateway,
    to: Destination<'a>,
    info: &'a RequestInfo<'a>,
    /// Cost of the request.
    cost: Cost,
    /// Whether a zone has admitted the request.
    is_admitted: bool,
    /// Time that the request spent as a follower.
    followed: Duration,
    /// Whether the leader had not passed the gate during that time.
    followed_in_queue: bool,
    /// Key whose share of the gate the request uses, and the plan of the key. Computed when needed.
    key_and_plan: OnceCell<KeyAndPlan>,
}

impl<'a> GateRequest<'a> {
    /// Creates the request at the gate; `None` if the origin has no gate.
    pub(super) fn new(record: &RequestRecord<'a>, to: Destination<'a>) -> Option<Self> {
        Some(Self {
            gate: record.gateway.origin(to.origin).gate()?,
            gateway: record.gateway,
            to,
            info: record.info,
            cost: record.cost,
            is_admitted: false,
            followed: Duration::ZERO,
            followed_in_queue: false,
            key_and_plan: OnceCell::new(),
        })
    }

    /// Returns the configuration of the origin.
    fn settings(&self) -> &'a Origin {
        self.gateway.origin(self.to.origin).settings()
    }

    /// Returns the key and its plan for the access log, if both exist.
    pub(super) fn key_with_plan(&self) -> Option<Box<KeyAndPlan>> {
        let has_plans = self.plans().is_some_and(|plans| !plans.is_empty());
        if !has_plans || self.gateway.access_log().is_none() {
            return None;
        }
        let found = self.key_and_plan();
        found.plan.map(|_| Box::new(found.clone()))
    }

    /// Predicts whether the gate would reject the request now. Returns the rejection.
    ///
    /// Call it before the request joins its zones: then no zone charges a request that would be
    /// rejected here.
    pub(super) fn predict_rejection(&self) -> Option<GateRejection> {
        let limits = || self.wait_limits(Duration::ZERO);
        let rejection = self.gate.predict_rejection(|| self.share(), limits)?;
        self.note_client();
        self.record_rejection(rejection.reason);
        Some(rejection)
    }

    /// Records the client's network of a waiting or rejected request, if the gate has no keys.
    ///
    /// A gate has keys if `share` of its origin names a zone.
    fn note_client(&self) {
        if self.settings().share.is_none() {
            let networks = &self.gate.events().networks;
            networks.note(self.info.client.address, clock::now());
        }
    }

    /// Counts and logs a rejection by the gate.
    fn record_rejection(&self, reason: GateRejected) {
        self.gate.metrics().rejections.add(reason, 1);
        self.gate.events().rejected(|| RejectionAtGate {
            origin: self.settings().name.clone(),
            key: self.key_name(),
            reason: reason.label(),
            route: self.to.route.name(),
        });
    }

    /// Returns the name of the request's key at a shared gate, for quoted text.
    fn key_name(&self) -> Option<String> {
        let share = self.gateway.zone(self.settings().share?).settings();
        Some(match &*self.key_and_plan().key {
            // `KeyNames` names an empty key as the shared bucket of new keys.
            [] => String::new(),
            key => KeyNames::of(share).short_quoted(key),
        })
    }

    /// Notes whether zones have admitted the request, and whether its key is one of a flood.
    ///
    /// In a flood of new keys, a zone counts them in one shared bucket.
    pub(super) fn after_zones(
        mut self,
        admissions: &ZoneAdmissions,
        outcome: Option<&LimitOutcome>,
    ) -> Self {
        self.is_admitted = !admissions.is_empty();
        let share = self.settings().share;
        let mut verdicts = outcome.iter().flat_map(|it| &it.verdicts);
        if verdicts.any(|it| it.is_flood && Some(it.limit.zone) == share) {
            // Requests that share the bucket of new keys also share one key here.
            let key = Key::from(NEW_KEYS);
            self.key_and_plan = OnceCell::from(KeyAndPlan { key, plan: None });
        }
        self
    }

    /// Notes the time that the request spent as a follower.
    ///
    /// `in_queue`: the leader had not passed the gate during that time, so it counts as time in the
    /// queue.
    pub(super) fn note_followed(&mut self, span: Duration, in_queue: bool) {
        self.followed = span;
        self.followed_in_queue = in_queue;
    }

    /// Joins the gate. `waited`: time that the request has waited so far.
    pub(super) fn join(&self, waited: Duration) -> Result<Admission, GateRejection> {
        self.gate.join(
            self.settings().charges_departures(),
            || self.share(),
            self.cost,
            &self.wait_limits(waited),
            self.is_admitted,
            self.followed,
        )
    }

    /// Returns the maximum time to wait for a leader that has not passed the gate.
    ///
    /// `max_wait` needs no check: the leader has the same one, and joined the gate within it. This
    /// request waits for less time than the leader.
    pub(super) fn follow_limit(&self) -> Duration {
        let origin = self.settings();
        origin.queue_timeout + origin.hold
    }

    /// Rejects the request after it has followed for too long.
    pub(super) fn reject_follower(&self) -> GateRejection {
        let rejection = GateRejection {
            reason: GateRejected::Timeout,
            retry_after: self.gate.predicted_wait(&self.share()),
        };
        self.record_rejection(rejection.reason);
        rejection
    }

    /// Waits until the gate lets the request pass. `waited`: time waited before.
    ///
    /// `join` adds the request to the gate, given `waited`.
    pub(super) async fn pass(
        &self,
        worker: &Worker,
        waited: Duration,
        at_gate: &mut Option<GateProgress>,
        join: impl FnOnce(&Self, Duration) -> Result<Admission, GateRejection>,
    ) -> Result<Permit, WaitError> {
        let joined = join(self, waited);
        if !matches!(joined, Ok(Admission::Passed(_))) {
            self.note_client();
        }
        let (passed, waited_here) = match joined {
            Ok(Admission::Passed(permit)) => (Ok(permit), Duration::ZERO),
            Err(rejection) => (Err(WaitError::Rejected(rejection)), Duration::ZERO),
            Ok(Admission::Waiting(waiting)) => {
                let began = worker.pacer.now();
                *at_gate = Some(GateProgress::Waiting(began));
                let limits = self.wait_limits(waited);
                // Boxed: most requests do not wait, and their state should be small.
                let permit = Box::pin(waiting.wait(limits, &worker.pacer)).await;
                (permit, worker.pacer.now().since(began))
            }
        };
        if let Ok(permit) = &passed {
            self.count_class();
            self.report_key(permit);
        }
        *at_gate = Some(self.progress_after(waited_here, &passed));
        passed
    }

    /// Waits again after the request had passed the gate and could not be sent.
    ///
    /// `waiting`: its new entry in the queue, or a rejection. `arrived`: instant at which the
    /// request arrived.
    pub(super) async fn pass_again(
        &self,
        worker: &Worker,
        waiting: Result<Waiting, GateRejection>,
        arrived: Moment,
        at_gate: &mut Option<GateProgress>,
    ) -> Result<Permit, WaitError> {
        let now = worker.pacer.now();
        let waited = at_gate.as_ref().map(|it| it.waited(|| now));
        let since = now.before(waited.unwrap_or_default());
        *at_gate = Some(GateProgress::Held(since));
        let passed = match waiting {
            Ok(waiting) => {
                let limits = self.wait_limits(waiting.since().since(arrived));
                waiting.wait(limits, &worker.pacer).await
            }
            Err(rejection) => Err(WaitError::Rejected(rejection)),
        };
        if let Ok(permit) = &passed {
            self.report_key(permit);
        }
        let waited_here = worker.pacer.now().since(since);
        *at_gate = Some(match self.progress_after(waited_here, &passed) {
            GateProgress::Rejected(rejected) => GateProgress::HeldTooLong(rejected),
            state => state,
        });
        passed
    }

    /// Returns the state after a wait of this duration. Counts and logs a rejection.
    fn progress_after(&self, waited: Duration, passed: &Result<Permit, WaitError>) -> GateProgress {
        let rejection = match passed {
            Ok(_) => return GateProgress::Passed(waited),
            Err(WaitError::Rejected(rejection)) => *rejection,
            Err(WaitError::Outage(_)) => GateRejection {
                reason: GateRejected::Outage,
                retry_after: Duration::ZERO,
            },
        };
        self.record_rejection(rejection.reason);
        let rejected = Box::new(RejectedAtGate { rejection, waited });
        match passed {
            Err(WaitError::Outage(_)) => GateProgress::HeldTooLong(rejected),
            _ => GateProgress::Rejected(rejected),
        }
    }

    /// Returns the maximum waits of a request that has waited so far for `waited`.
    fn wait_limits(&self, waited: Duration) -> WaitLimits {
        let (origin, route) = (self.settings(), self.to.route);
        let max_wait = route.max_wait.or_else(|| self.info.call_timeout());
        let max_wait = max_wait.filter(|_| !route.dry_run);
        let hold = origin.hold.saturating_sub(self.followed);
        let queued_before = if self.followed_in_queue {
            self.followed
        } else {
            Duration::ZERO
        };
        WaitLimits {
            queue_timeout: origin.queue_timeout.saturating_sub(queued_before),
            // At least 1 ms remains: zero would mean that the origin has no `hold`.
            hold: hold.max(origin.hold.min(Duration::from_millis(1))),
            max_wait: max_wait.map(|max_wait| max_wait.saturating_sub(waited + queued_before)),
        }
    }

    /// Returns the key of the request at the gate.
    pub(super) fn key(&self) -> KeyAtGate {
        let share = self.settings().share;
        KeyAtGate {
            zone: share.map(|zone| Arc::clone(self.gateway.zone(zone).name())),
            key: Key::clone(&self.key_and_plan().key),
        }
    }

    /// Counts the request for its class, if the origin has classes.
    fn count_class(&self) {
        let origin = self.settings();
        if origin.classes.is_empty() {
            return;
        }
        let plans = self.plans().filter(|plans| plans.have_classes());
        let plan = plans.and_then(|plans| plans.get(self.key_and_plan().plan?));
        let class = plan.and_then(|plan| plan.class.as_ref());
        let class = class.unwrap_or(&self.to.route.class);
        self.gateway.count_class(self.to.origin, class);
    }

    /// Reports the key of a departing request to the gate.
    fn report_key(&self, permit: &Permit) {
        let Some(share) = self.settings().share else {
            return;
        };
        let zone = || self.gateway.zone(share).settings();
        permit.report_key(|| match self.key_and_plan.get() {
            Some(key_and_plan) => stable_hash(&key_and_plan.key),
            None => key::hash_at_gate(zone(), self.info, self.to.route),
        });
    }

    /// Returns the plans of the gate's `share` zone, if there is one.
    fn plans(&self) -> Option<&'a Plans> {
        let share = self.settings().share?;
        Some(&self.gateway.zone(share).settings().plans)
    }

    /// Returns the key of the request at the gate, and its plan. Computes them at the first call.
    fn key_and_plan(&self) -> &KeyAndPlan {
        self.key_and_plan.get_or_init(|| {
            let share = self.settings().share;
            let zone = share.map(|zone| self.gateway.zone(zone).settings());
            let key_in = |zone| key::at_gate(zone, self.info, self.to.route);
            let key = zone.map_or_else(Key::default, key_in);
            let plan = zone.and_then(|zone| zone.plans.index_of(&key));
            KeyAndPlan { key, plan }
        })
    }

    /// Returns the share of the gate that the request uses.
    fn share(&self) -> Share<KeyAtGate> {
        let plan = self.key_and_plan().plan;
        let plan = plan.and_then(|plan| self.plans()?.get(plan));
        let class = plan.and_then(|plan| plan.class.as_ref());
        Share {
            class: Arc::clone(class.unwrap_or(&self.to.route.class)),
            key: self.key(),
            weight: plan.map_or(1, |plan| plan.weight),
            above_queue: self.info.above_burst(&self.gateway.settings().server),
        }
    }
}
