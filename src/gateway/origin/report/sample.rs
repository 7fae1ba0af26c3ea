//! Types of the JSON of origins: what `/api/live` and the live page get of each, once a second.

use std::collections::BTreeMap;

use config::tls::Validity;
use serde::Serialize;

use crate::collapse::report::sample::SharedSample;
use crate::gate::report::sample::GateSample;
use crate::origin::{FailureKind, Phase};
use crate::room::report::sample::RoomSample;
use crate::status::counts::Labelled;
use crate::status::minute::Latency;
use crate::status::plain::Plain;

/// Time without a response from which an origin with requests is silent, in seconds.
const SILENT: f64 = 2.0;

impl OriginSample {
    /// Returns whether the origin has requests and has not answered for some time.
    pub fn is_silent(&self) -> bool {
        self.silence() >= SILENT
    }

    /// Returns the time without a response while there are requests, in seconds; 0 without
    /// requests.
    pub fn silence(&self) -> f64 {
        let unanswered = self.unanswered.as_ref();
        unanswered.map_or(0.0, |unanswered| unanswered.silence)
    }
}

/// Requests that an origin has received completely and not begun to answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Unanswered {
    /// Number of the requests.
    pub requests: u64,
    /// Age of the oldest request, in seconds.
    pub oldest: f64,
    /// Number of late requests: older than three times the usual latency, and than 3 s.
    pub late: u64,
    /// Time since a response last began, in seconds.
    pub silence: f64,
}

/// Client with requests in flight on one route and in one phase.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Holder {
    /// Address of the client, or a mask.
    pub client: Plain,
    /// Name of the route.
    pub route: Plain,
    /// Phase of all these requests: the event that they wait for.
    pub phase: Phase,
    /// Number of these requests.
    pub requests: u64,
    /// Number of all requests in flight at the origin.
    pub of: u64,
    /// Age of the oldest of these requests, in seconds.
    pub oldest: f64,
}

/// Usual values of an origin, from the ten minutes before the last three seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Usual {
    /// Median of the p95 latency of each second, to the head of the response, in seconds.
    pub p95: f64,
    /// Median over all seconds of the number of requests that were late.
    pub late: u64,
    /// Maximum of the p99 latency of each second, in seconds.
    pub longest: f64,
    /// Number of seconds that the values cover.
    pub span: u64,
}

/// Last failure of a server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FailureSample {
    /// Server that failed.
    pub server: Plain,
    /// Kind of the failure.
    pub kind: FailureKind,
    /// Time since the first failure of this kind, without a good response since, in seconds.
    pub lasts: f64,
    /// Whether the origin has `hold`, so that its requests wait during the failure.
    pub is_held: bool,
}

/// Sample of an origin for one second.
#[derive(Clone, Debug, Default, Serialize)]
pub struct OriginSample {
    /// Name of the origin.
    pub name: Plain,
    /// Requests in flight.
    pub in_flight: u64,
    /// Requests with a response since the start. `failed` counts the others.
    pub answered: u64,
    /// Requests without a response since the start.
    pub failed: u64,
    /// Servers in use, of `servers`.
    pub healthy: u64,
    /// Servers in use although their last request or check failed.
    pub failing: u64,
    /// Number of servers.
    pub servers: u64,
    /// Configured maximum of requests in flight; `None`: unbounded.
    pub max_in_flight: Option<u64>,
    /// Responses in this second, by status class.
    pub codes: Labelled,
    /// Requests without a response in this second, by kind, without zeros.
    pub errors: BTreeMap<Plain, u64>,
    /// Clients that disconnected before the origin responded, at least 0.1 s after their request.
    pub left: u64,
    /// Median duration from the request of such a client to the disconnect, in seconds.
    pub left_after: Option<f64>,
    /// Latency to the head of the response.
    pub latency: Latency,
    /// Requests without a response yet. Left out if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unanswered: Option<Unanswered>,
    /// Usual values of the ten minutes before. Left out before they are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usual: Option<Usual>,
    /// Client with the most requests in flight. Only for the headline.
    #[serde(skip)]
    pub holder: Option<Holder>,
    /// First expiry of the certificates that the servers have shown, in Unix time. Only for the
    /// headline.
    #[serde(skip)]
    pub certificate_expires: Option<i64>,
    /// Validity of the origin's `client_cert`. Only for the headline.
    #[serde(skip)]
    pub client_cert: Option<Validity>,
    /// Last failure of the last minute.
    pub last_failure: Option<Plain>,
    /// Last failure, in numbers. Only for the headline.
    #[serde(skip)]
    pub failure: Option<FailureSample>,
    /// Gate of the origin, if it has one.
    pub gate: Option<GateSample>,
    /// Waiting room. Left out if the origin has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub room: Option<RoomSample>,
    /// Shared responses. Left out if no route to the origin collapses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared: Option<SharedSample>,
}
