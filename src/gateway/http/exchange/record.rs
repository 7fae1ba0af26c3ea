//! The record of a request: counted, logged and traced once the request has ended.
//!
//! A request passes its *zones* (rate limits by key) and the *gate* (limit of its origin). A *plan*
//! sets the weight and the class of its keys.

mod disconnect;
mod rare;

use std::borrow::Cow;
use std::net::IpAddr;
use std::time::Duration;

use config::{Plan, Route, ServerUrl, Zone};
use limit::{Cost, Moment};

use rare::RareProperties;

use super::gate_progress::{GateProgress, KeyAndPlan};
use super::limits::{LimitOutcome, Limited};
use super::request_info::RequestInfo;
use super::worker::Worker;
use crate::gate::GateRejection;
use crate::http::gateway::Gateway;
use crate::http::message::RequestHead;
use crate::observe::access;
use crate::observe::key_names::KeyNames;
use crate::observe::metrics::{LimitStatus, Rejected, SharedOutcome};
use crate::observe::spans::{OriginSpan, RequestSpans, Spans, Trace};

/// Status in log and metrics if the client disconnected before a response began, as in nginx.
const CLIENT_DISCONNECTED: u16 = 499;

/// Rare outcome of a request. A request has at most one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exception {
    None,
    /// The networks of the route exclude the client.
    Refused,
    /// The charges were refunded due to the response's status.
    Refunded,
}

/// One request, from its head to the last byte of its response.
///
/// It is counted and logged exactly once, however it ends: when this is dropped.
pub(super) struct RequestRecord<'r> {
    pub(super) worker: &'r Worker,
    pub(super) gateway: &'r Gateway,
    pub(super) info: &'r RequestInfo<'r>,
    /// Instant at which the head arrived, or the body with `request_buffer`.
    pub(super) began: Moment,
    /// Index of the route, once it is found.
    pub(super) route: Option<usize>,
    /// Progress of the request with its limits.
    pub(super) limited: Limited<'r>,
    /// Progress at the origin's gate; `None` if there is none, or if the request ended before it.
    pub(super) at_gate: Option<GateProgress>,
    /// Cost of the request, as far as it is known.
    pub(super) cost: Cost,
    /// Key of the request at the origin's gate, and the key's plan, if it has one.
    pub(super) planned: Option<Box<KeyAndPlan>>,
    /// Server that got the request.
    pub(super) server: Option<&'r ServerUrl>,
    /// Time that the origin took until the head of its response, or until it failed.
    pub(super) origin_took: Option<Duration>,
    /// Instant since which only the origin was waited for; the epoch: the request is not sent yet.
    ///
    /// Not an `Option`, because a waiting request must be small.
    pub(super) awaited_since: Moment,
    /// Rare outcome of the request.
    pub(super) exception: Exception,
    /// How the request got its answer, on a route whose requests share answers (collapse).
    pub(super) shared: SharedOutcome,
    /// Whether the status is that of the origin's response.
    is_answered: bool,
    /// Rare properties. Boxed: most requests have none, and a waiting request must be small.
    rare: Option<Box<RareProperties<'r>>>,
    /// Status of the response; 499 until one begins.
    pub(super) status: u16,
    /// Number of body bytes sent to the client.
    bytes: u64,
}

impl<'r> RequestRecord<'r> {
    pub(super) fn new(
        worker: &'r Worker,
        gateway: &'r Gateway,
        info: &'r RequestInfo<'r>,
        began: Moment,
    ) -> Self {
        if let Some(connection) = info.peer().connection {
            connection.request_began();
        }
        Self {
            worker,
            gateway,
            info,
            began,
            route: None,
            limited: Limited::default(),
            at_gate: None,
            cost: Cost::ONE,
            planned: None,
            server: None,
            origin_took: None,
            awaited_since: Moment::default(),
            exception: Exception::None,
            shared: SharedOutcome::Alone,
            is_answered: false,
            rare: RareProperties::new(gateway, info, began),
            status: CLIENT_DISCONNECTED,
            bytes: 0,
        }
    }

    /// Returns the current time.
    pub(super) fn now(&self) -> Moment {
        self.worker.pacer.now()
    }

    /// Records that the client disconnected before a response began.
    pub(super) fn note_disconnect(&mut self) {
        (self.status, self.is_answered, self.bytes) = (CLIENT_DISCONNECTED, false, 0);
    }

    /// Records that the wait for the origin has ended, after `took`.
    pub(super) fn note_origin_ended(&mut self, took: Duration, now: Moment) {
        self.origin_took = Some(took);
        self.awaited_since = now.before(took);
    }

