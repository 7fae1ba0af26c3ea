use std::future::{poll_fn, ready};
use std::num::NonZeroU64;
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::Duration;

use config::{Route, RouteAction};
use futures_util::future::Either;
use limit::Moment;

use super::admitted::{Admitted, BeforeGate, Decision, Onward};
use super::buffered_client::{BufferedClient, size_for};
use super::client::Client;
use super::collapse::{self, BoxedDecision};
use super::conditions;
use super::cors;
use super::cost;
use super::forward::Forward;
use super::gate::{AtGate, GateRequest};
use super::limits::{self, Begun, LimitOutcome, Limited, Turns};
use super::pass_gate::pass_gate;
use super::record::{Exception, RequestRecord};
use super::reply::{Reply, send};
use super::request_info::RequestInfo;
use super::room;
use super::room_fields::Entrance;
use super::worker::Worker;
use crate::http::downstream::{
    Aborted, ClientError, ClientStream, ConnectionContext, RequestService, unless_gone,
};
use crate::http::gateway::Gateway;
use crate::http::message::RequestHead;
use crate::time::pacer::Priority;

impl RequestService for Worker {
    /// Serves one request, from its head to the last byte of its response.
    #[expect(
        clippy::manual_async_fn,
        reason = "an async fn has room for its arguments twice"
    )]
    fn serve<C: ClientStream>(
        &self,
        head: RequestHead,
        began: Moment,
        client: &mut C,
        context: &ConnectionContext,
    ) -> impl Future<Output = Result<(), Aborted>> {
        async move {
            let gateway = self.gateway().await;
            let priority = self.pacer.priority();
            let mut info = RequestInfo::new(&head, context.peer(), &gateway.settings().server);
            info.is_tied = context.tied().is_some();
            let address = info.client.address;
            let mut record = RequestRecord::new(&gateway, &self.pacer, address, Some(&info), began);
            record.identify(info.client.trusted);
            let decided = {
                let found = find(&gateway, &info, &mut record);
                if let Some(size) = buffer_size(&info, &record, &found) {
                    // Boxed: few requests have a buffer.
                    return Box::pin(self.serve_buffered(
                        found,
                        size,
                        &info,
                        context,
                        client,
                        &mut record,
                    ))
                    .await;
                }
                let admission = pin!(admit(self, &info, found, &mut record));
                unless_gone(&*client, admission).await
            };
            self.finish(decided, &info, context, client, &mut record, priority)
                .await
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

impl Worker {
    /// Serves a request whose origin has a [buffer](buffer_size) for its body: receives that, and
    /// then does as for any other request.
    ///
    /// The request arrives at its limits once the body is here: a zone's slot is for the moment in
    /// which the request leaves.
    async fn serve_buffered<'r, C: ClientStream>(
        &self,
        found: Result<Arrival<'r>, Reply<'r>>,
        size: NonZeroU64,
        info: &'r RequestInfo<'r>,
        context: &ConnectionContext,
        client: &mut C,
        record: &mut RequestRecord<'r>,
    ) -> Result<(), Aborted> {
        let gateway = record.gateway;
        let mut client = BufferedClient::new(client, gateway.body_memory(), size);
        let most = gateway.settings().server.max_body_size;
        match client.receive(info.head, most).await {
            Ok(()) => {}
            Err(ClientError::Gone) => return Err(Aborted::ClientGone),
            Err(error) => return send(Reply::client_error(error), &mut client, record).await,
        }
        record.body_received(self.pacer.now());
        let decided = {
            let admission = pin!(admit(self, info, found, record));
            unless_gone(&client, admission).await
        };
        let priority = self.pacer.priority();
        self.finish(decided, info, context, &mut client, record, priority)
            .await
    }

    /// Forwards a request that was admitted, or sends the response to one that goes no further.
    ///
    /// A future has room of its own for what it keeps in more than one step. So from here on there
    /// is one step.
    fn finish<'w, 'r: 'w, C: ClientStream>(
        &'w self,
        decided: Result<Decision<'r>, ClientError>,
        info: &'w RequestInfo<'w>,
        context: &'w ConnectionContext,
        client: &'w mut C,
        record: &'w mut RequestRecord<'r>,
        priority: Priority,
    ) -> impl Future<Output = Result<(), Aborted>> {
        match decided {
            // Boxed: a request that waits for a turn, or gets its response here, does not need the
            // room.
            Ok(Ok(Onward::Admitted(admitted))) => {
                let forward = Forward::new(self, admitted, info, context, client, record);
                Either::Left(Box::pin(forward.run()))
            }
            Ok(Ok(Onward::Leads(leading))) => {
                let leading = collapse::lead(self, leading, info, context, client, record);
                Either::Right(Either::Left(Either::Left(leading)))
            }
            Ok(Err(reply)) => {
                let refusing = self.refuse(reply, client, record, priority);
                Either::Right(Either::Left(Either::Right(refusing)))
            }
            Err(_gone) => {
                let gone = ready(Err(Aborted::ClientGone));
                Either::Right(Either::Right(gone))
            }
        }
    }

    /// Sends the response to a request that goes no further.
    ///
    /// This is not an `async fn`, which has room for the response and for its bytes.
    fn refuse<C: ClientStream>(
        &self,
        reply: Reply<'_>,
        client: &mut C,
        record: &mut RequestRecord<'_>,
        mut priority: Priority,
    ) -> impl Future<Output = Result<(), Aborted>> {
        let (mut is_drained, mut sending) = (false, Err(reply));
        poll_fn(move |cx| {
            if let Err(reply) = &sending {
                // If the body is not completely here, the connection closes after the response.
                if !is_drained {
                    client.drain_body(cx);
                    is_drained = true;
                }
                // A flood's rejections become ready many at once: departures go before each.
                std::task::ready!(self.pacer.poll_departures_first(&mut priority, cx));
                sending = Ok(reply.begin(client, record));
            }
            match &mut sending {
                Ok(body) => body.poll_send(client, cx),
                Err(_) => Poll::Pending,
            }
        })
    }
}

