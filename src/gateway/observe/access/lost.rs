//! Lines of the access log that were not written, and the cause.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::observe::metrics::count_dropped_line;
use crate::observe::throttle::Throttle;
use crate::time::clock;

/// Number of lines that were not written, in all access logs of the process.
static LOST: AtomicU64 = AtomicU64::new(0);
/// Whether the last write failed.
static IS_FAILING: AtomicBool = AtomicBool::new(false);
/// Error of the last failed write.
static ERROR: Mutex<Option<String>> = Mutex::new(None);

/// Lines that were not written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LostLines {
    /// Number of lines since the start.
    pub count: u64,
    /// Error, if writing fails now; `None`: writing is too slow.
    pub error: Option<String>,
}

/// Returns the lines that were not written so far.
pub fn lost_lines() -> LostLines {
    let error = || {
        let error = ERROR.lock().unwrap_or_else(PoisonError::into_inner);
        error.clone()
    };
    LostLines {
        count: LOST.load(Ordering::Relaxed),
        error: IS_FAILING.load(Ordering::Relaxed).then(error).flatten(),
    }
}

/// Counts a lost line.
pub(super) fn count_line() {
    LOST.fetch_add(1, Ordering::Relaxed);
    count_dropped_line();
}

/// Records a failed write, and logs it at most once a second.
pub(super) fn note_failure(error: &io::Error) {
    static FAILED: Throttle = Throttle::new();
    *ERROR.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
    IS_FAILING.store(true, Ordering::Relaxed);
    if let Some(hidden) = FAILED.show(clock::now()) {
        tracing::error!(%error, hidden, "the access log cannot be written; lines are lost");
    }
}

/// Records that no line waits any more.
pub(super) fn note_written() {
    IS_FAILING.store(false, Ordering::Relaxed);
}
