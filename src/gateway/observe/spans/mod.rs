//! Spans of sampled requests, for OpenTelemetry.
//!
//! A build without the feature `otlp` has none: its [`Spans`] cannot exist.

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

/// From the begin to the end of a span.
pub type Time = (Moment, Moment);

/// A sampled request that has ended, as its spans tell of it.
pub struct RequestSpans<'r> {
    /// The trace that it belongs to.
    pub trace: &'r Trace,
    /// The method, as its client wrote it.
    pub method: &'r str,
    /// The name of the route that took it.
    pub route: Option<String>,
    /// The status of its response; 499 if the client left before there was one.
    pub status: u16,
    /// From its head to its turn in its zones and at the gate, or to its rejection.
    pub queued: Time,
    /// The zone that decided, and what.
    pub limited: Option<(&'r str, LimitStatus)>,
    /// Why its limits or the gate rejected it.
    pub rejected: Option<&'static str>,
    /// Its time at the origin; `None` if no server was asked.
    pub origin: Option<OriginSpan<'r>>,
}

/// A request's time at its origin.
pub struct OriginSpan<'r> {
    /// From its turn to the head of the response, or to giving up.
    pub time: Time,
    /// The name of the origin.
    pub name: &'r str,
    /// The server that was asked last.
    pub server: String,
    /// Whether the response is the origin's.
    pub is_answered: bool,
}

/// Sends spans to a collector: not in this build.
#[derive(Debug)]
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

    /// Waits until all spans are sent, and returns how many are lost.
    #[expect(clippy::unused_async, reason = "the same call in each build")]
    pub async fn finish(&self) -> usize {
        match *self {}
    }
}
