//! Types of the JSON of zones and their keys, and of facts that only the rules of the headline use.
//!
//! The latter are marked `serde(skip)`.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::status::plain::Plain;
use crate::zone::ZoneOverride;

/// Numbers of requests, by outcome.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Totals {
    /// The request passed at once.
    pub passed: u64,
    /// The request waited and then passed.
    pub delayed: u64,
    /// The request was rejected.
    pub rejected: u64,
    /// The client disconnected while the request waited.
    pub cancelled: u64,
    /// Another zone or the origin's gate rejected the request.
    pub rejected_elsewhere: u64,
    /// The key was empty, so the request was not limited.
    pub no_key: u64,
    /// Dry run: the request would have waited.
    pub delayed_dry_run: u64,
    /// Dry run: the request would have been rejected.
    pub rejected_dry_run: u64,
}

impl Totals {
    /// Number of all requests.
    pub fn all(&self) -> u64 {
        let in_force = self.passed + self.delayed + self.rejected + self.cancelled;
        let in_dry_run = self.delayed_dry_run + self.rejected_dry_run;
        in_force + in_dry_run + self.rejected_elsewhere + self.no_key
    }
}

/// Sample of a zone for one second.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ZoneSample {
    /// Name of the zone.
    pub name: Plain,
    /// Effective rate for each key, in requests a second; `None` if the zone has no rate.
    pub rate: Option<f64>,
    /// Requests that passed at once, in this second.
    pub passed: u64,
    /// Requests that waited and then passed, in this second.
    pub delayed: u64,
    /// Requests that were rejected, in this second.
    pub rejected: u64,
    /// Requests whose client disconnected while they waited, in this second.
    pub cancelled: u64,
    /// Clients that disconnected after they had waited here for at least 0.1 s.
    pub left: u64,
    /// Median of the waits of these clients, in seconds.
    pub left_after: Option<f64>,
    /// Requests that another zone or the origin's gate rejected, in this second.
    pub rejected_elsewhere: u64,
    /// Requests that were not limited because their key was empty, in this second.
    pub no_key: u64,
    /// Key definition and at most four routes with a limit here.
    ///
    /// Only if there was a request without a key lately.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keyless: Option<Keyless>,
    /// The last hundred requests of at most ten minutes.
    #[serde(skip)]
    pub lately: RecentRequests,
    /// Requests that would have waited or been rejected without a dry run.
    pub dry_run: u64,
    /// Rejections by reason, without zeros.
    pub rejections: BTreeMap<Plain, u64>,
    /// Number of waiters.
    pub depth: u64,
    /// Number of waiters of the deepest key.
    pub depth_max: u64,
    /// Minimum `burst` of the limits in which requests of this zone wait; `None` if none waits.
    pub burst: Option<u64>,
    /// Wait of the oldest waiter, in seconds.
    pub oldest_wait: f64,
    /// Median of the waits, in seconds; `None` without waits.
    pub wait_p50: Option<f64>,
    /// 95th percentile of the waits, in seconds; `None` without waits.
    pub wait_p95: Option<f64>,
    /// Number of remembered keys.
    pub keys: u64,
    /// Maximum number of remembered keys.
    pub max_keys: u64,
    /// Keys first seen in this second, or seen again after they were forgotten.
    pub new_keys: u64,
    /// Keys that were forgotten to make room for others.
    pub evicted: u64,
    /// Requests of unknown keys that shared one bucket, because there were more than `new_keys`.
    pub flooded: u64,
    /// Keys with the most rejections in the last minute, at most three.
    pub rejected_keys: Vec<HeavyKey>,
    /// Keys with the most rejections in the last three seconds; empty if this second has none.
    #[serde(skip)]
    pub rejected_now: Vec<HeavyKey>,
    /// Key that has all permits of its limit, some of them at other gateways.
    ///
    /// Only a key that has waiters or was rejected.
    #[serde(skip)]
    pub full_key: Option<FullKey>,
    /// Whether the paths of all routes with a limit here look like logins.
    #[serde(skip)]
    pub is_login: bool,
    /// Key of all requests of the last minute; only while requests are limited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub only_key: Option<OnlyKey>,
    /// Untrusted peer that names different clients in `X-Forwarded-For`.
    ///
    /// Its address is the key with the most limited requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untrusted_proxy: Option<Plain>,
    /// Override of the whole zone.
    #[serde(rename = "override", skip_serializing_if = "Option::is_none")]
    pub overridden: Option<ZoneOverride>,
    /// Number of keys with an override of their own.
    pub overridden_keys: u64,
    /// Results of other rates, while the headline is about this zone.
    #[serde(skip)]
    pub advice: Option<RateAdvice>,
}

impl ZoneSample {
    /// Number of requests that went on in this second.
    pub fn out(&self) -> u64 {
        self.passed
            .saturating_add(self.delayed)
            .saturating_add(self.dry_run)
    }
}

