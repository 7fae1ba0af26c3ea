use std::collections::BTreeMap;

use config::tls::Validity;
use serde::{Deserialize, Serialize};

use super::{Headline, KeySample, OriginSample, Plain, SharedAnswers, ZoneSample};
use crate::observe::certificates::CertificateOf;
use crate::observe::connections::ConnectionCounts;

/// The state of one second.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Sample {
    pub seq: u64,
    /// Unix time in seconds, by the gateway's clock.
    pub time: f64,
    pub zones: Vec<ZoneSample>,
    pub origins: Vec<OriginSample>,
    pub deepest: Vec<KeySample>,
    /// How many times the file was put into force.
    pub reload: u64,
    pub error: Option<Problem>,
    pub stopping: bool,
    /// Answers to clients in this second, by class of their status: each request counts once.
    pub codes: Codes,
    /// Of these, requests whose client left before a response began: their status is 499.
    pub left: u64,
    /// The routes with the most requests in this second, the busiest first.
    pub routes: Vec<RouteSample>,
    /// `None`: no route is in maintenance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maintenance: Option<MaintenanceSample>,
    /// `None` if no zone is shared.
    pub store: Option<StoreSample>,
    /// Left out if no route collapses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared_answers: Option<SharedAnswers>,
    pub connections: ConnectionCounts,
    pub descriptors: DescriptorSample,
    pub local_ports: LocalPortSample,
    pub log: LogSample,
    /// The last reload that changed settings in force, for two minutes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<ChangeSample>,
    /// The plans that lost at least half of their keys in the last change, for ten minutes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lost_keys: Vec<LostKeysSample>,
    /// Names of the settings that take effect only after a restart.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub needs_restart: Vec<Plain>,
    /// Certificates that expire soon, have expired, are not valid yet or have a problem. Only for the headline.
    #[serde(skip)]
    pub certificates: Vec<CertificateSample>,
    /// TLS handshakes with clients. Only for the headline.
    #[serde(skip)]
    pub handshakes: HandshakeSample,
    /// What matters most now, and why.
    pub headline: Headline,
}

impl Sample {
    /// The zone of this name.
    pub fn zone(&self, name: &Plain) -> Option<&ZoneSample> {
        self.zones.iter().find(|zone| zone.name == *name)
    }

    /// The origin of this name.
    pub fn origin(&self, name: &Plain) -> Option<&OriginSample> {
        self.origins.iter().find(|origin| origin.name == *name)
    }
}

/// The routes in maintenance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MaintenanceSample {
    /// One of them; `None`: all routes are.
    pub route: Option<Plain>,
    /// How many; 0 if all routes are.
    pub routes: u64,
    /// When the last of them ends, in UTC, and who set it.
    pub until: Plain,
    pub by: Plain,
}

/// A reload that changed settings in force.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ChangeSample {
    /// Seconds since then.
    pub ago: f64,
    /// One text for each of the first settings, such as `zones.per_client.rate 10r/s -> 20r/s`.
    pub what: Vec<Plain>,
}

/// A plan that lost at least half of its keys in a reload.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LostKeysSample {
    pub zone: Plain,
    pub plan: Plain,
    /// The name of its file, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<Plain>,
    /// How many of its keys have no plan any more.
    pub lost: u64,
    /// How many keys it had.
    pub had: u64,
    /// Seconds since then.
    pub ago: f64,
}

/// What waited for a file descriptor in one second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DescriptorSample {
    /// Requests that began to wait for one, for their connection to an origin.
    pub waited: u64,
    /// Requests that waited in vain and got 503.
    pub in_vain: u64,
    /// Tries to accept a client that failed.
    pub clients: u64,
}

/// What waited for a local port in one second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LocalPortSample {
    /// Requests that began to wait for one, for their connection to an origin.
    pub waited: u64,
    /// Requests that waited in vain and got 503.
    pub in_vain: u64,
}

/// The access log in one second.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LogSample {
    /// Lines that were not written.
    pub lost: u64,
    /// Why, if writing fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Plain>,
}

/// A certificate that the headline must know of.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CertificateSample {
    pub of: CertificateOf,
    /// Its file, or the origin.
    pub name: Plain,
    pub validity: Validity,
    /// Why the changed file is not in force.
    pub problem: Option<Plain>,
}

/// TLS handshakes with clients in one second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HandshakeSample {
    pub done: u64,
    pub failed: u64,
    /// Of those that failed: the client refused the certificate of the gateway.
    pub refused: u64,
}

/// The store of shared zones and origins in one second.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct StoreSample {
    pub up: bool,
    /// How long it has been out, in seconds, and why.
    pub out_for: Option<f64>,
    pub reason: Option<Plain>,
    /// While it is out: what zones and origins do without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meanwhile: Option<Plain>,
    /// Of a round trip.
    pub latency: Latency,
    /// Operations by result; zeros are left out.
    pub operations: BTreeMap<Plain, u64>,
    /// Zones for which another gateway has another rate.
    pub differs: Vec<Plain>,
    /// What it refuses, although it is up; left out if nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refuses: Option<StoreRefuses>,
}

/// A store that is up refuses all that is asked for some zones.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct StoreRefuses {
    pub zones: Vec<Plain>,
    /// Why, and what helps.
    pub reason: Plain,
    pub remedy: Plain,
}

/// One error in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Problem {
    /// The included file that it is in; `None`: the file itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<Plain>,
    /// From 1; `None` if it is of no line.
    pub line: Option<u64>,
    /// From 1, in characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u64>,
    /// What is wrong, and what would be right.
    pub message: Plain,
}

impl From<config::Problem> for Problem {
    fn from(problem: config::Problem) -> Self {
        let file = problem.file.as_ref();
        Self {
            file: file.map(|file| Plain::new(&file.display().to_string())),
            line: (problem.line > 0).then_some(problem.line as u64),
            column: (problem.column > 0).then_some(problem.column as u64),
            message: Plain::new(&problem.message),
        }
    }
}

impl Problem {
    /// Where it is: `line 3`, or `conf.d/a.toml, line 3`; empty if it has no place.
    pub fn place(&self) -> String {
        let file = self.file.as_ref().map(ToString::to_string);
        let line = self.line.map(|line| format!("line {line}"));
        let parts: Vec<String> = file.into_iter().chain(line).collect();
        parts.join(", ")
    }
}

/// Numbers of answers, by class of their status: `2xx`; classes without any are left out.
pub type Codes = BTreeMap<Plain, u64>;

/// Quantiles of durations, in seconds; `None` without any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Latency {
    pub p50: Option<f64>,
    pub p95: Option<f64>,
    pub p99: Option<f64>,
}

/// A route in one second.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RouteSample {
    pub name: Plain,
    /// Answers to clients, by class of their status.
    pub codes: Codes,
    /// From the request's head to the last byte of the answer.
    pub latency: Latency,
}
