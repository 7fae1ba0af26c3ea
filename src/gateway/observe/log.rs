//! The log of the process on standard error: its level, its format, and panics.

use std::any::Any;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::fmt::Display;
use std::io;
use std::sync::Arc;

use config::{Format, Level, Log};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::{FormatFields, debug_fn};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::reload::{self, Handle};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, fmt, registry};

use super::dependencies::{OWN_PREFIX, ThrottledLibraries};
use super::stderr::Stderr;
use super::throttle::Throttle;
use crate::time::clock;

/// Log of this process. Its level can change.
///
/// When it is dropped, it waits a short time for unwritten lines.
pub struct Logging {
    level: Handle<Targets, Registry>,
    stderr: Arc<Stderr>,
}

impl Logging {
    /// Starts the log to standard error with the settings of the file.
    ///
    /// # Errors
    ///
    /// The writing thread cannot be started.
    pub fn start(log: &Log) -> io::Result<Self> {
        let stderr = Arc::new(Stderr::start(log.format)?);
        let (filter, level) = reload::Layer::new(filter_for(log.level));
        let to_stderr = fmt::layer()
            .with_writer(Arc::clone(&stderr))
            .with_target(false)
            .with_ansi(false)
            // The layer would report a failed write on standard error, which has failed.
            .log_internal_errors(false);
        let to_journal = is_journal();
        let written = match (log.format, to_journal) {
            (Format::Text, false) => to_stderr
                .fmt_fields(fields_as_text())
                .map_event_format(|inner| ThrottledLibraries::new(inner, log.format, to_journal))
                .boxed(),
            (Format::Text, true) => to_stderr
                .fmt_fields(fields_as_text())
                .without_time()
                .map_event_format(|inner| ThrottledLibraries::new(inner, log.format, to_journal))
                .boxed(),
            (Format::Json, _) => to_stderr
                .json()
                .flatten_event(true)
                .map_event_format(|inner| ThrottledLibraries::new(inner, log.format, to_journal))
                .boxed(),
        };
        // Fails only if a log was started before in this process. Then that log stays.
        let _started = registry().with(written.with_filter(filter)).try_init();
        log_panics();
        Ok(Self { level, stderr })
    }

    /// Prints a line after those of the log.
    pub fn complain(&self, what: impl Display) {
        self.stderr.print(what);
    }

    /// Stops logging the events of a module.
    pub fn leave_out(&self, module: &'static str) {
        let without = |filter: Targets| filter.with_target(module, LevelFilter::OFF);
        // Fails only if the log has ended, and then nothing reads it.
        let _ended = (self.level).modify(|filter| *filter = without(std::mem::take(filter)));
    }

    /// Sets the level: only messages at least as severe are logged.
    pub fn set_level(&self, level: Level) {
        // Fails only if the log has ended, and then nothing reads it.
        let _ended = self.level.reload(filter_for(level));
    }
}

impl Drop for Logging {
    fn drop(&mut self) {
        Stderr::finish();
    }
}

/// Formats the fields of an event.
///
/// The text of `key` and `server_name` is already escaped for use between quotes. Those fields are
/// written unchanged, because the usual format would escape them twice.
fn fields_as_text() -> impl for<'writer> FormatFields<'writer> + 'static {
    debug_fn(|to, field, value| match field.name() {
        "message" => write!(to, "{value:?}"),
        name @ ("key" | "server_name") => write!(to, "{name}=\"{value:?}\""),
        name => write!(to, "{name}={value:?}"),
    })
    .delimited(" ")
}

/// Builds the filter of a level.
///
/// Libraries log errors and warnings only. Reports of clients that send invalid HTTP are left out,
/// because they would fill a disk.
fn filter_for(level: Level) -> Targets {
    let level = match level {
        Level::Error => LevelFilter::ERROR,
        Level::Warn => LevelFilter::WARN,
        Level::Info => LevelFilter::INFO,
        Level::Debug => LevelFilter::DEBUG,
        Level::Trace => LevelFilter::TRACE,
    };
    Targets::new()
        .with_target(OWN_PREFIX, level)
        .with_target("actix_http", LevelFilter::OFF)
        .with_default(level.min(LevelFilter::WARN))
}

/// Writes panics to the log: at most one a second, as each request may cause one.
pub(crate) fn log_panics() {
    let throttle = Throttle::default();
    std::panic::set_hook(Box::new(move |panic| {
        let Some(hidden) = throttle.show(clock::now()) else {
            return;
        };
        let location = panic.location().map(ToString::to_string);
        let backtrace = Backtrace::capture();
        let backtrace = (backtrace.status() == BacktraceStatus::Captured).then_some(backtrace);
        tracing::error!(
            panic = message(panic.payload()),
            location = location.as_deref(),
            backtrace = backtrace.map(tracing::field::display),
            hidden,
            "a task panicked: this is a bug in drip; please report it"
        );
    }));
}

/// Returns the message of a panic.
pub(crate) fn message(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message")
}

/// Returns whether standard error is the journal: `JOURNAL_STREAM` has its device and inode.
///
/// A log that was redirected (`2>file`) keeps the variable, but not the stream.
fn is_journal() -> bool {
    let Some(journal) = std::env::var_os("JOURNAL_STREAM") else {
        return false;
    };
    rustix::fs::fstat(std::io::stderr())
        .is_ok_and(|stream| *journal == *format!("{}:{}", stream.st_dev, stream.st_ino))
}
