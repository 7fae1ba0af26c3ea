//! Metric of lost spans.

use ::metrics::{Counter, counter, describe_counter};

use super::SPANS_DROPPED;

/// Counts spans that the collector did not get. The series exists once this is called.
pub fn dropped_spans() -> Counter {
    describe_counter!(
        SPANS_DROPPED,
        "Spans that the collector did not get: it was too slow, or failed."
    );
    let dropped = counter!(SPANS_DROPPED);
    dropped.increment(0);
    dropped
}
