use std::sync::OnceLock;

use ::metrics::{Counter, counter};

use super::LOG_DROPPED;

/// Counts a line of the access log that was not written.
pub fn count_dropped_line() {
    dropped().increment(1);
}

/// Shows the series, also while it is zero.
pub(super) fn show_dropped() {
    dropped().increment(0);
}

fn dropped() -> &'static Counter {
    static DROPPED: OnceLock<Counter> = OnceLock::new();
    DROPPED.get_or_init(|| counter!(LOG_DROPPED))
}
