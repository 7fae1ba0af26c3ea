//! Lost lines of logs.

use std::sync::OnceLock;

use ::metrics::{Counter, counter};

use super::{LOG_DROPPED, STDERR_DROPPED};

/// Counts a line of the access log that was not written.
pub fn count_dropped_line() {
    dropped().increment(1);
}

/// Counts a line of the log on standard error that was not written.
pub fn count_dropped_stderr_line() {
    // No handle is kept: a line may be dropped before there are metrics.
    counter!(STDERR_DROPPED).increment(1);
}

/// Shows the series, also while they are zero.
pub(super) fn show_dropped() {
    dropped().increment(0);
    counter!(STDERR_DROPPED).increment(0);
}

fn dropped() -> &'static Counter {
    static DROPPED: OnceLock<Counter> = OnceLock::new();
    DROPPED.get_or_init(|| counter!(LOG_DROPPED))
}
