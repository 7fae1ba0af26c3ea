//! The names of all metrics, what they mean, and the handles through which they are counted.
//!
//! Handles are made once, for each zone, route and setting; counting through one costs an atomic addition.

use std::sync::OnceLock;
use std::time::Duration;

use ::metrics::{
    Counter, Gauge, Histogram, Label, Unit, counter, describe_counter, describe_gauge,
    describe_histogram, gauge, histogram,
};

use crate::clock;
use crate::limit::{Rate, Reason};

/// The edges of every histogram, in seconds: from 100 µs, below which nobody waits, to a minute.
pub const SECONDS: [f64; 18] = [
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
    5.0, 10.0, 25.0, 60.0,
];

const REQUESTS: &str = "drip_requests_total";
const REQUEST_SECONDS: &str = "drip_request_duration_seconds";
const ZONE_REQUESTS: &str = "drip_zone_requests_total";
const ZONE_REJECTIONS: &str = "drip_zone_rejections_total";
const ZONE_DEPTH: &str = "drip_zone_queue_depth";
const ZONE_WAIT: &str = "drip_zone_queue_wait_seconds";
const ZONE_LATENESS: &str = "drip_zone_drain_lateness_seconds";
const ZONE_RATE: &str = "drip_zone_rate";
const ZONE_KEYS: &str = "drip_zone_keys";
const ZONE_EVICTIONS: &str = "drip_zone_evictions_total";
const ORIGIN_REQUESTS: &str = "drip_origin_requests_total";
const ORIGIN_SECONDS: &str = "drip_origin_response_seconds";
const ORIGIN_IN_FLIGHT: &str = "drip_origin_in_flight";
const ORIGIN_HEALTHY: &str = "drip_origin_healthy";
const RELOADS: &str = "drip_config_reloads_total";
const RELOAD_SUCCESSFUL: &str = "drip_config_last_reload_successful";
const RELOAD_TIME: &str = "drip_config_last_reload_success_timestamp_seconds";
const BUILD: &str = "drip_build_info";

/// Registers what the metrics mean, and those that are there from the start.
pub fn describe() {
    describe_counter!(REQUESTS, "Requests answered, by route and status code.");
    describe_histogram!(
        REQUEST_SECONDS,
        Unit::Seconds,
        "From a request's head to its answer's last byte."
    );
    describe_counter!(
        ZONE_REQUESTS,
        "Requests that joined the zone, by what became of them."
    );
    describe_counter!(
        ZONE_REJECTIONS,
        "Requests that the zone rejected, by reason."
    );
    describe_gauge!(
        ZONE_DEPTH,
        "Requests waiting in the zone, all keys together."
    );
    describe_histogram!(
        ZONE_WAIT,
        Unit::Seconds,
        "How long the requests that waited for their turn have waited."
    );
    describe_histogram!(
        ZONE_LATENESS,
        Unit::Seconds,
        "How late requests left, against the moment they were due."
    );
    describe_gauge!(
        ZONE_RATE,
        "The rate in force, in requests a second for each key."
    );
    describe_gauge!(
        ZONE_KEYS,
        "Remembered keys; active ones have an actor, parked ones only their bucket."
    );
    describe_counter!(
        ZONE_EVICTIONS,
        "Forgotten keys: drained and idle, or the least recently used of a full zone."
    );
    describe_counter!(
        ORIGIN_REQUESTS,
        "Requests sent to a server of an origin, by what came of them."
    );
    describe_histogram!(
        ORIGIN_SECONDS,
        Unit::Seconds,
        "From sending a request to the head of its answer, or to giving up."
    );
    describe_gauge!(
        ORIGIN_IN_FLIGHT,
        "Requests at the server: sent, and not answered to the last byte."
    );
    describe_gauge!(
        ORIGIN_HEALTHY,
        "1 while the server is asked, 0 while it is out after failures."
    );
    describe_counter!(RELOADS, "Times that the changed file was read, by result.");
    describe_gauge!(
        RELOAD_SUCCESSFUL,
        "1 where the file as it stands is in force, 0 where it has an error."
    );
    describe_gauge!(
        RELOAD_TIME,
        Unit::Seconds,
        "When the settings in force were read, in Unix time."
    );
    describe_gauge!(BUILD, "1, with the version of this gateway.");
    gauge!(BUILD, "version" => env!("CARGO_PKG_VERSION")).set(1.0);
}

