//! Log lines of libraries: at most one line a second for each library.
//!
//! A client can make a library warn as often as it sends something, for example `h2` about frames.
//!
//! The library of the admin port does not name the remedy if it has no descriptor for a connection.
//! Its message is replaced, and shown once a minute.

use std::collections::HashMap;
use std::fmt::{self, Debug, Write as _};
use std::num::NonZeroU64;
use std::sync::{Mutex, PoisonError};

use config::Format;
use limit::Moment;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::FmtContext;
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::registry::LookupSpan;

use super::throttle::Throttle;
use crate::time::clock;

/// Common prefix of the names of this program's crates, which are the targets of its events.
pub(super) const OWN: &str = "drip";

/// Library that accepts the connections of the admin port.
///
/// Also the beginning of its messages about a failure and, if there is no descriptor for a
/// connection, their end.
const ADMIN_SERVER: &str = "actix_server";
/// Beginning of the messages about a failure.
const NOT_ACCEPTED: &str = "Error accepting connection: ";
/// Ends of the messages about missing descriptors: ENFILE and EMFILE.
const NO_DESCRIPTOR: [&str; 2] = ["(os error 23)", "(os error 24)"];

/// Text that replaces such a message.
const SHORTAGE: &str = "the admin port cannot accept connections: there is no file descriptor for them; raise the limit of the process (LimitNOFILE= in systemd, ulimit -n), or lower max_connections";

/// Interval of such messages, in seconds.
const SHORTAGE_PERIOD: NonZeroU64 = NonZeroU64::new(60).expect("a period");

/// Writes events in the inner format; at most one a second for each library.
///
/// A line has the number of omitted events before it, as `hidden`.
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
        let level = self.has_priority.then(|| *event.metadata().level());
        let begin = level.map_or(String::new(), |level| format!("<{}>", priority(level)));
        if library.starts_with(OWN) {
            to.write_str(&begin)?;
            return self.inner.format_event(context, to, event);
        }
        let shortage = shortage(library, event);
        let Some(hidden) = self
            .libraries
            .show(library, shortage.is_some(), clock::now())
        else {
            return Ok(());
        };
        let mut line = begin;
        self.inner
            .format_event(context, Writer::new(&mut line), event)?;
        if let Some(message) = shortage {
            // Neither text has a character that JSON escapes.
            line = line.replacen(&message, SHORTAGE, 1);
        }
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

/// Name of the crate of an event.
fn library(target: &str) -> &str {
    target
        .split_once("::")
        .map_or(target, |(library, _)| library)
}

/// Message of an event about an admin connection without a descriptor.
fn shortage(library: &str, event: &Event<'_>) -> Option<String> {
    let mut message = Message::default();
    if library == ADMIN_SERVER {
        event.record(&mut message);
    }
    let Message(message) = message;
    let lacks_one = message.starts_with(NOT_ACCEPTED)
        && NO_DESCRIPTOR.iter().any(|error| message.ends_with(error));
    lacks_one.then_some(message)
}

/// Message of an event.
#[derive(Default)]
struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            // Writing to a string does not fail.
            let _ = write!(self.0, "{value:?}");
        }
    }
}

/// Libraries that have logged something: at most as many as are part of the program.
struct Libraries {
    each: Mutex<HashMap<String, Throttle>>,
    shortage: Throttle,
}

impl Default for Libraries {
    fn default() -> Self {
        Self {
            each: Mutex::default(),
            shortage: Throttle::every(SHORTAGE_PERIOD),
        }
    }
}

impl Libraries {
    /// Returns whether to show an event now: if so, the number of hidden events since the last one.
    fn show(&self, library: &str, is_shortage: bool, now: Moment) -> Option<u64> {
        if is_shortage {
            return self.shortage.show(now);
        }
        let mut known = self.each.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(throttle) = known.get(library) {
            return throttle.show(now);
        }
        known.entry(library.to_owned()).or_default().show(now)
    }
}

/// Priority of a level in `syslog(3)`.
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
    use std::io;
    use std::sync::Arc;

    use tracing_subscriber::fmt::layer as fmt_layer;
    use tracing_subscriber::layer::SubscriberExt;
    use tracing_subscriber::{Layer, registry};

    use super::*;

    #[test]
    fn each_library_has_a_line_a_second() {
        let libraries = Libraries::default();
        let at = |millis: u64| Moment::from_nanos(millis * 1_000_000);
        let asked = [
            ("h2", 1_000),
            ("h2", 1_100),
            ("rustls", 1_200),
            ("h2", 2_000),
        ];
        let shown = asked.map(|(library, millis)| libraries.show(library, false, at(millis)));
        assert_eq!(shown, [Some(0), None, Some(0), Some(1)]);
    }

    #[test]
    fn a_shortage_of_descriptors_has_a_line_a_minute_and_hides_nothing_else() {
        let libraries = Libraries::default();
        let at = |seconds: u64| Moment::from_nanos(seconds * 1_000_000_000);
        let show = |is, seconds| libraries.show("actix_server", is, at(seconds));
        let asked = [
            (true, 60),
            (true, 61),
            (false, 61),
            (true, 119),
            (true, 120),
        ];
        let shown = asked.map(|(is_shortage, seconds)| show(is_shortage, seconds));
        assert_eq!(shown, [Some(0), None, Some(0), None, Some(2)]);
    }

    /// Returns the line that a format writes of an error of this target.
    fn line(format: Format, show: impl FnOnce()) -> String {
        let written = Arc::<Mutex<Vec<u8>>>::default();
        let to = Arc::clone(&written);
        let lines = fmt_layer()
            .with_ansi(false)
            .with_writer(move || Lines(Arc::clone(&to)));
        let layer = match format {
            Format::Json => lines
                .json()
                .flatten_event(true)
                .map_event_format(|inner| ThrottledLibraries::new(inner, format, false))
                .boxed(),
            Format::Text => lines
                .map_event_format(|inner| ThrottledLibraries::new(inner, format, false))
                .boxed(),
        };
        tracing::subscriber::with_default(registry().with(layer), show);
        let written = written.lock().expect("no panic");
        String::from_utf8(written.clone()).expect("text")
    }

    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("no panic").write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_shortage_of_descriptors_at_the_admin_port_has_the_remedy() {
        let failed = |errno| {
            move || {
                let error = io::Error::from_raw_os_error(errno);
                tracing::error!(target: "actix_server::accept", "Error accepting connection: {}", error);
            }
        };
        for format in [Format::Text, Format::Json] {
            for errno in [23, 24] {
                let told = line(format, failed(errno));
                let names_it = told.contains(SHORTAGE) && told.contains("LimitNOFILE=");
                assert!(names_it, "{told}");
                let is_an_error = told.contains("ERROR") && !told.contains("os error");
                assert!(is_an_error, "{told}");
                assert_eq!(told.lines().count(), 1, "{told}");
                if matches!(format, Format::Json) {
                    let object: serde_json::Value = serde_json::from_str(&told).expect("JSON");
                    assert_eq!(object["message"], SHORTAGE);
                }
            }
            let other = line(format, failed(12));
            assert!(
                other.contains("Error accepting connection: ") && !other.contains(SHORTAGE),
                "{other}"
            );
        }
    }

    #[test]
    fn a_library_is_the_crate_of_the_target() {
        assert_eq!(library("h2::proto::streams"), "h2");
        assert_eq!(library("rustls"), "rustls");
    }
}
