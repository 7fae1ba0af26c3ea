//! What operators see: metrics, the access log, and the log.

pub mod access;
mod backlog;
pub mod certificates;
pub mod connections;
mod dependencies;
pub mod escape;
pub mod events;
pub mod forwarders;
mod journal;
pub mod key_names;
pub mod log;
pub mod metrics;
pub mod networks;
pub(crate) mod panics;
pub mod spans;
mod stderr;
mod stream;
pub mod summary;
pub mod throttle;
