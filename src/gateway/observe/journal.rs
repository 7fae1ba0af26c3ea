//! A log that goes to the journal of systemd.

use std::fmt;

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::FmtContext;
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::registry::LookupSpan;

/// Whether standard error is the journal: `JOURNAL_STREAM` names its device and inode.
///
/// A log that was sent elsewhere (`2>file`) keeps the variable, but not the stream.
pub(super) fn is_stderr() -> bool {
    let Some(journal) = std::env::var_os("JOURNAL_STREAM") else {
        return false;
    };
    rustix::fs::fstat(std::io::stderr())
        .is_ok_and(|stream| *journal == *format!("{}:{}", stream.st_dev, stream.st_ino))
}

/// Writes an event as the format inside does, after its priority as `sd-daemon(3)` has it: `<3>`.
///
/// The journal takes the priority off, and can show errors alone.
pub(super) struct WithPriority<F>(pub(super) F);

impl<S, N, F> FormatEvent<S, N> for WithPriority<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut to: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        write!(to, "<{}>", priority(*event.metadata().level()))?;
        self.0.format_event(context, to, event)
    }
}

/// The priority of `syslog(3)` for a level.
fn priority(level: Level) -> u8 {
    match level {
        Level::ERROR => 3,
        Level::WARN => 4,
        Level::INFO => 6,
        _ => 7,
    }
}
