//! A request's way through the gate of its origin.

use std::sync::Arc;
use std::time::Duration;

use super::key;
use super::request_info::RequestInfo;
use super::worker::Worker;
use crate::actors::Key;
use crate::config::Route;
use crate::http::gateway::Gateway;
use crate::http::upstream::{Admission, GateRejection, OriginGate, Place};
use crate::limit::{Cost, Moment, Share};

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
    route: &'a Route,
    info: &'a RequestInfo<'a>,
    /// What the request counts for.
    cost: Cost,
}

impl<'a> GateRequest<'a> {
    /// Returns `None` if the origin has no gate.
    pub(super) fn new(
        gateway: &'a Gateway,
        route: &'a Route,
        info: &'a RequestInfo<'a>,
        cost: Cost,
    ) -> Option<Self> {
        let gate = gateway.origin(route.origin).gate()?;
        Some(Self {
            gate,
            gateway,
            route,
            info,
            cost,
        })
    }

    /// The class that the plan of the request's key gives it, if the log has to tell.
    pub(super) fn class_of_plan(&self) -> Option<Arc<str>> {
        let share = self.gateway.origin(self.route.origin).settings().share?;
        let plans = &self.gateway.zone(share).settings().plans;
        let has_classes = plans.iter().any(|plan| plan.class.is_some());
        has_classes.then(|| self.share().class)
    }

    /// Returns why the gate would reject the request now, if it would.
    ///
    /// This is asked before any zone is joined, so a hopeless request is charged nowhere.
    pub(super) fn foresee(&self) -> Option<GateRejection> {
        let rejection = self
            .gate
            .foresee(|| self.share(), self.most(Duration::ZERO))?;
        self.gate.metrics().count_rejection(rejection.reason);
        Some(rejection)
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
                let limit = self
                    .gateway
                    .origin(self.route.origin)
                    .settings()
                    .queue_timeout;
                // Boxed: most requests need not wait, and their state should be small.
                let turn = Box::pin(waiting.turn(limit, &worker.pacer)).await;
                (turn, worker.pacer.now().since(began))
            }
        };
        *at_gate = Some(match &passed {
            Ok(_) => AtGate::Passed(span),
            Err(rejection) => {
                self.gate.metrics().count_rejection(rejection.reason);
                AtGate::Rejected(*rejection, span)
            }
        });
        passed
    }

    /// The longest time that the request may wait here. In a dry run a route has no `max_wait`.
    fn most(&self, waited: Duration) -> Option<Duration> {
        let most = self.route.max_wait.filter(|_| !self.route.dry_run)?;
        Some(most.saturating_sub(waited))
    }

    /// The share of the gate that the request takes. Its key is empty if the origin names no zone.
    fn share(&self) -> Share<Key> {
        let share = self.gateway.origin(self.route.origin).settings().share;
        let zone = share.map(|zone| self.gateway.zone(zone).settings());
        let key = zone.map_or_else(Key::default, |zone| key::shared(zone, self.info));
        let plan = zone.and_then(|zone| zone.plans.of(&key));
        let class = plan.and_then(|plan| plan.class.as_ref());
        Share {
            class: Arc::clone(class.unwrap_or(&self.route.class)),
            key,
            weight: plan.map_or(1, |plan| plan.weight),
        }
    }
}
