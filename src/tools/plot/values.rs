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

/// Turns column values into points of a step line. The last value is held to the end of its column.
pub(crate) fn stairs(values: impl Iterator<Item = f64>, width: f64) -> Vec<(f64, f64)> {
    let mut points: Vec<(f64, f64)> = Vec::new();
    let mut at = 0.0;
    for value in values {
        points.push((at, value));
        at += width;
    }
    points.extend(points.last().map(|last| (at, last.1)));
    points
}
