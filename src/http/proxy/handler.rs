use std::future::poll_fn;
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::Duration;

use super::admitted::Admitted;
use super::client::Client;
use super::cost;
use super::forward::{Failure, Forward};
use super::gate::{AtGate, GateRequest};
use super::limits::{self, LimitOutcome};
use super::record::RequestRecord;
use super::reply::Reply;
use super::request_info::RequestInfo;
use super::worker::Worker;
use crate::config::{Route, RouteAction};
use crate::http::downstream::{
    Aborted, ClientError, ClientStream, ConnectionContext, RequestService, unless_gone,
};
use crate::http::gateway::Gateway;
use crate::http::message::RequestHead;
use crate::http::message::sender::Then;
use crate::http::upstream::NoTurn;
use crate::limit::Moment;
use crate::time::pacer::Priority;

impl RequestService for Worker {
    /// Serves one request, from its head to the last byte of its response.
    #[expect(
        clippy::manual_async_fn,
        reason = "an async fn has room for its arguments twice"
    )]
    fn serve<C: ClientStream>(
        &self,
        head: &RequestHead,
        began: Moment,
        client: &mut C,
        context: &ConnectionContext,
    ) -> impl Future<Output = Result<(), Aborted>> {
        async move {
            let gateway = self.gateway().await;
            let mut priority = self.pacer.priority();
            let server = &gateway.settings().server;
            let info = RequestInfo::new(head, context.peer(), server);
            let address = info.client.address;
            let mut record = RequestRecord::new(&gateway, &self.pacer, address, Some(head), began);
            let admitted = {
                let admission = pin!(admit(self, &gateway, &info, &mut record));
                unless_gone(&*client, admission).await
            };
            let (admitted, refused) = match admitted {
                Ok(Ok(admitted)) => (Some(admitted), None),
                Ok(Err(reply)) => (None, Some(reply)),
                Err(_gone) => return Err(Aborted::ClientGone),
            };
            let mut reply = refused;
            if let Some(admitted) = admitted {
                let route = admitted.route;
                let mut forward = Forward::new(self, admitted, &info, context, client, &mut record);
                // Boxed: a request that waits for a turn, or gets its response here, does not need
                // the room.
                let forwarded = Box::pin(async move { forward.run().await }).await;
                if let Err(failure) = forwarded {
                    reply = Some(answer_to(failure, route, client.has_begun())?);
                }
            } else {
                // If the body is not completely here, the connection closes after the response.
                poll_fn(|cx| {
                    client.drain_body(cx);
                    Poll::Ready(())
                })
                .await;
                // A flood's rejections become ready many at once: departures go before each.
                poll_fn(|cx| self.pacer.poll_departures_first(&mut priority, cx)).await;
            }
            let Some(reply) = reply else {
                return Ok(());
            };
            let mut body = reply.begin(client, &mut record);
            let sent = poll_fn(|cx| client.poll_send(cx, &mut body, Then::End(None))).await;
            sent.map_err(|_| Aborted::ClientGone)
        }
    }

    fn refused(&self, status: u16, context: &ConnectionContext) {
        if let Some(gateway) = self.gateway_now() {
            let client = Client::of_peer(context.peer());
            let now = self.pacer.now();
            RequestRecord::new(&gateway, &self.pacer, client.address, None, now)
                .answer_began(status);
        }
    }

    fn poll_admission(&self, task: &mut Priority, cx: &mut Context<'_>) -> Poll<Moment> {
        self.pacer.poll_departures_first(task, cx)
    }
}

