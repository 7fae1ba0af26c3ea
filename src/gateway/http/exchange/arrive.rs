//! The stages that a request passes before it joins its zones. Each stage is one feature.
//!
//! A stage lets the request pass, or ends it with a response. No stage waits. `admit` follows:
//! there the request joins its *zones* (rate limits by key) and then the *gate* (limit of its
//! origin). The *room* is the waiting room of the origin, where visitors wait before that.

use std::borrow::Cow;
use std::time::Duration;

use config::{Matcher, MatcherInput, Route, RouteAction, target};

use super::destination::Destination;
use super::gate::GateRequest;
use super::gate_progress::GateProgress;
use super::limits::{LimitOutcome, Limited};
use super::record::{Exception, RequestRecord};
use super::reply::Reply;
use super::request_info::RequestInfo;
use super::{cookies, cors, cost, room};
use crate::http::downstream::ClientError;
use crate::http::gateway::Gateway;
use crate::http::message::FieldName;

/// A request that may join its zones.
pub(super) struct Arrival<'a> {
    pub(super) to: Destination<'a>,
    /// Boxed: most origins have no gate.
    pub(super) gate: Option<Box<GateRequest<'a>>>,
}

/// Reason why a request does not join its zones now.
pub(super) enum NotArrived<'a> {
    /// The request gets this response.
    Reply(Reply<'a>),
    /// The request waits in the room of its origin for a reply of a zone or of the store.
    AtRoom(Destination<'a>),
}

impl<'a> From<Reply<'a>> for NotArrived<'a> {
    fn from(reply: Reply<'a>) -> Self {
        Self::Reply(reply)
    }
}

/// Passes a request through all stages, unless it must wait in the room.
pub(super) fn arrive<'a>(record: &mut RequestRecord<'a>) -> Result<Arrival<'a>, NotArrived<'a>> {
    let to = pass_stages_before_room(record)?;
    if to.route.asks_room {
        // `None`: the request must wait for a reply. The second `?` returns the room's response.
        room::enter_at_once(record).ok_or(NotArrived::AtRoom(to))??;
    }
    Ok(pass_stages_after_room(to, record)?)
}

/// Runs the stages before the waiting room. A request that is rejected here gets no position there.
fn pass_stages_before_room<'a>(
    record: &mut RequestRecord<'a>,
) -> Result<Destination<'a>, Reply<'a>> {
    let info = record.info;
    info.check_fitness()?;
    let (route, is_preflight) = record_route(record)?;
    check_networks(route, record)?;
    if is_preflight {
        return Err(Reply::preflight());
    }
    info.check_inputs(&route.inputs)?;
    let origin = forward_origin(route, record)?;
    Ok(Destination { route, origin })
}

/// Runs the stages after the waiting room.
pub(super) fn pass_stages_after_room<'a>(
    to: Destination<'a>,
    record: &mut RequestRecord<'a>,
) -> Result<Arrival<'a>, Reply<'a>> {
    let (gateway, info) = (record.gateway, record.info);
    check_rewrite(to.route, info)?;
    check_size(record)?;
    let learned_costs = record.route.and_then(|it| gateway.learned_costs(it));
    record.cost = cost::estimate(&to.route.cost, info, learned_costs);
    let gate = predict_gate(to, record)?;
    Ok(Arrival { to, gate })
}

/// Finds the route and records it. Also returns whether the request is a CORS preflight.
fn record_route<'a>(record: &mut RequestRecord<'a>) -> Result<(&'a Route, bool), Reply<'a>> {
    let (gateway, info) = (record.gateway, record.info);
    let find = |method| find_route(gateway, info, method);
    // A preflight asks for the route of the request that would follow it.
    let preflight = cors::requested_method(info).and_then(find);
    let preflight = preflight.filter(|(_, route)| route.cors.is_some());
    let found = preflight.or_else(|| find(info.head.method()));
    // Requests for certificates (ACME) are served on the port that redirects all others.
    if let Some(port) = info.peer().redirect
        && !found.is_some_and(|(_, route)| route.is_for_acme())
    {
        return Err(Reply::redirect(info, port));
    }
    let Some((index, route)) = found else {
        return Err(Reply::plain(404, "No route matches this request\n"));
    };
    record.route = Some(index);
    Ok((route, preflight.is_some()))
}

/// Rejects clients that `allow` and `deny` of the route exclude.
fn check_networks<'a>(route: &Route, record: &mut RequestRecord<'a>) -> Result<(), Reply<'a>> {
    let (networks, address) = (route.networks.as_ref(), record.info.client.address);
    if networks.is_none_or(|networks| networks.serves(address)) {
        return Ok(());
    }
    record.exception = Exception::Refused;
    if let Some(index) = record.route {
        record.gateway.count_refused(index);
    }
    Err(Reply::of_status(403))
}

