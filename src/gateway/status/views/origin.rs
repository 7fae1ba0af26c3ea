//! Types of the JSON of origins.

use std::collections::BTreeMap;

use config::tls::Validity;
use serde::Serialize;

use super::{Codes, GateSample, Latency, Plain, RoomSample};
use crate::origin::{FailureKind, Phase};

impl OriginSample {
    /// Time without a response while the origin has requests, in seconds; 0 without requests.
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
    /// Requests older than three times the usual latency, and than 3 s.
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
    /// Phase that all of them wait in.
    pub phase: Phase,
    /// Number of its requests.
    pub requests: u64,
    /// Number of all requests in flight at the origin.
    pub of: u64,
    /// Age of the oldest of its requests, in seconds.
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
    /// Duration of such failures without a good response, in seconds.
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
    pub codes: Codes,
    /// Requests without a response in this second, by kind, without zeros.
    pub errors: BTreeMap<Plain, u64>,
    /// Clients that disconnected before the origin responded, at least 0.1 s after their request.
    pub left: u64,
    /// Median duration from their request to the disconnect, in seconds.
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
    /// First expiry of the certificates that its servers have shown, in Unix time. Only for the
    /// headline.
    #[serde(skip)]
    pub certificate_expires: Option<i64>,
    /// Validity of its `client_cert`. Only for the headline.
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

/// Requests of an origin's routes with `collapse`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Shared {
    /// Requests by the source of their response.
    ///
    /// Sources: `alone`, `leader`, `follower`, `kept`, `stale`, `refresh`. In a sample the counts
    /// of this second, without zeros; else the totals.
    pub requests: BTreeMap<Plain, u64>,
    /// Requests of clients: all but `refresh`.
    pub asked: u64,
    /// Requests that were sent to the origin: `alone`, `leader` and `refresh`.
    pub sent: u64,
    /// Share of `asked` without a request to the origin, from 0 to 1; `None` without requests.
    pub share: Option<f64>,
}

/// Sample of the requests of an origin's routes with `collapse` for one second.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SharedSample {
    /// Numbers of the requests.
    #[serde(flatten)]
    pub shared: Shared,
    /// Median wait for the response of another request, in seconds.
    pub wait_p50: Option<f64>,
    /// 99th percentile of the same waits, in seconds.
    pub wait_p99: Option<f64>,
}

/// Responses that the requests of all routes share.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SharedAnswers {
    /// Number of responses kept for later requests.
    pub answers: u64,
    /// Memory of all responses, also of those still being read or gathered.
    pub bytes: u64,
    /// Maximum memory: `shared_answers` of the file.
    pub max_bytes: u64,
    /// Responses forgotten while still in use, or cut off from slow readers, for lack of memory.
    ///
    /// In a sample the count of this second; else the total.
    pub evicted: u64,
}
