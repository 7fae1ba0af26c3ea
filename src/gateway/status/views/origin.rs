use std::collections::BTreeMap;

use config::tls::Validity;
use serde::Serialize;

use super::{Codes, GateSample, Latency, Plain, RoomSample};
use crate::origin::{FailureKind, Phase};

impl OriginSample {
    /// For how long an origin that has requests has answered nothing, in seconds; 0 if it has none.
    pub fn silence(&self) -> f64 {
        let unanswered = self.unanswered.as_ref();
        unanswered.map_or(0.0, |unanswered| unanswered.silence)
    }
}

/// The requests at an origin whose answers have not begun, though the origin has all of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Unanswered {
    pub requests: u64,
    /// How long ago the oldest left, in seconds.
    pub oldest: f64,
    /// How many left longer ago than three times what is usual, and than 3 s.
    pub late: u64,
    /// For how long no answer has begun, in seconds.
    pub silence: f64,
}

/// A client with requests in flight on one route, all of which wait for the same.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Holder {
    /// Its address, or a mask.
    pub client: Plain,
    pub route: Plain,
    pub phase: Phase,
    pub requests: u64,
    /// Of all in flight at the origin.
    pub of: u64,
    /// How long ago the oldest of its requests left, in seconds.
    pub oldest: f64,
}

/// What was usual at an origin in the ten minutes before the last three seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Usual {
    /// The median of the p95 of each second, to the head of the answer, in seconds.
    pub p95: f64,
    /// How many requests were late in a second, as the median.
    pub late: u64,
    /// The longest p99 of a second, in seconds.
    pub longest: f64,
    /// For how many seconds it is known.
    pub span: u64,
}

/// The last failure of a server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FailureSample {
    pub server: Plain,
    pub kind: FailureKind,
    /// For how long it has failed like this without a good answer, in seconds.
    pub lasts: f64,
    /// Whether requests wait for the origin then: it has `hold`.
    pub is_held: bool,
}

/// An origin in one second.
#[derive(Clone, Debug, Default, Serialize)]
pub struct OriginSample {
    pub name: Plain,
    pub in_flight: u64,
    /// Requests since the start that got a response. `failed` counts the others.
    pub answered: u64,
    pub failed: u64,
    /// Servers that are asked, of `servers`.
    pub healthy: u64,
    /// Servers that are asked although their last request or check failed.
    pub failing: u64,
    pub servers: u64,
    pub max_in_flight: Option<u64>,
    /// Answers in this second, by class of their status.
    pub codes: Codes,
    /// Requests without an answer in this second, by kind; zeros are left out.
    pub errors: BTreeMap<Plain, u64>,
    /// Clients that left before the origin answered, a tenth of a second after they had asked or
    /// later.
    pub left: u64,
    /// How long after they had asked half of these left at most, in seconds.
    pub left_after: Option<f64>,
    /// To the head of the answer.
    pub latency: Latency,
    /// The requests whose answers have not begun. Left out if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unanswered: Option<Unanswered>,
    /// What was usual in the ten minutes before. Left out before it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usual: Option<Usual>,
    /// Who has the most of the requests in flight. Only for the headline.
    #[serde(skip)]
    pub holder: Option<Holder>,
    /// When the first of the certificates expires that its servers have shown, in Unix time. Only for the headline.
    #[serde(skip)]
    pub certificate_expires: Option<i64>,
    /// The validity of its `client_cert`. Only for the headline.
    #[serde(skip)]
    pub client_cert: Option<Validity>,
    /// What failed last in the last minute.
    pub last_failure: Option<Plain>,
    /// The same failure in numbers. Only for the headline.
    #[serde(skip)]
    pub failure: Option<FailureSample>,
    pub gate: Option<GateSample>,
    /// Left out if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub room: Option<RoomSample>,
    /// Left out if no route to it collapses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared: Option<SharedSample>,
}

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
