use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt, registry};

use crate::config::{Format, Level, Log};

/// Sends the log to standard error, as the file asks. Of libraries only what is wrong is of interest.
pub(super) fn start(log: &Log) {
    let level = match log.level {
        Level::Error => LevelFilter::ERROR,
        Level::Warn => LevelFilter::WARN,
        Level::Info => LevelFilter::INFO,
        Level::Debug => LevelFilter::DEBUG,
        Level::Trace => LevelFilter::TRACE,
    };
    let wanted = Targets::new()
        .with_target("drip", level)
        .with_default(level.min(LevelFilter::WARN));
    let to_stderr = fmt::layer()
        .with_writer(std::io::stderr)
        .with_target(false)
        .with_ansi(false);
    let written = match log.format {
        Format::Text => to_stderr.boxed(),
        Format::Json => to_stderr.json().flatten_event(true).boxed(),
    };
    // Fails only where a log was started before in this process; then that one goes on.
    let _started = registry().with(written.with_filter(wanted)).try_init();
}