/// What became of a request at its limits, in nginx's words and two of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitStatus {
    /// It went on at once.
    Passed,
    /// It waited and had its turn.
    Delayed,
    /// It was refused.
    Rejected,
    /// It would have waited, without dry run.
    DelayedDryRun,
    /// It would have been refused, without dry run.
    RejectedDryRun,
    /// Its client left while it waited, or its turn was given back.
    Cancelled,
}

impl LimitStatus {
    const ALL: [Self; 6] = [
        Self::Passed,
        Self::Delayed,
        Self::Rejected,
        Self::DelayedDryRun,
        Self::RejectedDryRun,
        Self::Cancelled,
    ];

    /// The value of the label `status`, and of `limit_status` in the access log.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Delayed => "delayed",
            Self::Rejected => "rejected",
            Self::DelayedDryRun => "delayed_dry_run",
            Self::RejectedDryRun => "rejected_dry_run",
            Self::Cancelled => "cancelled",
        }
    }
}

/// What is counted of one zone.
#[derive(Debug)]
pub struct ZoneMetrics {
    statuses: [Counter; LimitStatus::ALL.len()],
    /// Requests waiting.
    pub depth: Gauge,
    /// How long they waited, in seconds.
    pub wait: Histogram,
    /// How late they left, in seconds.
    pub lateness: Histogram,
    /// The rate in force, in requests a second.
    pub rate: Gauge,
    /// Keys with an actor.
    pub keys_active: Gauge,
    /// Keys of which only the bucket is kept.
    pub keys_parked: Gauge,
    /// Keys forgotten because they were drained and idle.
    pub evicted_idle: Counter,
    /// Keys forgotten to make room.
    pub evicted_lru: Counter,
    rejections: [Counter; Rejected::ALL.len()],
}

/// Why a zone rejects, as it is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejected {
    /// The bucket or the queue was full.
    Burst,
    /// It would have waited longer than `max_wait`.
    MaxWait,
    /// The zone was full of keys with waiters.
    Keys,
    /// The gateway was stopping.
    Stopping,
}

impl Rejected {
    const ALL: [Self; 4] = [Self::Burst, Self::MaxWait, Self::Keys, Self::Stopping];

    /// The value of the label `reason`.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Burst => "burst",
            Self::MaxWait => "max_wait",
            Self::Keys => "keys",
            Self::Stopping => "stopping",
        }
    }
}

impl From<Reason> for Rejected {
    fn from(reason: Reason) -> Self {
        match reason {
            Reason::Burst => Self::Burst,
            Reason::MaxWait => Self::MaxWait,
        }
    }
}

impl ZoneMetrics {
    /// The metrics of the zone called `zone`; the same ones each time that it is asked for.
    #[must_use]
    pub fn of(zone: &str) -> Self {
        let name = zone.to_owned();
        let keys = |state| gauge!(ZONE_KEYS, "zone" => name.clone(), "state" => state);
        let evicted = |reason| counter!(ZONE_EVICTIONS, "zone" => name.clone(), "reason" => reason);
        Self {
            statuses: LimitStatus::ALL.map(|status| {
                counter!(ZONE_REQUESTS, "zone" => name.clone(), "status" => status.label())
            }),
            depth: gauge!(ZONE_DEPTH, "zone" => name.clone()),
            wait: histogram!(ZONE_WAIT, "zone" => name.clone()),
            lateness: histogram!(ZONE_LATENESS, "zone" => name.clone()),
            rate: gauge!(ZONE_RATE, "zone" => name.clone()),
            keys_active: keys("active"),
            keys_parked: keys("parked"),
            evicted_idle: evicted("idle"),
            evicted_lru: evicted("lru"),
            rejections: Rejected::ALL.map(
                |reason| counter!(ZONE_REJECTIONS, "zone" => name.clone(), "reason" => reason.label()),
            ),
        }
    }

    /// Counts a request by what became of it.
    pub fn count(&self, status: LimitStatus) {
        self.statuses[status as usize].increment(1);
    }

    /// Counts a rejection by its reason.
    pub fn count_rejection(&self, reason: Rejected) {
        self.rejections[reason as usize].increment(1);
    }

    /// Shows the rate now in force.
    pub fn show_rate(&self, rate: Rate) {
        self.rate.set(rate.per_second());
    }
}

