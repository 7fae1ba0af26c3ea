use serde::Serialize;

use super::Plain;

/// `/api/zones/{zone}/what-if`: the last arrivals, decided on again with two sets of numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WhatIf {
    pub zone: Plain,
    /// When the replayed span began, as Unix time in seconds. No arrival after it is missing.
    pub since: f64,
    pub span_seconds: f64,
    /// How many requests were replayed.
    pub arrivals: u64,
    /// With the settings in force.
    pub now: Replayed,
    /// With the other numbers.
    pub then: Replayed,
    /// The keys whose rejections change most, up to five.
    pub keys: Vec<ChangedKey>,
    /// What happened to these requests and is not part of the replay.
    pub ignores: Vec<Plain>,
}

/// What becomes of the replayed requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Replayed {
    /// The rate of keys without a rate of their own plan, such as `20r/s`; `none` without a rate.
    pub rate: Plain,
    pub passed: u64,
    pub delayed: u64,
    pub rejected: u64,
    pub delayed_dry_run: u64,
    pub rejected_dry_run: u64,
    /// The part of all requests that is rejected, in a dry run too; from 0 to 1.
    pub share_rejected: f64,
    /// How long the delayed ones wait, in seconds; `None` if none is delayed.
    pub wait_p50: Option<f64>,
    pub wait_p95: Option<f64>,
    pub wait_p99: Option<f64>,
    pub wait_max: Option<f64>,
    /// The most requests that leave the zone in any second.
    pub most_in_a_second: u64,
}

/// A key and its rejections, with the settings in force and with the other numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ChangedKey {
    pub key: Plain,
    /// Its plan; left out without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plain>,
    pub requests: u64,
    pub rejected_now: u64,
    pub rejected_then: u64,
}

/// What other rates of a zone would have done to its last arrivals.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RateAdvice {
    /// How many seconds the arrivals are about.
    pub span: f64,
    /// How many keys had requests, and how many of them were delayed or rejected.
    pub keys: u64,
    pub limited_keys: u64,
    /// With the rate in force.
    pub now: Replayed,
    /// With faster rates, the slowest first. The last of them rejects and delays nobody for long,
    /// unless none of those that were tried does.
    pub faster: Vec<Replayed>,
}