/// Limit that requests without a key bypass.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Keyless {
    /// The `key` of the zone.
    pub key: Plain,
    /// Names of the routes.
    pub routes: Vec<Plain>,
}

/// Requests of a zone over a duration that is long enough for a conclusion.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RecentRequests {
    /// Requests without a key.
    pub no_key: u64,
    /// All requests.
    pub all: u64,
    /// Duration that the requests cover, in seconds.
    pub span: f64,
}

/// Key that all requests of a zone have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OnlyKey {
    /// Name of the key.
    pub key: Plain,
    /// Whether the `key` of the zone has no variable.
    pub is_constant: bool,
    /// Number of its requests in the last minute.
    pub requests: u64,
}

/// Key that uses all permits of its limit, over all gateways.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FullKey {
    /// Name of the key.
    pub key: Plain,
    /// `in_flight` of its limit: the number of permits.
    pub of: u64,
    /// Requests of the key that run at this gateway.
    pub here: u64,
    /// Permits of other gateways.
    pub elsewhere: u64,
    /// Withheld permits among `elsewhere`.
    pub withheld: u64,
    /// Duration for which permits of vanished gateways stay withheld, as configured, such as `75s`.
    pub orphan: Plain,
}

/// Key with many waiters.
#[derive(Clone, Debug, Default, Serialize)]
pub struct KeySample {
    /// Name of the zone.
    pub zone: Plain,
    /// Name of the key.
    pub key: Plain,
    /// Plan of the key; left out without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plain>,
    /// Number of its waiters.
    pub depth: u64,
    /// Wait of its oldest waiter, in seconds.
    pub oldest_wait: f64,
}

/// Key with a large share of a zone's requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct HeavyKey {
    /// Name of the key.
    pub key: Plain,
    /// Plan of the key; left out without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plain>,
    /// Number of its requests.
    pub requests: u64,
    /// Number of its rejections.
    pub rejections: u64,
    /// Sum of the waits, in seconds.
    pub wait_seconds: f64,
    /// Share of the zone's rejections, from 0 to 1.
    pub share: f64,
}

/// Body of `/api/zones/{zone}/what-if`: the last arrivals, replayed with two sets of numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WhatIf {
    /// Name of the zone.
    pub zone: Plain,
    /// Begin of the replayed time, in Unix time in seconds.
    pub since: f64,
    /// Length of the replayed time, in seconds.
    pub span_seconds: f64,
    /// Number of replayed requests.
    pub arrivals: u64,
    /// Result with the settings in force.
    pub now: Replayed,
    /// Result with the other numbers.
    pub then: Replayed,
    /// Keys whose rejections change most, at most five.
    pub keys: Vec<ChangedKey>,
    /// Facts about these requests that the replay ignores.
    pub ignores: Vec<Plain>,
}

/// Result of the replayed requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Replayed {
    /// Rate of keys without a rate of their own plan, such as `20r/s`; `none` without a rate.
    pub rate: Plain,
    /// Requests that pass at once.
    pub passed: u64,
    /// Requests that wait and then pass.
    pub delayed: u64,
    /// Requests that are rejected.
    pub rejected: u64,
    /// Dry run: requests that would wait.
    pub delayed_dry_run: u64,
    /// Dry run: requests that would be rejected.
    pub rejected_dry_run: u64,
    /// Share of all requests that is rejected, in a dry run too; from 0 to 1.
    pub share_rejected: f64,
    /// Median wait of the delayed requests, in seconds; `None` if none is delayed.
    pub wait_p50: Option<f64>,
    /// 95th percentile of the waits, in seconds; `None` without waits.
    pub wait_p95: Option<f64>,
    /// 99th percentile of the waits, in seconds; `None` without waits.
    pub wait_p99: Option<f64>,
    /// Maximum of the waits, in seconds; `None` without waits.
    pub wait_max: Option<f64>,
    /// Maximum number of requests that leave the zone within one second.
    pub most_in_a_second: u64,
}

/// Key and its rejections, with the settings in force and with the other numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ChangedKey {
    /// Name of the key.
    pub key: Plain,
    /// Plan of the key; left out without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plain>,
    /// Number of its requests.
    pub requests: u64,
    /// Rejections with the settings in force.
    pub rejected_now: u64,
    /// Rejections with the other numbers.
    pub rejected_then: u64,
}

/// Results of other rates of a zone for its last arrivals.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RateAdvice {
    /// Number of seconds that the arrivals cover.
    pub span: f64,
    /// Number of keys with requests.
    pub keys: u64,
    /// Number of keys with delayed or rejected requests.
    pub limited_keys: u64,
    /// Result with the rate in force.
    pub now: Replayed,
    /// Results with faster rates, the slowest first.
    ///
    /// The last one rejects no request and has only short waits, unless no tried rate achieves
    /// this.
    pub faster: Vec<Replayed>,
}