/// What is counted of one route.
#[derive(Debug)]
pub struct RouteMetrics {
    route: String,
    /// By status code, each made when it is first seen.
    codes: Box<[OnceLock<Counter>]>,
    seconds: Histogram,
}

impl RouteMetrics {
    const FIRST: u16 = 100;
    const LAST: u16 = 599;

    /// The metrics of the route called `route`.
    #[must_use]
    pub fn of(route: &str) -> Self {
        let codes = (Self::FIRST..=Self::LAST)
            .map(|_| OnceLock::new())
            .collect();
        let seconds = histogram!(REQUEST_SECONDS, "route" => route.to_owned());
        Self {
            route: route.to_owned(),
            codes,
            seconds,
        }
    }

    /// Counts an answer. An origin's fancy codes above 599 are counted as 599, so that the label has few values.
    pub fn count(&self, status: u16, duration: Duration) {
        let status = status.clamp(Self::FIRST, Self::LAST);
        let counter =
            || counter!(REQUESTS, "route" => self.route.clone(), "code" => status.to_string());
        if let Some(code) = self.codes.get(usize::from(status - Self::FIRST)) {
            code.get_or_init(counter).increment(1);
        }
        self.seconds.record(duration);
    }
}

/// What came of a request at a server of an origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The head of an answer, whatever its status.
    Answered,
    /// No connection.
    Unreachable,
    /// No answer in time.
    Timeout,
    /// A connection that broke, or an answer that makes no sense.
    Broken,
}

impl Outcome {
    const ALL: [Self; 4] = [
        Self::Answered,
        Self::Unreachable,
        Self::Timeout,
        Self::Broken,
    ];

    fn label(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Unreachable => "unreachable",
            Self::Timeout => "timeout",
            Self::Broken => "broken",
        }
    }
}

/// What is counted of one server of an origin.
#[derive(Debug)]
pub struct ServerMetrics {
    outcomes: [(Counter, Histogram); Outcome::ALL.len()],
    /// Requests at the server.
    pub in_flight: Gauge,
    /// 1 while the server is asked.
    pub healthy: Gauge,
}

impl ServerMetrics {
    /// The metrics of a server; the same ones each time that it is asked for.
    #[must_use]
    pub fn of(origin: &str, server: &str) -> Self {
        let labels = [
            Label::new("origin", origin.to_owned()),
            Label::new("server", server.to_owned()),
        ];
        let outcomes = Outcome::ALL.map(|outcome| {
            let labels = [&labels[..], &[Label::new("outcome", outcome.label())]].concat();
            (
                counter!(ORIGIN_REQUESTS, labels.clone()),
                histogram!(ORIGIN_SECONDS, labels),
            )
        });
        let in_flight = gauge!(ORIGIN_IN_FLIGHT, labels.to_vec());
        Self {
            outcomes,
            in_flight,
            healthy: gauge!(ORIGIN_HEALTHY, labels.to_vec()),
        }
    }

    /// Counts a request that came to `outcome` after `took`.
    pub fn count(&self, outcome: Outcome, took: Duration) {
        let (counter, seconds) = &self.outcomes[outcome as usize];
        counter.increment(1);
        seconds.record(took);
    }
}

/// What is counted of the file.
#[derive(Debug)]
pub struct ConfigMetrics {
    succeeded: Counter,
    failed: Counter,
    successful: Gauge,
    time: Gauge,
}

impl ConfigMetrics {
    /// The metrics of this process's file.
    #[must_use]
    pub fn of_this_process() -> Self {
        Self {
            succeeded: counter!(RELOADS, "result" => "success"),
            failed: counter!(RELOADS, "result" => "failure"),
            successful: gauge!(RELOAD_SUCCESSFUL),
            time: gauge!(RELOAD_TIME),
        }
    }

    /// The file was read when the process started.
    pub fn loaded(&self) {
        self.successful.set(1.0);
        #[allow(clippy::cast_precision_loss)]
        self.time.set(clock::now().as_nanos() as f64 / 1e9);
    }

    /// The changed file was read and is in force.
    pub fn reloaded(&self) {
        self.succeeded.increment(1);
        self.loaded();
    }

    /// The changed file has an error.
    pub fn failed(&self) {
        self.failed.increment(1);
        self.successful.set(0.0);
    }
}
