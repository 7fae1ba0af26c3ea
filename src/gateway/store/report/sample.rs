//! Types of the JSON of the store, Redis: what `/api/live` and the live page get once a second.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::status::minute::Latency;
use crate::status::plain::Plain;

/// Sample of the store of shared zones and origins for one second.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct StoreSample {
    /// Whether the store is up.
    pub up: bool,
    /// Duration of the outage, in seconds.
    pub out_for: Option<f64>,
    /// Cause of the outage.
    pub reason: Option<Plain>,
    /// Behavior of zones and origins during the outage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meanwhile: Option<Plain>,
    /// Latency of a round trip.
    pub latency: Latency,
    /// Operations by result, without zeros.
    pub operations: BTreeMap<Plain, u64>,
    /// Zones for which another gateway has another rate.
    pub differs: Vec<Plain>,
    /// Refusals of the store although it is up; left out if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refuses: Option<StoreRefuses>,
}

/// Store that is up and refuses all operations of some zones.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct StoreRefuses {
    /// Names of the zones.
    pub zones: Vec<Plain>,
    /// Reason, in the words of Redis.
    pub reason: Plain,
    /// Advice for the operator.
    pub remedy: Plain,
}
