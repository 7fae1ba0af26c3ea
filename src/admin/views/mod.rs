//! What the admin port says of the gateway, as JSON: written by the API, read by `drip top`.
//!
//! A reader takes what an older gateway does not send as empty or zero.

mod gate;
mod plain;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use gate::{BackingOff, FileAndNow, Gate, GateClass, GateKey, GateKeySample, GateSample};
pub use plain::Plain;

/// `/api/zones`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Zones {
    pub zones: Vec<Zone>,
}

/// A zone: its settings and its present state.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Zone {
    pub name: Plain,
    pub key: Plain,
    pub algorithm: Plain,
    pub store: Plain,
    pub on_store_failure: Plain,
    pub rate: Plain,
    /// `None` if the zone has no rate.
    pub rate_per_second: Option<f64>,
    pub max_keys: u64,
    pub idle_timeout_seconds: f64,
    pub limits: Vec<Limit>,
    /// Its plans, in the order of the file; left out without any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub plans: Vec<ZonePlan>,
    /// Requests since the gateway started, by outcome.
    pub totals: Totals,
    /// Rejections since the gateway started, by reason.
    pub rejections: BTreeMap<Plain, u64>,
    pub depth: u64,
    pub depth_max: u64,
    /// Running requests, of those that a limit with `in_flight` bounds.
    pub in_flight: u64,
    pub oldest_wait_seconds: f64,
    pub keys: Keys,
}

/// The limit that a route has in a zone.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Limit {
    pub route: Plain,
    /// The `burst` of the limit. Without a queue: how many requests pass at once.
    pub burst: u64,
    /// How many requests pass at once above the rate; `None` with `nodelay`: all of them.
    pub delay: Option<u64>,
    pub nodelay: bool,
    pub max_wait_seconds: Option<f64>,
    /// How many requests of a key may run at the same time; `None`: any number.
    pub in_flight: Option<u64>,
    pub dry_run: bool,
}

/// A plan of a zone: other numbers for some keys.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ZonePlan {
    pub plan: Plain,
    /// How many keys have it.
    pub keys: u64,
    /// `None`: the rate of the zone.
    pub rate: Option<Plain>,
    /// `None`: the burst of the limit.
    pub burst: Option<u64>,
    /// Share of each key at the gate of an origin.
    pub weight: u32,
    /// `None`: the class of the route.
    pub class: Option<Plain>,
}

/// Numbers of requests, by outcome.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Totals {
    pub passed: u64,
    pub delayed: u64,
    pub rejected: u64,
    pub cancelled: u64,
    pub delayed_dry_run: u64,
    pub rejected_dry_run: u64,
}

/// Numbers of remembered keys.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Keys {
    pub active: u64,
    pub parked: u64,
}

/// `/api/origins`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Origins {
    pub origins: Vec<Origin>,
}

/// An origin and its servers.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Origin {
    pub name: Plain,
    pub in_flight: u64,
    pub max_in_flight: Option<u64>,
    /// `None` if the file limits neither its rate nor its places.
    pub gate: Option<Gate>,
    pub servers: Vec<Server>,
}

/// A server of an origin.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Server {
    pub url: Plain,
    pub healthy: bool,
    pub in_flight: u64,
    /// Requests since the start that got a response. `failed` counts the others.
    pub answered: u64,
    pub failed: u64,
}

/// `/api/config`: the settings in force, and the state of the file.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    pub file: Plain,
    /// As TOML.
    pub settings: String,
    pub loaded_at: Plain,
    pub version: Plain,
    pub error: Option<Broken>,
}

/// A file with errors, which is not in force.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Broken {
    pub since: Plain,
    pub problems: Vec<Problem>,
}

/// One error in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Problem {
    pub line: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u64>,
    pub message: Plain,
}

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
    pub cancelled: u64,
    pub dry_run: u64,
    pub depth: u64,
    pub depth_max: u64,
    /// In seconds, as the two after it.
    pub oldest_wait: f64,
    pub wait_p50: Option<f64>,
    pub wait_p95: Option<f64>,
    pub keys: u64,
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
    pub servers: u64,
    pub gate: Option<GateSample>,
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

impl Sample {
    /// The zone of this name.
    #[must_use]
    pub fn zone(&self, name: &Plain) -> Option<&ZoneSample> {
        self.zones.iter().find(|zone| zone.name == *name)
    }
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
        ended.saturating_add(self.depth).saturating_sub(before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_came_is_who_left_and_who_waits_more() {
        let sample = ZoneSample {
            passed: 1,
            delayed: 9,
            rejected: 4,
            cancelled: 1,
            depth: 20,
            ..ZoneSample::default()
        };
        assert_eq!((sample.out(), sample.came(12)), (10, 23));
        assert_eq!(sample.came(100), 0);
    }

    #[test]
    fn what_is_not_known_is_passed_over_and_what_is_missing_is_zero() {
        let text = r#"{"name": "a", "new": [1], "limits": [{"route": "/", "nodelay": true, "delay": null}]}"#;
        let zone: Zone = serde_json::from_str(text).unwrap();
        assert_eq!(zone.limits[0].delay, None);
        assert_eq!(zone.totals.passed, 0);
    }
}
