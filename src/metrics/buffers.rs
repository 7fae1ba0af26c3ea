use ::metrics::gauge;

use super::BUFFERS;

/// Tells Prometheus how many buffers hold bytes on their way, and how many are kept empty for the next ones.
pub fn show_buffers(in_use: usize, pooled: usize) {
    for (state, count) in [("in_use", in_use), ("pooled", pooled)] {
        // There are far fewer than a float can count.
        #[allow(clippy::cast_precision_loss)]
        gauge!(BUFFERS, "state" => state).set(count as f64);
    }
}
