//! A simulated client of a zone: it joins, waits or leaves, and uses its slot or returns it.

use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use futures_util::future::{Either, select};
use limit::{Cost, Limit};

use super::gateway::Gateway;
use super::invariants::{Invariants, Request};
use super::world::World;
use crate::zone::{Join, Joining, Key, ZoneAdmission};

/// A request, with the future behaviour of its client.
#[derive(Clone, Debug)]
pub(super) struct Visit {
    pub(super) zone: usize,
    pub(super) key: &'static str,
    /// Limit of the route.
    pub(super) limit: Limit,
    /// Maximum wait of the client.
    pub(super) leaves_after: Option<Duration>,
    /// Use of the slot, if the request gets one.
    pub(super) slot_use: SlotUse,
}

/// Use of a slot.
#[derive(Clone, Copy, Debug)]
pub(super) enum SlotUse {
    /// Used, and nothing else.
    Used,
    /// Dropped at once, because another zone has rejected the request.
    GivenBack,
    /// Used, and refunded after this time.
    Refunded(Duration),
    /// Used. After this time the response reports another cost.
    Settled(Duration, Cost),
}

/// Joins. The task of the request then runs on the gateway's host.
pub(super) fn visit(
    world: &Rc<World>,
    invariants: &Rc<Invariants>,
    gateway: &Rc<Gateway>,
    visit: &Visit,
) {
    let (world_there, invariants) = (Rc::clone(world), Rc::clone(invariants));
    let (gateway_there, visit) = (Rc::clone(gateway), visit.clone());
    world.spawn(gateway.host, async move {
        let Some(zone) = gateway_there.zone(visit.zone) else {
            return;
        };
        let plans = &zone.settings().plans;
        let (plan, mut visit) = (plans.index_of(visit.key.as_bytes()), visit);
        if zone.settings().algorithm.has_windows() {
            // The rate includes the count.
            let rate = plans
                .plan_of(visit.key.as_bytes())
                .and_then(|plan| plan.rate);
            let rate = rate.unwrap_or(zone.settings().rate);
            visit.limit.burst = rate.whole_count().unwrap_or(1) - 1;
        }
        let request = invariants.joined(&gateway_there, &visit);
        let joining = zone.join(Join::new(
            Key::from(visit.key.as_bytes()),
            plan,
            visit.limit,
        ));
        let (world, gateway) = (&world_there, &gateway_there);
        wait_and_depart(world, &invariants, gateway, &visit, &request, joining).await;
    });
}

/// Waits for the slot, and uses it.
async fn wait_and_depart(
    world: &Rc<World>,
    invariants: &Invariants,
    gateway: &Gateway,
    visit: &Visit,
    request: &Request,
    joining: Joining<'static>,
) {
    let Some(answer) = within_patience(world, joining, visit.leaves_after).await else {
        return invariants.left(request);
    };
    if gateway.is_out() {
        invariants.is_out(gateway.number);
    }
    match answer {
        Ok(admission) => depart(world, invariants, visit, request, admission).await,
        Err(rejection) => invariants.rejected(request, &rejection),
    }
}

/// Waits for an admission; `None` if the client leaves before.
pub(super) async fn within_patience<T>(
    world: &Rc<World>,
    answer: impl Future<Output = T>,
    leaves_after: Option<Duration>,
) -> Option<T> {
    let Some(span) = leaves_after else {
        return Some(answer.await);
    };
    match select(pin!(answer), pin!(world.sleep(span))).await {
        Either::Left((answer, _)) => Some(answer),
        Either::Right(_) => None,
    }
}

/// Uses the slot of an admission, or gives it back.
async fn depart(
    world: &Rc<World>,
    invariants: &Invariants,
    visit: &Visit,
    request: &Request,
    admission: ZoneAdmission<'static>,
) {
    invariants.departed(request, admission.grant());
    let used = admission.used();
    match visit.slot_use {
        SlotUse::Used => _ = admission.take(),
        SlotUse::GivenBack => invariants.settled(request, None),
        SlotUse::Refunded(span) => {
            admission.take();
            world.sleep(span).await;
            invariants.settled(request, None);
            used.refund();
        }
        SlotUse::Settled(span, cost) => {
            admission.take();
            world.sleep(span).await;
            invariants.settled(request, Some(cost));
            used.settle(cost);
        }
    }
}
