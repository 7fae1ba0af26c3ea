//! Signals for operators: metrics, spans, the access log, and the log.

pub mod access;
mod backlog;
pub mod certificates;
pub mod connections;
mod dependencies;
pub mod escape;
pub mod events;
pub mod forwarders;
pub mod key_names;
pub mod log;
pub mod metrics;
pub mod networks;
pub mod spans;
mod stderr;
pub mod summary;
pub mod throttle;
