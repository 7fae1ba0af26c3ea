//! What ties a request to the records of other programs: its trace and its id.

use super::super::request_id::RequestId;
use super::super::room_fields::RoomFields;
use super::RequestRecord;
use crate::http::gateway::Gateway;
use crate::http::message::RequestHead;
use crate::observe::spans::Trace;

/// What ties a request to the records of other programs.
#[derive(Default)]
pub(super) struct Marks<'r> {
    /// `None` if no spans of the request are sent: there is no collector, or its client does not
    /// record the trace.
    trace: Option<Trace>,
    request_id: Option<RequestId<'r>>,
    /// Of a request that begins a session in the waiting room of its origin.
    session: Option<RoomFields>,
}

impl Marks<'_> {
    /// Those of a request without an id.
    ///
    /// Boxed: most requests have none, and a waiting one should be small.
    pub(super) fn of_trace(gateway: &Gateway, head: Option<&RequestHead>) -> Option<Box<Self>> {
        let trace = gateway
            .spans()
            .and_then(|spans| spans.trace(head?.fields().named("traceparent")));
        trace.map(|trace| {
            Box::new(Self {
                trace: Some(trace),
                request_id: None,
                session: None,
            })
        })
    }
}

impl<'r> RequestRecord<'r> {
    /// Gives the request its id, if requests have one.
    ///
    /// `trusted`: its peer may say which.
    pub(in crate::http::exchange) fn identify(&mut self, trusted: bool) {
        let Some(name) = &self.gateway.settings().server.request_id else {
            return;
        };
        let head = self.head.filter(|_| trusted);
        let id = RequestId::of(name, head, self.began);
        self.marks.get_or_insert_default().request_id = Some(id);
    }

    /// The request begins a session in the waiting room of its origin: its response has these fields.
    pub(in crate::http::exchange) fn begin_session(&mut self, fields: RoomFields) {
        self.marks.get_or_insert_default().session = Some(fields);
    }

    /// Puts the fields of a session that the request begins.
    pub(in crate::http::exchange) fn put_session(&self, put: &mut dyn FnMut(&[u8], &[u8])) {
        if let Some(fields) = self.marks.as_ref().and_then(|marks| marks.session.as_ref()) {
            fields.put(put);
            // A cache before the gateway must not give the session to others.
            put(b"Cache-Control", b"no-store");
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
