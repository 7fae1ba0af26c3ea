//! An answer is fetched anew behind a stale one, which the client gets at once.

use std::rc::Rc;

use config::{Route, RouteAction};

use super::super::admitted::{BeforeGate, Leading};
use super::super::conditions;
use super::super::cost;
use super::super::gate::GateRequest;
use super::super::limits::{LimitOutcome, Limited, Turns};
use super::super::record::RequestRecord;
use super::super::request_info::RequestInfo;
use super::super::worker::{CurrentGateway, Worker};
use super::lead::lead_any;
use crate::collapse::Leader;
use crate::http::downstream::{ConnectionContext, Peer};
use crate::http::message::RequestHead;
use crate::observe::metrics::SharedOutcome;

/// Fetches the answer anew. The request that found it stale does not wait for that.
///
/// It is charged in no zone, and waits at the gate like any other.
pub(super) fn start(worker: &Worker, info: &RequestInfo<'_>, leader: Leader) {
    let Some((worker, gateway)) = worker.itself().zip(worker.gateway_now()) else {
        return;
    };
    let (head, peer) = (info.head.whole(), info.peer.clone());
    // It may outlive the connection of its client.
    let peer = Peer {
        connection: None,
        ..peer
    };
    actix_rt::spawn(fetch(worker, gateway, head, peer, leader));
}

async fn fetch(
    worker: Rc<Worker>,
    gateway: Rc<CurrentGateway>,
    head: RequestHead,
    peer: Peer,
    leader: Leader,
) {
    let context = ConnectionContext::new(peer, None);
    let info = RequestInfo::new(&head, context.peer(), &gateway.settings().server);
    let meets = |route: &Route| conditions::are_met(route, &info);
    let found = gateway.route(&info.path, &info.host, head.method(), meets);
    let Some((index, route)) = found else {
        return;
    };
    // The file may have changed since the request was found to be fit.
    if info.ambiguity(&route.inputs).is_some() {
        return;
    }
    let RouteAction::Forward(origin) = route.action else {
        return;
    };
    let now = worker.pacer.now();
    let mut record = RequestRecord::new(&gateway, &worker.pacer, None, Some(&info), now);
    record.shared = SharedOutcome::Refresh;
    record.identify(info.client.trusted);
    record.route = Some(index);
    record.limited = Limited::Decided(LimitOutcome::default());
    record.cost = cost::before(&route.cost, &info, gateway.learned_costs(index));
    let gate = GateRequest::new(&gateway, index, origin, &info, record.cost);
    let before = BeforeGate {
        route,
        origin,
        gate: gate.map(Box::new),
        turns: Turns::default(),
    };
    let leading = Box::new(Leading { before, leader });
    // What becomes of it, those who wait for it are told.
    let _done = lead_any(&worker, leading, &info, &context, None, &mut record).await;
}
