//! Types of the JSON of a sample: the status of the gateway in one second.
//!
//! The parts of zones, origins and the store are in the `report` of each.

use serde::{Deserialize, Serialize};

use super::counts::Labelled;
use super::headline::sample::Headline;
use super::minute::Latency;
use super::plain::Plain;
use crate::collapse::report::sample::SharedAnswers;
use crate::observe::certificates::Certificate;
use crate::observe::connections::ConnectionCounts;
use crate::origin::report::sample::OriginSample;
use crate::store::report::sample::StoreSample;
use crate::zone::report::sample::{KeySample, ZoneSample};

/// Sample of one second.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Sample {
    /// Number of the sample, from 1.
    pub seq: u64,
    /// Unix time in seconds, by the gateway's clock.
    pub time: f64,
    /// Zones, in the order of the file.
    pub zones: Vec<ZoneSample>,
    /// Origins, in the order of the file.
    pub origins: Vec<OriginSample>,
    /// Keys of all zones with the most waiters, the longest queue first.
    pub deepest: Vec<KeySample>,
    /// Number of times that the file was put into force.
    pub reload: u64,
    /// First error of the file, if it has one.
    pub error: Option<Problem>,
    /// Whether the gateway is stopping.
    pub stopping: bool,
    /// Responses to clients in this second, by status class: each request counts once.
    pub codes: Labelled,
    /// Requests of `codes` whose client disconnected before a response began: their status is 499.
    pub left: u64,
    /// Routes with the most requests in this second, the busiest first.
    pub routes: Vec<RouteSample>,
    /// Routes in maintenance; `None`: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maintenance: Option<MaintenanceSample>,
    /// Store of shared zones and origins; `None` if nothing is shared.
    pub store: Option<StoreSample>,
    /// Shared responses. Left out if no route collapses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared_answers: Option<SharedAnswers>,
    /// Client connections.
    pub connections: ConnectionCounts,
    /// Waits for file descriptors.
    pub descriptors: DescriptorSample,
    /// Waits for local ports.
    pub local_ports: LocalPortSample,
    /// Access log.
    pub log: LogSample,
    /// Last reload that changed settings in force, for two minutes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<ChangeSample>,
    /// Plans that lost at least half of their keys in the last change, for ten minutes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lost_keys: Vec<LostKeysSample>,
    /// Names of the settings that take effect only after a restart.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub needs_restart: Vec<Plain>,
    /// Certificates that expire soon, have expired, are not valid yet or have a problem.
    ///
    /// Only for the headline.
    #[serde(skip)]
    pub certificates: Vec<Certificate>,
    /// TLS handshakes with clients. Only for the headline.
    #[serde(skip)]
    pub handshakes: HandshakeSample,
    /// The most important state now, and its cause.
    pub headline: Headline,
}

impl Sample {
    /// Finds a zone by name.
    pub fn zone(&self, name: &Plain) -> Option<&ZoneSample> {
        self.zones.iter().find(|zone| zone.name == *name)
    }

    /// Returns the first origin that is silent.
    pub fn silent(&self) -> Option<&OriginSample> {
        self.origins.iter().find(|origin| origin.is_silent())
    }

    /// Finds an origin by name.
    pub fn origin(&self, name: &Plain) -> Option<&OriginSample> {
        self.origins.iter().find(|origin| origin.name == *name)
    }
}

/// Sample of a route for one second.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RouteSample {
    /// Name of the route.
    pub name: Plain,
    /// Responses to clients, by status class.
    pub codes: Labelled,
    /// Latency from the request's head to the last byte of the response.
    pub latency: Latency,
}

/// Routes in maintenance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MaintenanceSample {
    /// One of the routes; `None`: all routes are in maintenance.
    pub route: Option<Plain>,
    /// Number of routes; 0 if all routes are in maintenance.
    pub routes: u64,
    /// End of the last maintenance, in UTC.
    pub until: Plain,
    /// Author of that maintenance.
    pub by: Plain,
}

/// Reload that changed settings in force.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ChangeSample {
    /// Seconds since the reload.
    pub ago: f64,
    /// One text for each of the first settings, such as `zones.per_client.rate 10r/s -> 20r/s`.
    pub what: Vec<Plain>,
}

/// Plan that lost at least half of its keys in a reload.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LostKeysSample {
    /// Zone of the plan.
    pub zone: Plain,
    /// Name of the plan.
    pub plan: Plain,
    /// Name of its file, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<Plain>,
    /// Number of keys that no longer have a plan.
    pub lost: u64,
    /// Number of keys before.
    pub had: u64,
    /// Seconds since the reload.
    pub ago: f64,
}

/// Waits for file descriptors in one second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DescriptorSample {
    /// Requests that began to wait for a descriptor for their connection to an origin.
    pub waited: u64,
    /// Requests that waited in vain and got 503.
    pub in_vain: u64,
    /// Failed attempts to accept a client.
    pub clients: u64,
}

/// Waits for local ports in one second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LocalPortSample {
    /// Requests that began to wait for a port for their connection to an origin.
    pub waited: u64,
    /// Requests that waited in vain and got 503.
    pub in_vain: u64,
}

/// Access log in one second.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LogSample {
    /// Lines that were not written.
    pub lost: u64,
    /// Error, if writing fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Plain>,
}

/// TLS handshakes with clients in one second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HandshakeSample {
    /// Successful handshakes.
    pub done: u64,
    /// Failed handshakes.
    pub failed: u64,
    /// Failed handshakes in which the client refused the certificate of the gateway.
    pub refused: u64,
}

/// One error in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Problem {
    /// Included file with the error; `None`: the file itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<Plain>,
    /// Line, from 1; `None` if the error has no line.
    pub line: Option<u64>,
    /// Column, from 1, in characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u64>,
    /// The error, and a correct value.
    pub message: Plain,
}

impl From<config::Problem> for Problem {
    fn from(problem: config::Problem) -> Self {
        let file = problem.file.as_ref();
        // In the configuration, line and column 0 mean that the location is unknown.
        Self {
            file: file.map(|file| Plain::new(&file.display().to_string())),
            line: (problem.line > 0).then_some(problem.line as u64),
            column: (problem.column > 0).then_some(problem.column as u64),
            message: Plain::new(&problem.message),
        }
    }
}

impl Problem {
    /// Formats the location: `line 3`, or `conf.d/a.toml, line 3`; empty if there is none.
    pub fn location(&self) -> String {
        let file = self.file.as_ref().map(ToString::to_string);
        let line = self.line.map(|line| format!("line {line}"));
        let parts: Vec<String> = file.into_iter().chain(line).collect();
        parts.join(", ")
    }
}