    /// Records that the origin answered, after `took`.
    pub(super) fn note_origin_answered(&mut self, status: u16, took: Duration, now: Moment) {
        self.note_origin_ended(took, now);
        self.is_answered = true;
        self.status = status;
    }

    /// Counts body bytes that were sent to the client.
    pub(super) fn add_sent(&mut self, bytes: u64) {
        self.bytes += bytes;
    }

    /// Returns the decision of the limits, once they have decided.
    pub(super) fn outcome(&self) -> Option<&LimitOutcome> {
        match &self.limited {
            Limited::Decided(outcome) => Some(outcome),
            _ => None,
        }
    }

    /// Returns the time that the request waited in its zones.
    pub(super) fn waited(&self) -> Duration {
        let outcome = self.outcome();
        outcome.map(|outcome| outcome.waited).unwrap_or_default()
    }

    /// Returns the time that the request has waited at the origin's gate, at most until `now`.
    pub(super) fn waited_at_gate(&self, now: impl FnOnce() -> Moment) -> Option<Duration> {
        self.at_gate.as_ref().map(|at_gate| at_gate.waited(now))
    }

    /// Returns the rejection by the origin's gate, if it rejected the request.
    pub(super) fn gate_rejection(&self) -> Option<&GateRejection> {
        match &self.at_gate {
            Some(GateProgress::Rejected(rejected)) => Some(&rejected.rejection),
            _ => None,
        }
    }

    /// Returns the reason why the request did not pass the origin's gate, if it did not.
    pub(super) fn rejected_at_gate(&self) -> Option<&'static str> {
        let reason = self.at_gate.as_ref()?.rejection_reason()?;
        Some(reason.label())
    }

    /// Returns the instant at which the gateway's own response begins.
    ///
    /// The clock is read only if the request reached the gate or a server. Otherwise the instant is
    /// known.
    pub(super) fn answered_at(&self) -> Moment {
        match (self.server, &self.at_gate) {
            (None, None) => self.began + self.waited(),
            _ => self.now(),
        }
    }

    /// Returns the route of the request, once it is found.
    pub(super) fn route(&self) -> Option<&'r Route> {
        self.gateway.settings().routes.get(self.route?)
    }

    /// Returns the decisive limit and its result, for the log.
    ///
    /// If the client disconnected while the request waited, the status is `Cancelled`.
    fn limited(&self) -> Option<access::Limited<'_>> {
        let waiting = self.limited.waiting();
        let (zone, key, status, excess, is_flood) = if let Some((zone, key)) = waiting {
            (zone, key, LimitStatus::Cancelled, None, false)
        } else {
            let verdict = self.outcome()?.decisive()?;
            // A request that did not pass the gate has returned the admissions of its zones.
            let status = match &self.at_gate {
                Some(GateProgress::Waiting(_)) => LimitStatus::Cancelled,
                Some(GateProgress::Rejected(_)) => LimitStatus::RejectedElsewhere,
                _ => verdict.status,
            };
            let (zone, excess) = (verdict.limit.zone, Some(verdict.excess));
            (zone, &verdict.key, status, excess, verdict.is_flood)
        };
        let zone = self.gateway.zone(zone).settings();
        Some(access::Limited {
            zone: &zone.name,
            key,
            names: KeyNames::of(zone),
            status,
            excess,
            plan: zone.plans.name_of(key),
            is_flood,
        })
    }

    /// Returns the charge of the request in its zones, as far as it is known.
    fn charge(&self) -> u32 {
        use LimitStatus::{Delayed, DelayedDryRun, NoKey, Passed};

        let is_charged = self.limited().is_none_or(|limited| {
            matches!(limited.status, Passed | Delayed | DelayedDryRun | NoKey)
        });
        if is_charged && self.exception != Exception::Refunded {
            self.cost.get()
        } else {
            0
        }
    }

    /// Returns the plan that determines the request's share of its origin's gate, and its zone.
    fn plan_at_gate(&self, route: &Route) -> Option<(&Zone, &Plan)> {
        let share = self.gateway.origin(route.origin()?).settings().share?;
        let zone = self.gateway.zone(share).settings();
        Some((zone, zone.plans.get(self.planned.as_ref()?.plan?)?))
    }

    /// Returns the request's class at its origin's gate, if the origin has classes.
    fn class(&self, route: &Route, plan: Option<&Plan>) -> Option<&str> {
        let classes = &self.gateway.origin(route.origin()?).settings().classes;
        let requested = plan.and_then(|plan| plan.class.as_ref());
        let requested = requested.unwrap_or(&route.class);
        let known = classes.iter().find(|class| class.name == *requested);
        known.or(classes.first()).map(|class| &*class.name)
    }

    /// Builds the entry of the access log.
    fn log_entry(&self, duration: Duration, now: Moment) -> access::Entry<'_> {
        let route = self.route();
        let plan_at_gate = route.and_then(|route| self.plan_at_gate(route));
        let decisive = self.outcome().and_then(LimitOutcome::decisive);
        let origin = self.server.and(route.and_then(Route::origin));
        let route_with_cost = route.filter(|route| route.has_cost());
        let field = |name| {
            let value = self.info.fields().named(name).next()?;
            Some(String::from_utf8_lossy(value))
        };
        access::Entry {
            time: now,
            client: self.info.client.address,
            line: Some(request_line(self.info.head)),
            request_id: self.request_id().map(|(_, id)| id),
            status: self.status,
            bytes: self.bytes,
            route: route.map(Route::name),
            origin: origin.map(|origin| self.gateway.origin(origin).settings().name.as_str()),
            server: self.server.as_ref().map(ToString::to_string),
            shared: (self.shared != SharedOutcome::Alone).then(|| self.shared.label()),
            is_refused: self.exception == Exception::Refused,
            limited: self.limited(),
            planned: self
                .planned
                .as_deref()
                .zip(plan_at_gate)
                .map(|(planned, (zone, plan))| access::GatePlan {
                    zone: &zone.name,
                    key: &planned.key,
                    names: KeyNames::of(zone),
                    plan: &plan.name,
                }),
            queue: match self.limited.waiting() {
                Some(_) => Some(now.since(self.began)),
                None => decisive.and(self.outcome()).map(|outcome| outcome.waited),
            },
            origin_queue: self.waited_at_gate(|| now),
            origin_rejected: self.rejected_at_gate(),
            class: route.and_then(|route| self.class(route, plan_at_gate.map(|(_, plan)| plan))),
            cost: route_with_cost.map(|_| self.charge()),
            origin_took: self.origin_took,
            duration,
            referer: field("referer"),
            user_agent: field("user-agent"),
        }
    }

    /// Sends the spans of the request to the collector.
    fn send_spans(&self, spans: &Spans, trace: &Trace, now: Moment) {
        let route = self.route();
        let queued_until = match self.limited.waiting() {
            Some(_) => now,
            None => self.began + self.waited() + self.waited_at_gate(|| now).unwrap_or_default(),
        };
        let origin_until = self
            .origin_took
            .map_or(now, |took| self.awaited_since + took);
        let by_limits = self.outcome().and_then(|outcome| outcome.rejected);
        let by_gate = self.rejected_at_gate();
        let origin = self.server.zip(route.and_then(Route::origin));
        let origin = origin.map(|(server, origin)| OriginSpan {
            time: (queued_until, origin_until),
            name: &self.gateway.origin(origin).settings().name,
            server: server.to_string(),
            is_answered: self.is_answered,
        });
        spans.send(RequestSpans {
            trace,
            method: request_line(self.info.head).method,
            route: route.map(Route::name),
            status: self.status,
            queued: (self.began.before(self.time_receiving()), queued_until),
            limited: self.limited().map(|limited| (limited.zone, limited.status)),
            rejected: by_limits.map(Rejected::label).or(by_gate),
            origin,
        });
    }
}

