//! Types of the JSON of shared responses.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::status::plain::Plain;

/// Requests of an origin's routes with `collapse`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Shared {
    /// Requests by the source of their response.
    ///
    /// Sources: `alone`, `leader`, `follower`, `kept`, `stale`, `refresh`. In a sample the counts
    /// of this second, without zeros; else the totals.
    pub requests: BTreeMap<Plain, u64>,
    /// Requests of clients: all but `refresh`.
    pub received: u64,
    /// Requests that were sent to the origin: `alone`, `leader` and `refresh`.
    pub sent: u64,
    /// Share of `received` without a request to the origin, from 0 to 1; `None` without requests.
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
