//! The names of metrics, their help texts, and the handles that count them.
//!
//! Those that are collected when Prometheus asks are in [`crate::status`], which writes them.
//!
//! A handle is made once for each zone, plan, route, class and setting. Counting through it costs
//! one atomic addition.

mod actors;
mod atomic_histogram;
mod buffers;
mod class;
mod code_class;
mod collapse;
mod config;
mod gate;
mod handshakes;
mod histograms;
mod limit_status;
mod log;
mod plan;
mod registry;
mod room;
mod route;
mod server;
mod sharded;
mod shortages;
#[cfg(feature = "otlp")]
mod spans;
mod store;
mod tally;
mod zone;

use ::metrics::{Unit, describe_counter, describe_gauge, describe_histogram, gauge};

#[cfg(test)]
pub(crate) use actors::count_alone;
pub use actors::{ActorKind, count_restart};
pub use atomic_histogram::{AtomicHistogram, Counts};
pub use buffers::show_buffers;
pub use class::ClassMetrics;
pub use code_class::CodeClass;
pub use collapse::{CollapseMetrics, SharedOutcome, SharedWait};
pub use config::ConfigMetrics;
pub use gate::{BackoffReason, GateMetrics, GateRejected};
pub use handshakes::{
    HandshakeFailure, count_handshake, count_handshake_failure, handshake_failures, handshakes,
    show_handshake_failures,
};
pub use histograms::{DurationHistogram, Histograms};
pub use limit_status::LimitStatus;
pub use log::{count_dropped_line, count_dropped_stderr_line};
pub use plan::PlanMetrics;
pub use registry::Registry;
pub use room::{RoomMetrics, RoomRequest};
pub use route::RouteMetrics;
pub use server::{Outcome, ServerMetrics};
pub use sharded::{Count, Sharded};
pub use shortages::{ShortageWait, count_shortage, shortages};
#[cfg(feature = "otlp")]
pub use spans::dropped_spans;
pub use store::{ClaimMetrics, StoreMetrics, StoreResult};
pub use tally::Tally;
pub use zone::{Rejected, ZoneMetrics};

/// The edges of every histogram, in seconds: from 100 µs to one minute.
///
/// Practically no request waits less than 100 µs. Between 1 and 10 s, where most queues have their
/// longest waits, they are closer: a quantile is read as a point between two edges.
pub const SECONDS: [f64; 23] = [
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 1.5,
    2.0, 2.5, 3.0, 4.0, 5.0, 7.5, 10.0, 25.0, 60.0,
];

const REQUESTS: &str = "drip_requests_total";
const REFUSED: &str = "drip_refused_total";
/// Client connections that are open.
pub(super) const CONNECTIONS: &str = "drip_connections";
/// The most client connections that may be open.
pub(super) const MAX_CONNECTIONS: &str = "drip_max_connections";
const REQUEST_SECONDS: &str = "drip_request_duration_seconds";
const ZONE_REQUESTS: &str = "drip_zone_requests_total";
const ZONE_REJECTIONS: &str = "drip_zone_rejections_total";
const ZONE_DEPTH: &str = "drip_zone_queue_depth";
const ZONE_IN_FLIGHT: &str = "drip_zone_in_flight";
/// The route label of requests that no route took.
pub const NO_ROUTE: &str = "none";
/// The route label of requests of routes behind the first [`MAX_NAMED_ROUTES`].
pub const OTHER_ROUTES: &str = "other";
/// How many routes have a label of their own: each takes some 700 bytes of each scrape.
pub const MAX_NAMED_ROUTES: usize = 1000;

const PLAN_REQUESTS: &str = "drip_plan_requests_total";
const ZONE_WAIT: &str = "drip_zone_queue_wait_seconds";
const ZONE_LEFT: &str = "drip_zone_cancelled_after_seconds";
const ZONE_LATENESS: &str = "drip_zone_drain_lateness_seconds";
const ZONE_RATE: &str = "drip_zone_rate";
const ZONE_KEYS: &str = "drip_zone_keys";
const ZONE_OVERRIDE: &str = "drip_zone_override";
const ZONE_OVERRIDDEN_KEYS: &str = "drip_zone_overridden_keys";
const ZONE_EVICTIONS: &str = "drip_zone_evictions_total";
const ZONE_MAX_KEYS: &str = "drip_zone_max_keys";
const ZONE_NEW_KEYS: &str = "drip_zone_new_keys_total";
const ZONE_FLOODED: &str = "drip_zone_flooded_total";
const STORE_OPERATIONS: &str = "drip_store_operations_total";
const STORE_SECONDS: &str = "drip_store_duration_seconds";
const STORE_UP: &str = "drip_store_up";
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
const BUFFERS: &str = "drip_buffers";
const DESCRIPTOR_WAITS: &str = "drip_descriptor_waits_total";
const LOCAL_PORT_WAITS: &str = "drip_local_port_waits_total";
const HANDSHAKE_FAILURES: &str = "drip_tls_handshake_failures_total";

