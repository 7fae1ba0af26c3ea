//! What few requests have: a trace and an id, a session that begins, a time behind another request.

use std::time::Duration;

use config::Route;
use limit::{Cost, Moment};

use super::super::request_id::RequestId;
use super::super::request_info::RequestInfo;
use super::super::response_fields::RoomFields;
use super::super::rewrite;
use super::{Exception, RequestRecord};
use crate::http::exchange::cost::UsedTurns;
use crate::http::gateway::Gateway;
use crate::http::message::Put;
use crate::observe::metrics::SharedOutcome;
use crate::observe::spans::Trace;

/// What few requests have. The first two tie it to the records of other programs.
#[derive(Default)]
pub(super) struct Marks<'r> {
    /// `None` if no spans of the request are sent: there is no collector, or its client does not
    /// record the trace.
    trace: Option<Trace>,
    request_id: Option<RequestId<'r>>,
    /// Of a request that begins a session in the waiting room of its origin.
    session: Option<RoomFields>,
    /// How long it waited for the answer of another one before it went on for itself.
    followed: Duration,
    /// How long its body was received before it arrived at its limits.
    receiving: Duration,
    /// When its client disconnected, if the request went on without it.
    disconnected: Option<Moment>,
}

impl<'r> Marks<'r> {
    /// Those of a request that has just come: its trace, and its id, which a trusted peer may name.
    ///
    /// Boxed: most requests have none, and a waiting one should be small.
    pub(super) fn of_new(
        gateway: &'r Gateway,
        info: &'r RequestInfo<'r>,
        began: Moment,
    ) -> Option<Box<Self>> {
        let spans = gateway.spans();
        let trace = spans.and_then(|spans| spans.trace(info.fields().named("traceparent")));
        let name = gateway.settings().server.request_id.as_ref();
        let head = Some(info.head).filter(|_| info.client.trusted);
        let request_id = name.map(|name| RequestId::of(name, head, began));
        (trace.is_some() || request_id.is_some()).then(|| {
            Box::new(Self {
                trace,
                request_id,
                ..Self::default()
            })
        })
    }
}

impl<'r> RequestRecord<'r> {
    /// The request begins a session in the waiting room of its origin: its response has these fields.
    pub(in crate::http::exchange) fn begin_session(&mut self, fields: RoomFields) {
        self.marks.get_or_insert_default().session = Some(fields);
    }

    /// The request goes on for itself, after it waited so long for the answer of another one.
    pub(in crate::http::exchange) fn went_on(&mut self, followed: Duration) {
        self.marks.get_or_insert_default().followed = followed;
    }

    /// How long it waited for the answer of another one before it went on for itself.
    pub(in crate::http::exchange) fn followed(&self) -> Duration {
        let marks = self.marks.as_ref();
        marks.map_or(Duration::ZERO, |marks| marks.followed)
    }

    /// The request arrives at its limits `now`: its body was received first.
    pub(in crate::http::exchange) fn body_received(&mut self, now: Moment) {
        self.marks.get_or_insert_default().receiving = now.since(self.began);
        self.began = now;
    }

    /// The client has disconnected, and the request goes on without it.
    pub(in crate::http::exchange) fn disconnected(&mut self) {
        let now = self.now();
        let marks = self.marks.get_or_insert_default();
        marks.disconnected.get_or_insert(now);
    }

    /// When the request ended for its client, if that was before now.
    pub(super) fn ended_early(&self) -> Option<Moment> {
        self.marks.as_ref()?.disconnected
    }

    /// How long its body was received before it arrived at its limits.
    pub(super) fn receiving(&self) -> Duration {
        let marks = self.marks.as_ref();
        marks.map_or(Duration::ZERO, |marks| marks.receiving)
    }

    /// Puts the fields of `each`, and those of a session that the request begins.
    pub(in crate::http::exchange) fn put_with_session(
        &self,
        put: Put<'_>,
        each: impl FnOnce(Put<'_>),
    ) {
        match self.marks.as_ref().and_then(|marks| marks.session.as_ref()) {
            None => each(put),
            Some(fields) => {
                // A cache before the gateway must not give the session to others.
                rewrite::uncached(put, each);
                fields.put(put);
            }
        }
    }

    /// The name of the field with the request's id, and the id, if requests have one.
    pub(in crate::http::exchange) fn request_id(&self) -> Option<(&'r str, &str)> {
        let id = self.marks.as_ref()?.request_id.as_ref()?;
        let name = self.gateway.settings().server.request_id.as_deref()?;
        Some((name, id.as_str()))
    }

    /// The `traceparent` for the origin; `None` if the client's passes unchanged.
    pub(in crate::http::exchange) fn traceparent(&self) -> Option<String> {
        self.trace().map(Trace::traceparent)
    }

    pub(super) fn trace(&self) -> Option<&Trace> {
        self.marks.as_ref()?.trace.as_ref()
    }
}

impl RequestRecord<'_> {
    /// Counts the request at its origin, and notes where its answer comes from.
    pub(in crate::http::exchange) fn count_shared(
        &mut self,
        outcome: SharedOutcome,
        origin: usize,
    ) {
        self.shared = outcome;
        if let Some(metrics) = self.gateway.collapse_metrics(origin) {
            metrics.requests.add(outcome, 1);
        }
    }

    /// Records that the answer of the origin is for this request alone.
    pub(in crate::http::exchange) fn share_no_more(&mut self) {
        if self.shared == SharedOutcome::Leader {
            self.shared = SharedOutcome::Alone;
        }
    }
}

impl RequestRecord<'_> {
    /// Settles what the request was charged in its zones, by the status of its answer and by what
    /// the answer says that it costs.
    ///
    /// Returns that cost if it is another one than was charged.
    pub(in crate::http::exchange) fn settle(
        &mut self,
        route: &Route,
        status: u16,
        billed: Option<Cost>,
        used: &mut UsedTurns<'_>,
    ) -> Option<Cost> {
        let billed = billed.filter(|cost| *cost != self.cost);
        if let Some(cost) = billed {
            self.cost = cost;
        }
        if route.refund.iter().any(|it| it.has(status)) {
            self.exception = Exception::Refunded;
            used.refund();
        } else if let Some(cost) = billed {
            used.settle(cost);
        }
        billed
    }

    /// Settles what the request was charged in its zones by how long it took its origin.
    ///
    /// Returns whether it was charged something else.
    pub(in crate::http::exchange) fn settle_work(
        &mut self,
        cost: Cost,
        used: &mut UsedTurns<'_>,
    ) -> bool {
        if cost == self.cost {
            return false;
        }
        self.cost = cost;
        if self.exception != Exception::Refunded {
            used.settle(cost);
        }
        true
    }
}
