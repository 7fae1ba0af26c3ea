//! Logs panics.

use std::any::Any;
use std::backtrace::{Backtrace, BacktraceStatus};

use super::throttle::Throttle;
use crate::time::clock;

/// From now on panics are written to the log: at most one a second, as each request may cause one.
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

/// The message of a panic.
pub(crate) fn message(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message")
}