/// Finds the route of a request, and waits for its turn in its zones and at its origin's gate.
///
/// Returns `Err` with the response if the request goes no further.
async fn admit<'a>(
    worker: &Worker,
    gateway: &'a Gateway,
    info: &RequestInfo<'_>,
    record: &mut RequestRecord<'a>,
) -> Result<Admitted<'a>, Reply<'a>> {
    if let Some(unfit) = info.unfit() {
        return Err(Reply::unfit(unfit));
    }
    let method = str::from_utf8(info.head.method()).ok();
    let found = gateway.route(&info.path, &info.host, method);
    if let Some(port) = info.peer.redirect
        && !found.is_some_and(|(_, route)| route.is_for_acme())
    {
        return Err(Reply::redirect(info, port));
    }
    let Some((index, route)) = found else {
        return Err(Reply::plain(404, "No route matches this request\n"));
    };
    record.route = Some(index);
    let origin = match route.action {
        RouteAction::Forward(origin) => origin,
        RouteAction::Refuse(status) => return Err(Reply::of_status(status)),
    };
    if let Some(rewrite) = &route.rewrite
        && rewrite.makes_dots(&info.path)
    {
        return Err(Reply::plain(
            400,
            "The path is ambiguous without its prefix\n",
        ));
    }
    if let Some(unfit) = info.ambiguity(&route.inputs) {
        return Err(Reply::unfit(unfit));
    }
    let length = info.head.length().exact();
    let limit = gateway.settings().server.max_body_size;
    if limit.is_some_and(|limit| length.is_some_and(|length| length > limit.get())) {
        return Err(Reply::client_error(ClientError::TooLarge));
    }
    let cost = cost::before(&route.cost, info);
    record.cost = cost;
    let gate = GateRequest::new(gateway, index, origin, info, cost);
    record.planned = gate.as_ref().and_then(GateRequest::planned);
    // Without limits the gate is joined at once.
    let hopeless = gate.as_ref().filter(|_| !route.limits.is_empty());
    if let Some(rejection) = hopeless.and_then(GateRequest::foresee) {
        record.outcome = Some(LimitOutcome::default());
        record.at_gate = Some(AtGate::Rejected(rejection, Duration::ZERO));
        return Err(Reply::rejected_at_gate(route, &rejection));
    }
    let waiting = &mut record.waiting;
    let (outcome, turns) =
        limits::wait(worker, gateway, route, info, cost, record.began, waiting).await;
    let outcome = record.outcome.insert(outcome);
    if let Some(reason) = outcome.rejected {
        let decisive = outcome.decisive();
        let retry_after = decisive.map(|verdict| verdict.outlook.one_more_in);
        return Err(Reply::rejected(route, reason, retry_after));
    }
    let mut place = None;
    if let Some(gate) = gate.map(|gate| gate.after(&turns, outcome)) {
        let origin = gateway.origin(origin);
        // Nobody waits for an origin that cannot be asked, unless it has `hold`.
        let picked = origin.pick(None, worker.pacer.now()).map(drop);
        let passed = match picked.or_else(|error| origin.begin_outage(error)) {
            Ok(()) => gate.pass(worker, outcome.waited, &mut record.at_gate).await,
            Err(error) => Err(NoTurn::Outage(error)),
        };
        match passed {
            Ok(passed) => place = Some(passed),
            Err(NoTurn::Outage(error)) => {
                let _used = turns.take(route);
                origin.tell_unanswered(&error, worker.pacer.now());
                return Err(Reply::unanswered(&error));
            }
            Err(NoTurn::Rejected(rejection)) => {
                turns.reject_elsewhere();
                return Err(Reply::rejected_at_gate(route, &rejection));
            }
        }
    }
    let (used, held) = turns.take(route);
    Ok(Admitted {
        route,
        origin,
        place,
        used,
        held,
    })
}

/// Returns the response for a failed request, if the client can still receive one.
fn answer_to(failure: Failure, route: &Route, has_begun: bool) -> Result<Reply<'_>, Aborted> {
    match failure {
        Failure::Client(ClientError::Gone) => Err(Aborted::ClientGone),
        Failure::Origin(error) if !has_begun => Ok(Reply::unanswered(&error)),
        Failure::Rejected(rejection) if !has_begun => {
            Ok(Reply::rejected_at_gate(route, &rejection))
        }
        Failure::Client(error) if !has_begun => Ok(Reply::client_error(error)),
        _ => Err(Aborted::AnswerBroken),
    }
}
