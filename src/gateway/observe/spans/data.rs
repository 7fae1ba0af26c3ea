//! Spans of a request, in the types of the OpenTelemetry crates.

use std::time::{Duration, SystemTime};

use limit::Moment;
use opentelemetry::trace::{SpanContext, SpanKind, Status, TraceFlags, TraceState};
use opentelemetry::{InstrumentationScope, KeyValue, SpanId, TraceId};
use opentelemetry_sdk::trace::{IdGenerator, RandomIdGenerator, SpanData, SpanEvents, SpanLinks};

use super::{OriginSpan, RequestSpans, Time, Trace};
use crate::time::clock;

/// Methods that a span names. OpenTelemetry's conventions require `_OTHER` for all others.
const METHODS: [&str; 9] = [
    "CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE",
];

/// Status in the log if the client disconnected before a response began.
const CLIENT_DISCONNECTED: u16 = 499;

/// Creates an id for a span; never zero.
pub(super) fn new_id() -> u64 {
    let id = RandomIdGenerator::default().new_span_id();
    u64::from_be_bytes(id.to_bytes()).max(1)
}

/// Builds the spans of a request: `queued`, and `origin` if a server was used.
pub(super) fn build(request: RequestSpans<'_>) -> impl Iterator<Item = SpanData> {
    let method = METHODS.into_iter().find(|name| *name == request.method);
    let method = method.unwrap_or("_OTHER");
    // Attributes of both spans.
    let mut shared = vec![KeyValue::new("http.request.method", method)];
    if let Some(route) = request.route {
        shared.push(KeyValue::new("http.route", route));
    }
    let (trace, status) = (request.trace, request.status);
    let mut queued = span(trace, new_id(), "queued", request.queued, shared.clone());
    if let Some((zone, status)) = request.limited {
        let attributes = [
            KeyValue::new("drip.zone", zone.to_owned()),
            KeyValue::new("drip.limit_status", status.label()),
        ];
        queued.attributes.extend(attributes);
    }
    if let Some(reason) = request.rejected {
        queued.attributes.push(KeyValue::new("drip.reason", reason));
    }
    if request.origin.is_none() {
        queued.attributes.push(status_code(status));
        if status != CLIENT_DISCONNECTED {
            queued.status = Status::error(request.rejected.unwrap_or_default());
        }
    }
    let origin = request.origin.map(|origin| {
        let mut span = span(trace, trace.origin, "origin", origin.time, shared);
        span.span_kind = SpanKind::Client;
        span.status = span_status(&origin, status);
        let attributes = [
            KeyValue::new("drip.origin", origin.name.to_owned()),
            KeyValue::new("drip.server", origin.server),
        ];
        span.attributes.extend(attributes);
        if origin.is_answered {
            span.attributes.push(status_code(status));
        }
        span
    });
    [queued].into_iter().chain(origin)
}

/// Returns the status of the span `origin`: an error if the origin failed.
fn span_status(origin: &OriginSpan<'_>, status: u16) -> Status {
    match (origin.is_answered, status) {
        (true, 500..) => Status::error(""),
        (true, _) | (false, CLIENT_DISCONNECTED) => Status::Unset,
        (false, _) => Status::error("no response"),
    }
}

/// Builds the attribute with the status of a response.
fn status_code(status: u16) -> KeyValue {
    KeyValue::new("http.response.status_code", i64::from(status))
}

/// Builds a span.
fn span(
    trace: &Trace,
    id: u64,
    name: &'static str,
    time: Time,
    attributes: Vec<KeyValue>,
) -> SpanData {
    let (begin, end) = time;
    SpanData {
        span_context: SpanContext::new(
            TraceId::from(trace.parent.trace),
            SpanId::from(id),
            TraceFlags::new(trace.parent.flags),
            false,
            TraceState::NONE,
        ),
        parent_span_id: SpanId::from(trace.parent.span),
        parent_span_is_remote: true,
        span_kind: SpanKind::Internal,
        name: name.into(),
        start_time: system_time(begin),
        end_time: system_time(end),
        attributes,
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links: SpanLinks::default(),
        status: Status::Unset,
        instrumentation_scope: InstrumentationScope::builder("drip").build(),
    }
}

/// Converts an instant to the time of the wall clock.
fn system_time(moment: Moment) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_nanos(clock::to_wall(moment).as_nanos())
}
