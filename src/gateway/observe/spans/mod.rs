//! Spans of sampled requests, for OpenTelemetry.
//!
//! A span is a part of a request's trace: `queued` in the gateway, and `origin` at the origin.
//! `trace` parses the client's trace, `data` builds spans, `export` and `collector` send them. A
//! build without the feature `otlp` has no spans: its [`Spans`] cannot exist.

#[cfg(feature = "otlp")]
mod collector;
#[cfg(feature = "otlp")]
mod data;
#[cfg(feature = "otlp")]
mod export;
mod trace;

#[cfg(feature = "otlp")]
pub use export::Spans;
pub use trace::{Parent, Trace};

use limit::Moment;

use crate::observe::metrics::LimitStatus;

/// Begin and end of a span.
pub type Time = (Moment, Moment);

/// A sampled request that has ended, with the facts for its spans.
pub struct RequestSpans<'r> {
    /// Trace of the request.
    pub trace: &'r Trace,
    /// Method, as the client wrote it.
    pub method: &'r str,
    /// Name of the route that matched the request.
    pub route: Option<String>,
    /// Status of the response; 499 if the client disconnected before there was one.
    pub status: u16,
    /// From the request's head to its slot in all zones and at the gate, or to its rejection.
    pub queued: Time,
    /// Zone that decided, and its decision.
    pub limited: Option<(&'r str, LimitStatus)>,
    /// Reason why a limit or the gate rejected the request.
    pub rejected: Option<&'static str>,
    /// Time at the origin; `None` if no server was used.
    pub origin: Option<OriginSpan<'r>>,
}

/// Time of a request at its origin.
pub struct OriginSpan<'r> {
    /// From the slot to the head of the response, or to giving up.
    pub time: Time,
    /// Name of the origin.
    pub name: &'r str,
    /// Server that was used last.
    pub server: String,
    /// Whether the origin sent a response.
    pub is_answered: bool,
}

/// Sends spans to a collector: not in this build.
#[cfg(not(feature = "otlp"))]
pub enum Spans {}

#[cfg(not(feature = "otlp"))]
impl Spans {
    /// Returns `None`: this build refuses settings with a collector.
    pub fn start(_settings: &config::Settings) -> Option<Self> {
        None
    }

    /// Returns the trace of a request.
    pub fn trace<'f>(&self, _fields: impl Iterator<Item = &'f [u8]>) -> Option<Trace> {
        match *self {}
    }

    /// Sends the spans of a request.
    pub fn send(&self, _request: RequestSpans<'_>) {
        match *self {}
    }

    /// Waits until all spans are sent. Returns the number of lost spans.
    #[expect(clippy::unused_async, reason = "the same call in each build")]
    pub async fn finish(&self) -> usize {
        match *self {}
    }
}
