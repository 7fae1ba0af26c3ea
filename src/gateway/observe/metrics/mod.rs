//! Metrics, for Prometheus and for the status.
//!
//! Things that come and go, such as zones, gates and servers, have plain counts in structs of their
//! own (`zone`, `gate`, `server`, ...). [`crate::status`] writes their series. The crate `metrics`
//! counts events of the process: the names and help texts of those metrics are here.

mod atomic_histogram;
mod collapse;
mod count;
mod durations;
mod gate;
mod label;
mod process;
mod registry;
mod room;
mod route;
mod server;
#[cfg(feature = "otlp")]
mod spans;
mod zone;

use ::metrics::{Unit, describe_counter, describe_gauge, gauge};

pub use atomic_histogram::{AtomicHistogram, Counts};
pub use collapse::{CollapseMetrics, SharedOutcome, SharedWait};
pub use count::{Count, Level, Sharded};
pub use durations::{DurationHistogram, Durations};
pub use gate::{BackoffReason, GateMetrics, GateRejected};
pub(crate) use label::labels;
pub use label::{CountBy, Label};
#[cfg(test)]
pub(crate) use process::count_alone;
pub use process::{
    ActorKind, DESCRIPTOR_WAITS, DescriptorWait, HandshakeFailure, LOCAL_PORT_WAITS, LocalPortWait,
    count_dropped_line, count_dropped_stderr_line, count_handshake, count_handshake_failure,
    count_restart, handshake_failures, handshakes, note_failed_reload, note_load, note_reload,
};
pub use registry::Registry;
pub use room::{RoomMetrics, RoomRequest};
pub use route::RouteMetrics;
pub use server::{CodeClass, Outcome, ServerMetrics};
#[cfg(feature = "otlp")]
pub use spans::dropped_spans;
pub use zone::{LimitStatus, PlanMetrics, Rejected, StoreResult, ZoneMetrics};

/// Upper bounds of every histogram's buckets, in seconds: from 100 µs to one minute.
///
/// Practically no request waits less than 100 µs. Between 1 and 10 s, where most queues have their
/// longest waits, the bounds are closer: a quantile is read as a point between two bounds.
pub const SECONDS: [f64; 23] = [
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 1.5,
    2.0, 2.5, 3.0, 4.0, 5.0, 7.5, 10.0, 25.0, 60.0,
];

/// Route label of requests that matched no route.
pub const NO_ROUTE: &str = "none";
/// Route label of requests of routes after the first [`MAX_NAMED_ROUTES`].
pub const OTHER_ROUTES: &str = "other";
/// Maximum number of routes with a label of their own.
///
/// Each route takes some 700 bytes of each response of `/metrics`.
pub const MAX_NAMED_ROUTES: usize = 1000;

const RELOADS: &str = "drip_config_reloads_total";
const RELOAD_SUCCESSFUL: &str = "drip_config_last_reload_successful";
const RESTART_NEEDED: &str = "drip_config_restart_needed";
const RELOAD_TIME: &str = "drip_config_last_reload_success_timestamp_seconds";
const ACTOR_RESTARTS: &str = "drip_actor_restarts_total";
const LOG_DROPPED: &str = "drip_log_dropped_total";
const STDERR_DROPPED: &str = "drip_stderr_dropped_total";
#[cfg(feature = "otlp")]
const SPANS_DROPPED: &str = "drip_spans_dropped_total";
const BUILD: &str = "drip_build_info";

/// Registers the help texts, and the metrics that exist from the start.
pub fn describe() {
    describe_counter!(RELOADS, "Reloads of the changed file, by result.");
    describe_gauge!(
        RELOAD_SUCCESSFUL,
        "1 while the current file is in force, 0 while it has an error."
    );
    describe_gauge!(
        RESTART_NEEDED,
        "Settings of the file that take effect only after a restart."
    );
    describe_gauge!(
        RELOAD_TIME,
        Unit::Seconds,
        "When the settings in force were read, in Unix time."
    );
    process::show_reloads();
    describe_counter!(
        ACTOR_RESTARTS,
        "Actors that panicked and started again, by kind."
    );
    process::show_restarts();
    describe_counter!(
        LOG_DROPPED,
        "Lines of the access log that were not written: the disk was too slow, or failed."
    );
    describe_counter!(
        STDERR_DROPPED,
        "Lines of the error log that were not written: standard error was not read, or failed."
    );
    process::show_dropped();
    describe_gauge!(BUILD, "1, with the version of this gateway.");
    gauge!(BUILD, "version" => env!("CARGO_PKG_VERSION")).set(1.0);
}