/// Waits for the waiting room of an origin, which asks a zone or the store, and then as
/// [`admit`] does.
async fn enter_room<'w, 'a: 'w>(
    worker: &'w Worker,
    info: &'a RequestInfo<'a>,
    record: &'w mut RequestRecord<'a>,
) -> Decision<'a> {
    room::enter(info, record).await?;
    let found = find(record.gateway, info, record);
    admit(worker, info, found, record).await
}

/// Returns how much of a request's body is received before the request joins its zones.
fn buffer_size(
    info: &RequestInfo<'_>,
    record: &RequestRecord<'_>,
    found: &Result<Arrival<'_>, Reply<'_>>,
) -> Option<NonZeroU64> {
    let origin = match found {
        Ok(arrival) => arrival.origin,
        // It goes there if the room lets it in.
        Err(_) if record.entrance == Entrance::Waits => record.route()?.origin()?,
        Err(_) => return None,
    };
    let settings = record.gateway.origin(origin).settings();
    size_for(info.head, settings.request_buffer)
}

/// A request that may join its zones.
struct Arrival<'a> {
    route: &'a Route,
    /// The index of the route's origin.
    origin: usize,
    /// Boxed: most origins have no gate.
    gate: Option<Box<GateRequest<'a>>>,
}

/// Finds the route of a request.
///
/// Returns `Err` with the response if the request goes no further. If the record says that it waits
/// for a room, that is none yet.
fn find<'a>(
    gateway: &'a Gateway,
    info: &'a RequestInfo<'a>,
    record: &mut RequestRecord<'a>,
) -> Result<Arrival<'a>, Reply<'a>> {
    if let Some(unfit) = info.unfit() {
        return Err(Reply::unfit(unfit));
    }
    let meets = |route: &Route| conditions::are_met(route, info);
    let of = |method| gateway.route(&info.path, &info.host, method, meets);
    let asked = cors::asked_method(info).and_then(of);
    let preflight = asked.filter(|(_, route)| route.cors.is_some());
    let found = preflight.or_else(|| of(info.head.method()));
    if let Some(port) = info.peer.redirect
        && !found.is_some_and(|(_, route)| route.is_for_acme())
    {
        return Err(Reply::redirect(info, port));
    }
    let Some((index, route)) = found else {
        return Err(Reply::plain(404, "No route matches this request\n"));
    };
    record.route = Some(index);
    if let Some(networks) = &route.networks
        && !networks.serve(info.client.address)
    {
        record.exception = Exception::Refused;
        gateway.count_refused(index);
        return Err(Reply::of_status(403));
    }
    if preflight.is_some() {
        return Err(Reply::preflight());
    }
    // Before the room, so that nobody draws a number for a request that is refused then.
    if let Some(unfit) = info.ambiguity(&route.inputs) {
        return Err(Reply::unfit(unfit));
    }
    let origin = match route.action {
        RouteAction::Forward(origin) => origin,
        RouteAction::Refuse(status) => return Err(Reply::of_status(status)),
        RouteAction::Maintenance { until, .. } => {
            return Err(Reply::maintenance(until.since(record.began)));
        }
    };
    if route.asks_room && record.entrance == Entrance::Unasked {
        let Some(entered) = room::enter_at_once(info, record) else {
            record.entrance = Entrance::Waits;
            return Err(Reply::of_status(503));
        };
        entered?;
    }
    if let Some(rewrite) = &route.rewrite
        && rewrite.makes_dots(&info.path)
    {
        return Err(Reply::plain(
            400,
            "The path is ambiguous without its prefix\n",
        ));
    }
    let length = info.head.length().exact();
    let limit = gateway.settings().server.max_body_size;
    if limit.is_some_and(|limit| length.is_some_and(|length| length > limit.get())) {
        return Err(Reply::client_error(ClientError::TooLarge));
    }
    let cost = cost::before(&route.cost, info, gateway.learned_costs(index));
    record.cost = cost;
    let gate = GateRequest::new(gateway, index, origin, info, cost);
    if let Some(gate) = &gate {
        record.planned = gate.planned().map(Box::new);
        // Without limits the gate is joined at once. Where a route collapses, a request may get the
        // answer of another one without the gate.
        let is_asked = !route.limits.is_empty() && route.collapse.is_none();
        if let Some(rejection) = is_asked.then(|| gate.foresee()).flatten() {
            record.limited = Limited::Decided(LimitOutcome::default());
            record.at_gate = Some(AtGate::Rejected(Box::new((rejection, Duration::ZERO))));
            return Err(Reply::rejected_at_gate(route, &rejection));
        }
    }
    Ok(Arrival {
        route,
        origin,
        gate: gate.map(Box::new),
    })
}

