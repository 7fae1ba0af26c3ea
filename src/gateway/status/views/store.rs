use std::collections::BTreeMap;

use serde::Serialize;

use super::{Latency, Plain};

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