/// Counts and logs a request that could not be parsed.
pub(super) fn record_unreadable(
    gateway: &Gateway,
    client: Option<IpAddr>,
    status: u16,
    now: Moment,
) {
    gateway.count_request(None, status, Duration::ZERO);
    if let Some(log) = gateway.access_log() {
        log.write(&access::Entry {
            time: now,
            client,
            status,
            ..access::Entry::default()
        });
    }
}

/// Returns the request line, as the client wrote it.
fn request_line(head: &RequestHead) -> access::Line<'_> {
    access::Line {
        // A method is a token, so it is text.
        method: str::from_utf8(head.method()).unwrap_or_default(),
        target: Cow::Borrowed(head.target()),
        protocol: head.version().name(),
    }
}

impl Drop for RequestRecord<'_> {
    fn drop(&mut self) {
        if let Some(connection) = self.info.peer().connection {
            connection.request_ended();
        }
        if self.shared == SharedOutcome::Refresh {
            // No client sent this request.
            return;
        }
        let now = self.disconnected_at().unwrap_or_else(|| self.now());
        let duration = now.since(self.began) + self.time_receiving();
        self.gateway
            .count_request(self.route, self.status, duration);
        self.count_disconnect(now);
        let is_logged = self.route().is_none_or(|route| route.access_log);
        if let Some(log) = self.gateway.access_log().filter(|_| is_logged) {
            log.write(&self.log_entry(duration, now));
        }
        if let (Some(spans), Some(trace)) = (self.gateway.spans(), self.trace()) {
            self.send_spans(spans, trace, now);
        }
    }
}
