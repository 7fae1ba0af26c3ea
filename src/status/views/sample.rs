use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Codes, GateSample, Headline, Latency, Override, Plain, Problem, RateAdvice};

/// The event `history` of `/api/live`: its first.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct History {
    pub samples: Vec<Sample>,
}

/// The state of one second.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
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
    /// `None` if no zone is shared.
    pub store: Option<StoreSample>,
    pub connections: ConnectionsSample,
    pub descriptors: DescriptorSample,
    pub log: LogSample,
    /// What matters most now, and why.
    pub headline: Headline,
}

impl Sample {
    /// The zone of this name.
    #[must_use]
    pub fn zone(&self, name: &Plain) -> Option<&ZoneSample> {
        self.zones.iter().find(|zone| zone.name == *name)
    }
}

/// A zone in one second.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
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
    /// a request without a key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keyless: Option<Keyless>,
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
    #[must_use]
    pub fn out(&self) -> u64 {
        self.passed
            .saturating_add(self.delayed)
            .saturating_add(self.dry_run)
    }

    /// Requests that came in this second, when `before` requests waited at its beginning.
    ///
    /// A request that came and has no other outcome yet is waiting.
    #[must_use]
    pub fn came(&self, before: u64) -> u64 {
        let ended = self.out().saturating_add(self.rejected);
        let ended = ended.saturating_add(self.cancelled);
        let ended = ended.saturating_add(self.rejected_elsewhere);
        ended.saturating_add(self.depth).saturating_sub(before)
    }
}

/// A limit that requests without a key pass by.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Keyless {
    /// The `key` of the zone.
    pub key: Plain,
    pub routes: Vec<Plain>,
}

/// A key that all requests of a zone have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OnlyKey {
    pub key: Plain,
    /// Whether the `key` of the zone has no variable.
    pub is_constant: bool,
    /// How many requests it had in the last minute.
    pub requests: u64,
}

/// An origin in one second.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
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
    /// What failed last in the last minute.
    pub last_failure: Option<Plain>,
    pub gate: Option<GateSample>,
}

/// The client connections in one second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConnectionsSample {
    pub open: u64,
    pub max: u64,
    /// Whether `max` is less than `max_connections`, because the limit of descriptors is low.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub few_descriptors: bool,
    /// Whether new clients waited, because all were in use.
    pub is_full: bool,
    /// How many of them the kernel had; left out if nobody knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<u64>,
}

/// What waited for a file descriptor in one second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DescriptorSample {
    /// Requests that began to wait for one, for their connection to an origin.
    pub waited: u64,
    /// Requests that waited in vain and got 503.
    pub in_vain: u64,
    /// Tries to accept a client that failed.
    pub clients: u64,
}

/// The access log in one second.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LogSample {
    /// Lines that were not written.
    pub lost: u64,
    /// Why, if writing fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Plain>,
}

/// A key with many waiting requests.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct KeySample {
    pub zone: Plain,
    pub key: Plain,
    /// Its plan; left out without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plain>,
    pub depth: u64,
    pub oldest_wait: f64,
}

/// A route in one second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RouteSample {
    pub name: Plain,
    /// Answers to clients, by class of their status.
    pub codes: Codes,
    /// From the request's head to the last byte of the answer.
    pub latency: Latency,
}

/// The store of shared zones and origins in one second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
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
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StoreRefuses {
    pub zones: Vec<Plain>,
    /// Why, and what helps.
    pub reason: Plain,
    pub remedy: Plain,
}

/// A key that many requests of a zone belong to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
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
