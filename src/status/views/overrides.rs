use serde::{Deserialize, Serialize};

use super::{Override, Plain};

/// `/api/zones/{zone}/overrides`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Overrides {
    /// `None`: the zone is as in the file.
    pub zone: Option<Override>,
    pub keys: Vec<KeyOverride>,
}

/// What differs from the file for one key.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct KeyOverride {
    pub key: Plain,
    #[serde(rename = "override")]
    pub overridden: Override,
}
