use std::collections::BTreeMap;

use serde::Serialize;

use super::{Latency, Plain};

/// `/api/store`: the store of shared zones and origins; `store` is `None` if nothing is shared.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SharedStore {
    pub store: Option<Store>,
}

/// The store, as this gateway sees it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Store {
    /// Without its password.
    pub url: Plain,
    pub up: bool,
    /// Since when it is out, in UTC, and why.
    pub out_since: Option<Plain>,
    pub reason: Option<Plain>,
    /// Of a round trip, in the last minute.
    pub latency: Latency,
    /// Since the start, by result.
    pub operations: BTreeMap<Plain, u64>,
    pub zones: Vec<StoreZone>,
}

/// A zone that is kept in the store.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct StoreZone {
    pub zone: Plain,
    pub on_store_failure: Plain,
    pub operations: BTreeMap<Plain, u64>,
    /// Whether another gateway has another rate for it.
    pub differs: bool,
}

/// The store of shared zones and origins in one second.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
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
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct StoreRefuses {
    pub zones: Vec<Plain>,
    /// Why, and what helps.
    pub reason: Plain,
    pub remedy: Plain,
}
