//! All limits of a route, applied to one request.

mod pending;
mod several;
mod trial;
mod turns;
mod verdict;

use smallvec::smallvec;

use self::pending::pending;
use self::several::join_all;
use self::trial::{set_apart, try_out};
pub(super) use self::turns::{HeldPlaces, Turns};
pub(super) use self::verdict::{LimitOutcome, LimitVerdict};
use super::Worker;
use super::request_info::RequestInfo;
use crate::actors::Key;
use crate::config::Route;
use crate::http::gateway::Gateway;
use crate::http::message::FieldName;
use crate::limit::{Cost, Moment};
use crate::observe::metrics::LimitStatus;

/// Where a request waits, as long as it waits.
///
/// If its client leaves, this is all that is known of the request.
#[derive(Debug)]
pub(super) struct WaitingPlace {
    /// Index of the first zone that the request joined.
    pub(super) zone: usize,
    pub(super) key: Key,
    pub(super) since: Moment,
}

/// Joins all zones of the route for a request of this cost.
///
/// Waits for all turns or the first rejection. All zones are joined at once, but those that bound
/// the running requests of a key: they come after the others, one after another in the order of the
/// zones' names, which no reload changes. So a request that holds a place in one of them only waits
/// for zones further on, and no two requests can wait for each other.
///
/// After a rejection there are no turns: the others are dropped, which refunds their charges. If
/// several zones are joined at once, they are probed first, so that this is rare. While the request
/// waits, `place` says where, and that it has waited since `began`.
pub(super) async fn wait<'r>(
    worker: &Worker,
    gateway: &'r Gateway,
    route: &'r Route,
    info: &RequestInfo<'_>,
    cost: Cost,
    began: Moment,
    place: &mut Option<WaitingPlace>,
) -> (LimitOutcome, Turns<'r>) {
    let (first, others) = pending(gateway, route, info, cost);
    let Some(first) = first else {
        return Default::default();
    };
    let (first, others, tried) = set_apart(first, others);
    *place = Some(WaitingPlace {
        zone: first.wanted.zone,
        key: Key::clone(&first.key),
        since: began,
    });
    let tried = try_out(gateway, route, tried).await;
    let decided = if others.is_empty() {
        match first.join(gateway).await {
            Ok(turn) => {
                let verdict = first.granted(&turn);
                Ok((smallvec![verdict], Turns::from_iter([turn])))
            }
            Err(rejection) => Err((first, rejection)),
        }
    } else {
        // Boxed: most routes have one limit, and a waiting request should be small.
        Box::pin(join_all(gateway, first, others, || {
            worker.pacer.now().since(began)
        }))
        .await
    };
    *place = None;
    let now = worker.pacer.now();
    let (verdicts, turns, rejected) = match decided {
        Ok((mut verdicts, mut turns)) => {
            let was_delayed = |verdict: &&LimitVerdict| verdict.status != LimitStatus::Passed;
            for verdict in verdicts.iter().filter(was_delayed) {
                let events = gateway.events(verdict.wanted.zone);
                events.delayed(&verdict.limiting(gateway), now);
                note_forwarder(gateway, verdict.wanted.zone, info, now);
            }
            verdicts.extend(tried.0);
            turns.extend(tried.1);
            (verdicts, turns, None)
        }
        Err((refused, rejection)) => {
            let verdict = refused.rejected(&rejection);
            verdict.tell_rejection(gateway, route, &rejection);
            note_forwarder(gateway, verdict.wanted.zone, info, now);
            tried.1.reject_elsewhere();
            let holds = verdict.status == LimitStatus::Rejected;
            let rejected = holds.then_some(rejection.reason);
            (smallvec![verdict], Turns::default(), rejected)
        }
    };
    let outcome = LimitOutcome {
        verdicts,
        waited: now.since(began),
        rejected,
    };
    (outcome, turns)
}

/// Notes whom the peer of a limited request names as its client, if only trust would let it.
fn note_forwarder(gateway: &Gateway, zone: usize, info: &RequestInfo<'_>, now: Moment) {
    let client = info.client;
    if client.trusted || !gateway.zone(zone).settings().key.has_address() {
        return;
    }
    let named = || info.fields().all(FieldName::XForwardedFor).next();
    let forwarders = &gateway.events(zone).forwarders;
    forwarders.note(client.peer, named, now);
}
