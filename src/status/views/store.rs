use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Latency, Plain};

/// `/api/store`: the store of shared zones and origins; `store` is `None` if nothing is shared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SharedStore {
    pub store: Option<Store>,
}

/// The store, as this gateway sees it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
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
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StoreZone {
    pub zone: Plain,
    pub on_store_failure: Plain,
    pub operations: BTreeMap<Plain, u64>,
    /// Whether another gateway has another rate for it.
    pub differs: bool,
}
