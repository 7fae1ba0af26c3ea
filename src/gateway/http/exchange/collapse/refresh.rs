//! Refreshes a stale answer in the background, after a client got the stale one at once.
//!
//! The refresh is a *leader*: other requests may wait for its answer. It has no client.

use std::rc::Rc;

use config::RouteAction;

use super::super::arrive::find_route;
use super::super::cost;
use super::super::decision::{BeforeGate, Leading};
use super::super::destination::Destination;
use super::super::gate::GateRequest;
use super::super::limits::{LimitOutcome, Limited, ZoneAdmissions};
use super::super::record::RequestRecord;
use super::super::request_info::RequestInfo;
use super::super::worker::{CurrentGateway, Worker};
use super::lead::lead;
use crate::collapse::Leader;
use crate::http::downstream::{ConnectionContext, Peer};
use crate::http::message::RequestHead;
use crate::observe::metrics::SharedOutcome;

/// Fetches the answer again in the background.
///
/// No zone is charged for this request. It waits at the gate like any other.
pub(super) fn start(worker: &Worker, info: &RequestInfo<'_>, leader: Leader) {
    let Some((worker, gateway)) = worker.handle().zip(worker.gateway_now()) else {
        return;
    };
    let (head, peer) = (info.head.to_whole(), info.peer().clone());
    // The refresh may outlive the connection of its client.
    let peer = Peer {
        connection: None,
        ..peer
    };
    actix_rt::spawn(fetch(worker, gateway, head, peer, leader));
}

/// Sends the request again as a leader without a client.
async fn fetch(
    worker: Rc<Worker>,
    gateway: Rc<CurrentGateway>,
    head: RequestHead,
    peer: Peer,
    leader: Leader,
) {
    // `None`: no limit on the number of requests.
    let context = ConnectionContext::new(peer, None);
    let info = RequestInfo::new(&head, &context, &gateway.settings().server);
    let found = find_route(&gateway, &info, head.method());
    let Some((index, route)) = found else {
        // Dropping `leader` makes the next follower lead. The same applies below.
        return;
    };
    // The configuration may have changed since the request passed this check.
    if info.check_inputs(&route.inputs).is_err() {
        return;
    }
    let RouteAction::Forward(origin) = route.action else {
        return;
    };
    let now = worker.pacer.now();
    let mut record = RequestRecord::new(&worker, &gateway, &info, now);
    record.shared = SharedOutcome::Refresh;
    record.route = Some(index);
    record.limited = Limited::Decided(LimitOutcome::default());
    record.cost = cost::estimate(&route.cost, &info, gateway.learned_costs(index));
    let to = Destination { route, origin };
    let gate = GateRequest::new(&record, to);
    let before = BeforeGate {
        to,
        gate: gate.map(Box::new),
        admissions: ZoneAdmissions::default(),
    };
    let leading = Box::new(Leading { before, leader });
    // `None`: there is no client. The followers get the answer inside `lead`.
    let _done = lead(leading, None, &mut record).await;
}