/// Returns the origin of a route that forwards, or the response of a route that does not.
fn forward_origin<'a>(route: &'a Route, record: &RequestRecord<'a>) -> Result<usize, Reply<'a>> {
    match route.action {
        RouteAction::Forward(origin) => Ok(origin),
        RouteAction::Refuse(status) => Err(Reply::of_status(status)),
        RouteAction::Maintenance { until, .. } => {
            Err(Reply::maintenance(until.since(record.began)))
        }
    }
}

/// Rejects a path that would contain `.` or `..` segments after its prefix is removed.
fn check_rewrite<'a>(route: &Route, info: &RequestInfo<'_>) -> Result<(), Reply<'a>> {
    let rewrite = route.rewrite.as_ref();
    if rewrite.is_some_and(|rewrite| rewrite.makes_dots(&info.path)) {
        let text = "The path is ambiguous without its prefix\n";
        return Err(Reply::plain(400, text));
    }
    Ok(())
}

/// Rejects a body whose announced length exceeds `max_body_size`.
fn check_size<'a>(record: &RequestRecord<'a>) -> Result<(), Reply<'a>> {
    let length = record.info.head.length().exact();
    let limit = record.gateway.settings().server.max_body_size;
    if limit.is_some_and(|limit| length.is_some_and(|length| length > limit.get())) {
        return Err(Reply::of_status(ClientError::TooLarge.status()));
    }
    Ok(())
}

/// Rejects a request at once if its origin's gate would reject it after it has waited in its zones.
fn predict_gate<'a>(
    to: Destination<'a>,
    record: &mut RequestRecord<'a>,
) -> Result<Option<Box<GateRequest<'a>>>, Reply<'a>> {
    let Some(gate) = GateRequest::new(record, to) else {
        return Ok(None);
    };
    record.planned = gate.key_with_plan();
    // Without limits, the request joins the gate at once, so no prediction is needed. With
    // collapse, it may get a shared answer and never join the gate.
    let is_predicted = !to.route.limits.is_empty() && to.route.collapse.is_none();
    let predicted = is_predicted.then(|| gate.predict_rejection());
    if let Some(rejection) = predicted.flatten() {
        record.limited = Limited::Decided(LimitOutcome::default());
        record.at_gate = Some(GateProgress::rejected_after(Duration::ZERO, rejection));
        return Err(Reply::rejected_at_gate(to.route, &rejection));
    }
    Ok(Some(Box::new(gate)))
}

/// Returns the route that matches a request with this method, and the index of the route.
pub(super) fn find_route<'g>(
    gateway: &'g Gateway,
    info: &RequestInfo<'_>,
    method: &[u8],
) -> Option<(usize, &'g Route)> {
    gateway.route(&info.path, &info.host, method, |route| meets(info, route))
}

/// Returns whether a request meets the conditions of a route, and came to its listener.
fn meets(info: &RequestInfo<'_>, route: &Route) -> bool {
    let expected = route.listen.as_deref();
    let is_its_listener = expected.is_none_or(|name| info.peer().listener() == Some(name));
    is_its_listener && route.conditions.iter().all(|it| is_met(it, info))
}

/// Returns whether a condition is met, or is met for a program that reads the request otherwise.
///
/// A value that programs read in two ways counts as met. Then [`RequestInfo::check_inputs`] rejects
/// the request, because the route reads the same value.
fn is_met(condition: &Matcher, info: &RequestInfo<'_>) -> bool {
    let value = match &condition.input {
        MatcherInput::Header(name) if name == "host" => info.head.named_host().map(Cow::Borrowed),
        MatcherInput::Header(name) => info.as_forwarded(name),
        MatcherInput::Query(name) => target::given_argument(info.query(), name),
        MatcherInput::Cookie(name) => cookies::first(info.fields().all(FieldName::Cookie), name),
    };
    condition.is_met_by(value.as_deref()) || info.is_ambiguous(&condition.input)
}
