use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Plain;

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
    /// How long places of busy keys are taken ahead from the store; 0: none are.
    pub lease_seconds: f64,
    pub rate: Plain,
    /// `None` if the zone has no rate.
    pub rate_per_second: Option<f64>,
    pub max_keys: u64,
    /// The most unknown keys that get buckets of their own, such as `100r/s`; `None`: all.
    pub new_keys: Option<Plain>,
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
    /// What differs from the file for the whole zone.
    #[serde(rename = "override", skip_serializing_if = "Option::is_none")]
    pub overridden: Option<Override>,
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
    /// The client left while the request waited.
    pub cancelled: u64,
    /// Another zone or the origin's gate rejected the request.
    pub rejected_elsewhere: u64,
    /// The key was empty, so the request was not limited.
    pub no_key: u64,
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

/// What differs from the file until it expires or the gateway restarts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
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
    /// Who set it: the address of the admin port's client.
    pub by: Plain,
}
