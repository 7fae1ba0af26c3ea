//! Standard error, written by a thread of its own.
//!
//! Standard error may be a pipe that nobody reads. No request, signal or health check may wait for
//! it.

use std::fmt::Display;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use config::Format;

use super::backlog::{self, Backlog, Outcome, PendingLines};
use super::escape::{in_json, in_lines};
use super::metrics::count_dropped_stderr_line;

/// Maximum bytes that wait. Further lines are dropped and counted.
const MAX_BYTES: usize = 1024 * 1024;

/// Time limit for the last lines at the end of the process.
const MAX_LAST_LINES: Duration = Duration::from_secs(1);

/// Lines that wait for standard error.
static WAITING: PendingLines = PendingLines::new(
    "log",
    MAX_BYTES,
    Outcome {
        lost: count_lost,
        // There is no other output to report it.
        failed: |_error| {},
        caught_up: report_lost,
    },
);

/// Number of lines lost since the last line that reported losses.
static LOST: AtomicU64 = AtomicU64::new(0);

/// Counts a lost line.
fn count_lost() {
    LOST.fetch_add(1, Ordering::Relaxed);
    count_dropped_stderr_line();
}

/// Logs the number of lines that are missing before this one.
fn report_lost() {
    let lost = LOST.swap(0, Ordering::Relaxed);
    if lost > 0 {
        tracing::warn!(
            lost,
            "lines of this log are lost: standard error was not read, or failed"
        );
    }
}

/// Writer to standard error that never waits.
///
/// Unprintable characters are escaped: a message may quote a client, an origin or the store.
pub(super) struct Stderr {
    backlog: Backlog,
    /// Format of the written lines.
    format: Format,
}

impl Stderr {
    /// Starts the thread that writes lines of this format.
    ///
    /// # Errors
    ///
    /// No thread can be started.
    pub(super) fn start(format: Format) -> io::Result<Self> {
        let backlog = Backlog::new(&WAITING, backlog::stderr()?)?;
        Ok(Self { backlog, format })
    }

    /// Writes one line.
    pub(super) fn print(&self, line: impl Display) {
        self.backlog.push(in_lines(format!("{line}\n")));
    }

    /// Waits a short time for unwritten lines.
    pub(super) fn finish() {
        let _lost = WAITING.finish_blocking(MAX_LAST_LINES);
    }
}

/// Each write is a whole line.
impl Write for &Stderr {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line).into_owned();
        self.backlog
            .push(match (self.format, text.strip_suffix('\n')) {
                (Format::Json, Some(object)) => in_json(object.to_owned()) + "\n",
                _ => in_lines(text),
            });
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
