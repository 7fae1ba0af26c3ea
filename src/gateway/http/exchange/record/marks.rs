//! What few requests have: a trace and an id, a session that begins, a time behind another request.

use std::time::Duration;

use limit::Moment;

use super::super::request_id::RequestId;
use super::super::request_info::RequestInfo;
use super::super::rewrite;
use super::super::room_fields::RoomFields;
use super::RequestRecord;
use crate::http::gateway::Gateway;
use crate::http::message::Put;
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
