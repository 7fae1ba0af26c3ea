//! Log lines of libraries: at most one line a second for each library.
//!
//! A client can make a library warn as often as it sends something, for example `h2` about frames.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use config::Format;
use limit::Moment;
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::FmtContext;
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::registry::LookupSpan;

use super::throttle::Throttle;
use crate::time::clock;

/// Common prefix of the names of this program's crates, which are the targets of its events.
///
/// The code imports them under shorter names, such as `config` for `drip-config`.
pub(super) const OWN_PREFIX: &str = "drip";

/// Writes events in the inner format; at most one a second for each library.
///
/// Events of this program itself are not limited. A line has the number of omitted events before
/// it, as `hidden`.
pub(super) struct ThrottledLibraries<F> {
    inner: F,
    format: Format,
    /// Whether lines begin with their priority, as in `sd-daemon(3)`: `<3>`.
    ///
    /// The journal removes the priority, and can show errors alone.
    has_priority: bool,
    libraries: Libraries,
}

impl<F> ThrottledLibraries<F> {
    pub(super) fn new(inner: F, format: Format, has_priority: bool) -> Self {
        Self {
            inner,
            format,
            has_priority,
            libraries: Libraries::default(),
        }
    }

    /// Writes the priority of an event, if lines begin with it.
    fn write_priority(&self, to: &mut Writer<'_>, event: &Event<'_>) -> fmt::Result {
        if self.has_priority {
            write!(to, "<{}>", priority(*event.metadata().level()))?;
        }
        Ok(())
    }
}

impl<S, N, F> FormatEvent<S, N> for ThrottledLibraries<F>
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
        let library = library_of(event.metadata().target());
        if library.starts_with(OWN_PREFIX) {
            self.write_priority(&mut to, event)?;
            return self.inner.format_event(context, to, event);
        }
        let Some(hidden) = self.libraries.show(library, clock::now()) else {
            return Ok(());
        };
        let mut line = String::new();
        self.write_priority(&mut Writer::new(&mut line), event)?;
        self.inner
            .format_event(context, Writer::new(&mut line), event)?;
        match (self.format, line.trim_end().strip_suffix('}')) {
            (Format::Json, Some(object)) => {
                writeln!(
                    to,
                    "{object},\"library\":\"{library}\",\"hidden\":{hidden}}}"
                )
            }
            _ => writeln!(to, "{} library={library} hidden={hidden}", line.trim_end()),
        }
    }
}

/// Returns the name of the crate of an event. `target`: path of the module that logs it.
fn library_of(target: &str) -> &str {
    target
        .split_once("::")
        .map_or(target, |(library, _)| library)
}

/// Libraries that have logged something: at most as many as are part of the program.
#[derive(Default)]
struct Libraries(Mutex<HashMap<String, Throttle>>);

impl Libraries {
    /// Returns whether to show an event now: if so, the number of hidden events since the last one.
    fn show(&self, library: &str, now: Moment) -> Option<u64> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(throttle) = known.get(library) {
            return throttle.show(now);
        }
        known.entry(library.to_owned()).or_default().show(now)
    }
}

/// Returns the priority of a level in `syslog(3)`.
fn priority(level: tracing::Level) -> u8 {
    match level {
        tracing::Level::ERROR => 3,
        tracing::Level::WARN => 4,
        tracing::Level::INFO => 6,
        _ => 7,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_library_has_at_most_a_line_a_second() {
        let libraries = Libraries::default();
        let at = |millis: u64| Moment::from_nanos(millis * 1_000_000);
        // Library of an event, its time, and the number of hidden events if it is shown.
        for (library, millis, hidden) in [
            ("h2", 1_000, Some(0)),
            ("h2", 1_100, None),
            ("rustls", 1_200, Some(0)),
            ("h2", 2_000, Some(1)),
        ] {
            assert_eq!(libraries.show(library, at(millis)), hidden);
        }
    }

    #[test]
    fn a_library_is_the_crate_of_the_target() {
        assert_eq!(library_of("h2::proto::streams"), "h2");
        assert_eq!(library_of("rustls"), "rustls");
    }
}