/// Waits for the turn of a request in its zones and at its origin's gate.
fn admit<'w, 'a: 'w>(
    worker: &'w Worker,
    info: &'a RequestInfo<'a>,
    found: Result<Arrival<'a>, Reply<'a>>,
    record: &'w mut RequestRecord<'a>,
) -> impl Future<Output = Decision<'a>> + use<'w, 'a> {
    let Arrival {
        route,
        origin,
        gate,
    } = match found {
        Ok(arrival) => arrival,
        Err(_) if record.entrance == Entrance::Waits => {
            record.entrance = Entrance::Passed;
            let entering: BoxedDecision<'w, 'a> = Box::pin(enter_room(worker, info, record));
            return Either::Right(Either::Left(entering));
        }
        Err(reply) => return Either::Left(ready(Err(reply))),
    };
    let mut turns = Turns::default();
    match limits::begin(route, info, record, &mut turns) {
        Begun::Decided => {
            if let Some(reply) = rejected(route, record) {
                return Either::Left(ready(Err(reply)));
            }
            match go_on(worker, info, route, origin, gate, turns, record) {
                Ok(decision) => Either::Left(ready(decision)),
                Err(waiting) => Either::Right(Either::Left(waiting)),
            }
        }
        Begun::Waiting(several) => Either::Right(Either::Right(async move {
            // What is not needed any more would be kept while it waits again.
            let waiting = {
                let turns = limits::wait(route, info, record, several).await;
                if let Some(reply) = rejected(route, record) {
                    return Err(reply);
                }
                match go_on(worker, info, route, origin, gate, turns, record) {
                    Ok(decision) => return decision,
                    Err(waiting) => waiting,
                }
            };
            waiting.await
        })),
    }
}

/// Decides about a request that its limits let through, or lets it wait on: at the gate of its
/// origin, or for the answer of another one.
#[inline]
fn go_on<'w, 'a: 'w>(
    worker: &'w Worker,
    info: &'a RequestInfo<'a>,
    route: &'a Route,
    origin: usize,
    gate: Option<Box<GateRequest<'a>>>,
    turns: Turns<'a>,
    record: &'w mut RequestRecord<'a>,
) -> Result<Decision<'a>, BoxedDecision<'w, 'a>> {
    if route.collapse.is_some() {
        let before = BeforeGate {
            route,
            origin,
            gate,
            turns,
        };
        return collapse::share(worker, info, before, record);
    }
    let Some(gate) = gate else {
        let admitted = Admitted::new(route, origin, None, turns);
        return Ok(Ok(Onward::Admitted(admitted)));
    };
    // Boxed, because most origins have no gate.
    let join = GateRequest::join;
    Err(Box::pin(pass_gate(
        worker, route, origin, gate, turns, record, join,
    )))
}

/// Returns the response to a request that its limits rejected.
fn rejected<'a>(route: &'a Route, record: &RequestRecord<'_>) -> Option<Reply<'a>> {
    let outcome = record.outcome()?;
    let decisive = outcome.decisive();
    let retry_after = decisive.map(|verdict| verdict.outlook.one_more_in);
    Some(Reply::rejected(route, outcome.rejected?, retry_after))
}
