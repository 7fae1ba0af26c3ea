use config::tls::Validity;
use serde::Serialize;

use super::{
    Codes, Headline, KeySample, OriginSample, Plain, Problem, RouteSample, SharedAnswers,
    StoreSample, ZoneSample,
};
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
