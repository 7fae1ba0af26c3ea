//! A request's way through the gate of its origin.

use std::cell::OnceCell;
use std::sync::Arc;
use std::time::Duration;

use super::key;
use super::request_info::RequestInfo;
use super::worker::Worker;
use crate::actors::Key;
use crate::config::{Origin, Plans, Route};
use crate::http::gateway::Gateway;
use crate::http::upstream::{Admission, GateRejection, OriginGate, Place};
use crate::limit::{Cost, Moment, Share};
use crate::observe::events::RejectionAtGate;

/// What became of a request at the gate of its origin.
#[derive(Clone, Copy, Debug)]
pub(super) enum AtGate {
    /// It waits there since this moment. If its client leaves, this is what remains.
    Waiting(Moment),
    /// It passed after this time.
    Passed(Duration),
    /// It was rejected after this time.
    Rejected(GateRejection, Duration),
}

/// A request before the gate of its origin.
pub(super) struct GateRequest<'a> {
    gate: &'a Arc<OriginGate>,
    gateway: &'a Gateway,
    /// Index of its route.
    index: usize,
    /// Index of the route's origin.
    origin: usize,
    info: &'a RequestInfo<'a>,
    /// What the request counts for.
    cost: Cost,
    /// Whose share of the gate it takes, once that matters.
    sharer: OnceCell<Sharer>,
}

/// Whose share of a gate a request takes.
struct Sharer {
    /// Empty if the origin names no zone.
    key: Key,
    /// Index of the plan of the key in that zone, if it has one.
    plan: Option<usize>,
}

/// A key that has a plan in the zone that shares a gate.
#[derive(Debug)]
pub(super) struct Planned {
    pub(super) key: Key,
    /// Index of the plan.
    pub(super) plan: usize,
}

impl<'a> GateRequest<'a> {
    /// Returns `None` if the origin has no gate.
    pub(super) fn new(
        gateway: &'a Gateway,
        index: usize,
        origin: usize,
        info: &'a RequestInfo<'a>,
        cost: Cost,
    ) -> Option<Self> {
        let gate = gateway.origin(origin).gate()?;
        Some(Self {
            gate,
            gateway,
            index,
            origin,
            info,
            cost,
            sharer: OnceCell::new(),
        })
    }

    fn route(&self) -> &'a Route {
        &self.gateway.settings().routes[self.index]
    }

    /// The settings of the origin.
    fn settings(&self) -> &'a Origin {
        self.gateway.origin(self.origin).settings()
    }

    /// The key of the request here, if it has a plan and the log has to tell.
    pub(super) fn planned(&self) -> Option<Planned> {
        let has_plans = self.plans().is_some_and(|plans| !plans.is_empty());
        if !has_plans || self.gateway.access_log().is_none() {
            return None;
        }
        let Sharer { key, plan } = self.sharer();
        plan.map(|plan| Planned {
            key: Key::clone(key),
            plan,
        })
    }

    /// Returns why the gate would reject the request now, if it would.
    ///
    /// This is asked before any zone is joined, so a hopeless request is charged nowhere.
    pub(super) fn foresee(&self) -> Option<GateRejection> {
        let rejection = self
            .gate
            .foresee(|| self.share(), self.most(Duration::ZERO))?;
        self.tell_rejection(&rejection);
        Some(rejection)
    }

    /// Counts and logs that the gate rejects the request.
    fn tell_rejection(&self, rejection: &GateRejection) {
        self.gate.metrics().count_rejection(rejection.reason);
        self.gate.events().rejected(|| RejectionAtGate {
            origin: self.settings().name.clone(),
            key: self.sharer().key.to_vec(),
            reason: rejection.reason.label(),
            route: self.route().name(),
        });
    }

    /// Waits until the gate lets the request through. `waited` is how long it has waited before.
    pub(super) async fn pass(
        &self,
        worker: &Worker,
        waited: Duration,
        at_gate: &mut Option<AtGate>,
    ) -> Result<Place, GateRejection> {
        let admission = self
            .gate
            .join(|| self.share(), self.cost, self.most(waited));
        let (passed, span) = match admission {
            Ok(Admission::Passed(place)) => (Ok(place), Duration::ZERO),
            Err(rejection) => (Err(rejection), Duration::ZERO),
            Ok(Admission::Waiting(waiting)) => {
                let began = worker.pacer.now();
                *at_gate = Some(AtGate::Waiting(began));
                let limit = self.settings().queue_timeout;
                // Boxed: most requests need not wait, and their state should be small.
                let turn = Box::pin(waiting.turn(limit, &worker.pacer)).await;
                (turn, worker.pacer.now().since(began))
            }
        };
        *at_gate = Some(match &passed {
            Ok(_) => {
                self.count_class();
                AtGate::Passed(span)
            }
            Err(rejection) => {
                self.tell_rejection(rejection);
                AtGate::Rejected(*rejection, span)
            }
        });
        passed
    }

    /// The longest time that the request may wait here. In a dry run a route has no `max_wait`.
    fn most(&self, waited: Duration) -> Option<Duration> {
        let most = self.route().max_wait.or(self.info.call_timeout);
        let most = most.filter(|_| !self.route().dry_run)?;
        Some(most.saturating_sub(waited))
    }

    /// Counts the request for its class, if the origin has classes.
    fn count_class(&self) {
        let origin = self.settings();
        if origin.classes.is_empty() {
            return;
        }
        let decides = self.plans().is_some_and(Plans::have_classes);
        let plan = decides.then(|| self.sharer().plan).flatten();
        if let Some(class) = self.gateway.class_metrics(self.index, plan) {
            class.count();
        }
    }

    /// The plans of the zone that shares the gate, if there is one.
    fn plans(&self) -> Option<&'a Plans> {
        let share = self.settings().share?;
        Some(&self.gateway.zone(share).settings().plans)
    }

    fn sharer(&self) -> &Sharer {
        self.sharer.get_or_init(|| {
            let share = self.settings().share;
            let zone = share.map(|zone| self.gateway.zone(zone).settings());
            let key = zone.map_or_else(Key::default, |zone| key::shared(zone, self.info));
            let plan = zone.and_then(|zone| zone.plans.index_of(&key));
            Sharer { key, plan }
        })
    }

    /// The share of the gate that the request takes.
    fn share(&self) -> Share<Key> {
        let Sharer { key, plan } = self.sharer();
        let plan = plan.and_then(|plan| self.plans()?.get(plan));
        let class = plan.and_then(|plan| plan.class.as_ref());
        Share {
            class: Arc::clone(class.unwrap_or(&self.route().class)),
            key: Key::clone(key),
            weight: plan.map_or(1, |plan| plan.weight),
        }
    }
}