/// Registers the help texts, and the metrics that exist from the start.
pub fn describe() {
    describe_counter!(REQUESTS, "Requests answered, by route and status code.");
    describe_counter!(
        REFUSED,
        "Requests of clients that allow and deny of their route do not let in, by route."
    );
    describe_histogram!(
        REQUEST_SECONDS,
        Unit::Seconds,
        "From the request head to the last byte of the response."
    );
    describe_gauge!(CONNECTIONS, "Client connections that are open.");
    describe_gauge!(
        MAX_CONNECTIONS,
        "Most client connections at once: max_connections, or as many as the file descriptors allow."
    );
    describe_zones();
    gate::describe();
    collapse::describe();
    room::describe();
    describe_counter!(
        STORE_OPERATIONS,
        "Operations in the store for zones that gateways share, by result."
    );
    describe_histogram!(
        STORE_SECONDS,
        Unit::Seconds,
        "From sending a batch to the store to its answer, or to giving up."
    );
    describe_gauge!(
        STORE_UP,
        "1 while the store is in use, 0 while it is out: zones follow on_store_failure, origins go on with their part or start nothing."
    );
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
    describe_gauge!(
        BUFFERS,
        "I/O buffers of 17 KB: in use, and pooled for reuse."
    );
    describe_counter!(
        ACTOR_RESTARTS,
        "Actors that panicked and started again, by kind."
    );
    actors::show_restarts();
    describe_counter!(
        LOG_DROPPED,
        "Lines of the access log that were not written: the disk was too slow, or failed."
    );
    describe_counter!(
        STDERR_DROPPED,
        "Lines of the error log that were not written: standard error was not read, or failed."
    );
    log::show_dropped();
    describe_counter!(
        DESCRIPTOR_WAITS,
        "Times that no file descriptor was free: for a connection to an origin, for a client, or in vain."
    );
    describe_counter!(
        LOCAL_PORT_WAITS,
        "Times that no local port was free for a connection to an origin, or none for all of connect_timeout: in vain."
    );
    shortages::show();
    describe_counter!(
        HANDSHAKE_FAILURES,
        "TLS handshakes with clients that failed, by reason."
    );
    describe_gauge!(BUILD, "1, with the version of this gateway.");
    gauge!(BUILD, "version" => env!("CARGO_PKG_VERSION")).set(1.0);
}

fn describe_zones() {
    describe_counter!(ZONE_REQUESTS, "Requests of the zone, by limit status.");
    describe_counter!(
        PLAN_REQUESTS,
        "Requests of the keys of a plan, by limit status."
    );
    describe_counter!(
        ZONE_REJECTIONS,
        "Requests that the zone rejected, by reason."
    );
    describe_gauge!(
        ZONE_DEPTH,
        "Requests waiting in the zone, all keys together."
    );
    describe_gauge!(
        ZONE_IN_FLIGHT,
        "Running requests of the zone that a limit with in_flight bounds."
    );
    describe_histogram!(
        ZONE_WAIT,
        Unit::Seconds,
        "How long requests waited for their turn."
    );
    describe_histogram!(
        ZONE_LEFT,
        Unit::Seconds,
        "How long requests had waited when their clients left."
    );
    describe_histogram!(
        ZONE_LATENESS,
        Unit::Seconds,
        "How late requests left, against their due time."
    );
    describe_gauge!(
        ZONE_RATE,
        "The rate in force, in requests a second for each key; NaN without a rate."
    );
    describe_gauge!(
        ZONE_KEYS,
        "Remembered keys; active ones have an actor, parked ones only their bucket."
    );
    describe_gauge!(
        ZONE_OVERRIDE,
        "1 while the zone is not as in the file, by kind: rate, pause, dry_run."
    );
    describe_gauge!(
        ZONE_OVERRIDDEN_KEYS,
        "Keys of the zone that are not as in the file."
    );
    describe_counter!(
        ZONE_EVICTIONS,
        "Forgotten keys: drained and idle, or the least recently used of a full zone."
    );
    describe_gauge!(ZONE_MAX_KEYS, "Most keys that the zone remembers.");
    describe_counter!(
        ZONE_NEW_KEYS,
        "Keys that the zone did not know before, or no longer."
    );
    describe_counter!(
        ZONE_FLOODED,
        "Requests of unknown keys that shared one bucket, because there were more than new_keys."
    );
}
