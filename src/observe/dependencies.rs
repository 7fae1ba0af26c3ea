//! What libraries log: one line a second for each of them.
//!
//! A client can make a library warn as often as it sends something, for example `h2` of frames.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::FmtContext;
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::registry::LookupSpan;

use super::throttle::Throttle;
use crate::config::Format;
use crate::limit::Moment;
use crate::time::clock;

/// The name of this program as the target of its events.
pub(super) const OWN: &str = "drip";

/// Writes events as the format inside does; of each library at most one a second.
///
/// A line has the number of those before it that were left out, as `hidden`.
pub(super) struct ThrottledLibraries<F> {
    inner: F,
    format: Format,
    libraries: Libraries,
}

impl<F> ThrottledLibraries<F> {
    pub(super) fn new(inner: F, format: Format) -> Self {
        Self {
            inner,
            format,
            libraries: Libraries::default(),
        }
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
        let library = library(event.metadata().target());
        if library == OWN {
            return self.inner.format_event(context, to, event);
        }
        let Some(hidden) = self.libraries.show(library, clock::now()) else {
            return Ok(());
        };
        let mut line = String::new();
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

/// The name of the crate that an event comes from.
fn library(target: &str) -> &str {
    target
        .split_once("::")
        .map_or(target, |(library, _)| library)
}

/// The libraries that have logged something: as many as are part of the program.
#[derive(Default)]
struct Libraries(Mutex<HashMap<String, Throttle>>);

impl Libraries {
    /// Whether to show an event of `library` now. If so, returns how many were hidden since the
    /// last.
    fn show(&self, library: &str, now: Moment) -> Option<u64> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(throttle) = known.get(library) {
            return throttle.show(now);
        }
        known.entry(library.to_owned()).or_default().show(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_library_has_a_line_a_second() {
        let libraries = Libraries::default();
        let at = |millis: u64| Moment::from_nanos(millis * 1_000_000);
        let shown = [
            ("h2", 1_000),
            ("h2", 1_100),
            ("rustls", 1_200),
            ("h2", 2_000),
        ]
        .map(|(library, millis)| libraries.show(library, at(millis)));
        assert_eq!(shown, [Some(0), None, Some(0), Some(1)]);
    }

    #[test]
    fn a_library_is_the_crate_of_the_target() {
        assert_eq!(library("h2::proto::streams"), "h2");
        assert_eq!(library("rustls"), "rustls");
    }
}
