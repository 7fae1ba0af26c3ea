//! Converts counts to the numbers that are drawn.

/// Nanoseconds as seconds.
#[must_use]
pub fn seconds(nanos: u64) -> f64 {
    number(nanos) / 1e9
}

/// A count as a float; its precision is enough for drawing.
#[must_use]
#[expect(
    clippy::cast_precision_loss,
    reason = "what is drawn need not be exact"
)]
pub fn number(count: u64) -> f64 {
    count as f64
}
