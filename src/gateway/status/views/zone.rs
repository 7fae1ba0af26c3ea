use std::collections::BTreeMap;

use serde::Serialize;

use super::Plain;

/// Numbers of requests, by outcome.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Totals {
    pub passed: u64,
    pub delayed: u64,
    pub rejected: u64,
    /// The client left while the request waited.
    pub cancelled: u64,
    /// Another zone or the origin's gate rejected the request.
    pub rejected_elsewhere: u64,
    /// The key was empty, so the request was not limited.
    pub no_key: u64,
    pub delayed_dry_run: u64,
    pub rejected_dry_run: u64,
}

/// What differs from the file until it expires or the gateway restarts.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Override {
    /// `None`: the rate of the file, or of the plan.
    pub rate: Option<Plain>,
    /// Nothing leaves the queues.
    pub pause: bool,
    /// `None`: as the routes say.
    pub dry_run: Option<bool>,
    /// When it was set, and when it ends; in UTC.
    pub since: Plain,
    pub until: Plain,
    /// Who set it: the name of a token, or the address of the admin port's client.
    pub by: Plain,
}

/// A zone in one second.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ZoneSample {
    pub name: Plain,
    /// The rate in force for each key, in requests a second; `None` if the zone has no rate.
    pub rate: Option<f64>,
    pub passed: u64,
    pub delayed: u64,
    pub rejected: u64,
    /// The client left while the request waited.
    pub cancelled: u64,
    /// Clients that left after they had waited here for a tenth of a second or longer.
    pub left: u64,
    /// How long half of these had waited at most, in seconds.
    pub left_after: Option<f64>,
    /// Another zone or the origin's gate rejected the request.
    pub rejected_elsewhere: u64,
    /// The key was empty, so the request was not limited.
    pub no_key: u64,
    /// What the key is made of, and the routes with a limit here, at most four; only if there was
    /// a request without a key lately.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keyless: Option<Keyless>,
    /// The last hundred requests of at most ten minutes.
    #[serde(skip)]
    pub lately: Lately,
    pub dry_run: u64,
    /// Rejections by reason; zeros are left out.
    pub rejections: BTreeMap<Plain, u64>,
    pub depth: u64,
    pub depth_max: u64,
    /// The least `burst` of the limits in which requests of this zone wait; `None` if none waits.
    pub burst: Option<u64>,
    /// In seconds, as the two after it.
    pub oldest_wait: f64,
    pub wait_p50: Option<f64>,
    pub wait_p95: Option<f64>,
    pub keys: u64,
    pub max_keys: u64,
    /// Keys that were not known before this second, or no longer.
    pub new_keys: u64,
    /// Keys that were forgotten to make room for others.
    pub evicted: u64,
    /// Requests of unknown keys that shared one bucket, because there were more than `new_keys`.
    pub flooded: u64,
    /// The keys with the most rejections in the last minute, at most three.
    pub rejected_keys: Vec<HeavyKey>,
    /// The same of the last three seconds; empty if none was rejected in this one.
    #[serde(skip)]
    pub rejected_now: Vec<HeavyKey>,
    /// The key that has all places of its limit, some of them at other gateways, of those that wait
    /// or were rejected.
    #[serde(skip)]
    pub full_key: Option<FullKey>,
    /// Whether all routes with a limit here are those of logins, as far as their paths say.
    #[serde(skip)]
    pub is_login: bool,
    /// The key that all requests of the last minute had; only while requests are limited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub only_key: Option<OnlyKey>,
    /// The peer behind the key with the most limited requests, if it names different clients in
    /// `X-Forwarded-For` and is not trusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untrusted_proxy: Option<Plain>,
    /// What differs from the file for the whole zone.
    #[serde(rename = "override", skip_serializing_if = "Option::is_none")]
    pub overridden: Option<Override>,
    /// How many keys have an override of their own.
    pub overridden_keys: u64,
    /// What other rates would do, while the headline is about this zone.
    #[serde(skip)]
    pub advice: Option<RateAdvice>,
}

impl ZoneSample {
    /// Requests that went on in this second.
    pub fn out(&self) -> u64 {
        self.passed
            .saturating_add(self.delayed)
            .saturating_add(self.dry_run)
    }
}

/// A limit that requests without a key pass by.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Keyless {
    /// The `key` of the zone.
    pub key: Plain,
    pub routes: Vec<Plain>,
}

/// Requests of a zone in a span that is long enough to say something.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Lately {
    /// Those without a key.
    pub no_key: u64,
    pub all: u64,
    /// In seconds.
    pub span: f64,
}

/// A key that all requests of a zone have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OnlyKey {
    pub key: Plain,
    /// Whether the `key` of the zone has no variable.
    pub is_constant: bool,
    /// How many requests it had in the last minute.
    pub requests: u64,
}

/// A key of which as many requests run at all gateways as may.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FullKey {
    pub key: Plain,
    /// `in_flight` of its limit.
    pub of: u64,
    /// Requests that run here.
    pub here: u64,
    /// Places that other gateways have, and those of them that are withheld, as their gateways have
    /// vanished.
    pub elsewhere: u64,
    pub withheld: u64,
    /// How long such places stay withheld, as in the file, such as `75s`.
    pub orphan: Plain,
}

/// A key with many waiting requests.
#[derive(Clone, Debug, Default, Serialize)]
pub struct KeySample {
    pub zone: Plain,
    pub key: Plain,
    /// Its plan; left out without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plain>,
    pub depth: u64,
    pub oldest_wait: f64,
}

/// A key that many requests of a zone belong to.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct HeavyKey {
    pub key: Plain,
    /// Its plan; left out without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plain>,
    pub requests: u64,
    pub rejections: u64,
    /// Sum of the waits, in seconds.
    pub wait_seconds: f64,
    /// Its part of the zone's rejections, from 0 to 1.
    pub share: f64,
}

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
