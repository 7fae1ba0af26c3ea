use ::metrics::gauge;

use super::BUFFERS;

/// Reports to Prometheus how many buffers are in use, and how many are pooled for reuse.
pub fn show_buffers(in_use: usize, pooled: usize) {
    for (state, count) in [("in_use", in_use), ("pooled", pooled)] {
        // The counts are far below the largest whole number that a float holds exactly.
        #[allow(clippy::cast_precision_loss)]
        gauge!(BUFFERS, "state" => state).set(count as f64);
    }
}
