use std::collections::BTreeMap;

use serde::Serialize;

use super::Plain;

/// The requests of an origin's routes with `collapse`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Shared {
    /// Requests by where their answer came from: `alone`, `leader`, `follower`, `kept`, `stale`,
    /// `refresh`. In a sample those of this second, without zeros; else all.
    pub requests: BTreeMap<Plain, u64>,
    /// Those of clients: all but `refresh`.
    pub asked: u64,
    /// Those that took a request to the origin: `alone`, `leader` and `refresh`.
    pub sent: u64,
    /// The part of `asked` that took no request to the origin, from 0 to 1; `None` without requests.
    pub share: Option<f64>,
}

/// The requests of an origin's routes with `collapse` in one second.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SharedSample {
    #[serde(flatten)]
    pub shared: Shared,
    /// In seconds, as the one after it: how long requests waited for the answer of another one.
    pub wait_p50: Option<f64>,
    pub wait_p99: Option<f64>,
}

/// The answers that the requests of all routes share.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SharedAnswers {
    /// How many are kept for newcomers.
    pub answers: u64,
    /// What all take, also those that are still being read or gathered.
    pub bytes: u64,
    /// What they may take: `shared_answers` of the file.
    pub max_bytes: u64,
    /// How many were forgotten while they still served, or cut off from slow readers, because others
    /// needed their memory. In a sample those of this second; else all.
    pub evicted: u64,
}
