//! Metric of lost spans. A span is a part of a request's trace, sent to a collector
//! (OpenTelemetry).

use ::metrics::{Counter, counter, describe_counter};

use super::SPANS_DROPPED;

/// Returns the counter of spans that the collector did not get. Creates its series.
pub fn dropped_spans() -> Counter {
    describe_counter!(
        SPANS_DROPPED,
        "Spans that the collector did not get: it was too slow, or failed."
    );
    let dropped = counter!(SPANS_DROPPED);
    dropped.increment(0);
    dropped
}
