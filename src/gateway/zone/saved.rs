//! State of a zone and of its keys that outlives the process.

use std::time::Duration;

use limit::{Rate, SavedAccount};
use serde::{Deserialize, Serialize};

use super::join::Key;

/// Saved state of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedKey {
    /// Bytes of the key.
    pub key: Key,
    /// Rate under which the key was charged.
    pub rate: Rate,
    /// Charge of the key; `None` if it has drained and only the key itself matters.
    pub account: Option<SavedAccount>,
}

/// Description of a zone in the state file. Keys are restored only into a zone that it fits.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ZoneRecord {
    /// Name of the zone.
    pub name: String,
    /// Template of the zone's keys.
    key: String,
    ipv6_prefix: u8,
    algorithm: String,
    /// Rate of each key without a rate of its own.
    pub rate: Rate,
    /// Used part of the budget for new keys: nanoseconds until the budget is whole again.
    #[serde(default)]
    new_keys: u64,
}

impl ZoneRecord {
    /// Describes a zone. `new_keys`: duration until its budget for new keys is whole.
    pub fn new(zone: &config::Zone, new_keys: Duration) -> Self {
        Self {
            new_keys: u64::try_from(new_keys.as_nanos()).unwrap_or(u64::MAX),
            name: zone.name.clone(),
            key: zone.key.to_string(),
            ipv6_prefix: zone.ipv6_prefix,
            algorithm: zone.algorithm.name().to_owned(),
            rate: zone.rate,
        }
    }

    /// Returns whether the saved keys fit this zone: all settings but the rate are the same.
    pub fn fits(&self, zone: &config::Zone) -> bool {
        let mut expected = Self::new(zone, self.new_keys());
        expected.rate = self.rate;
        *self == expected
    }

    /// Returns the duration from the time of the state until the budget for new keys is whole.
    pub fn new_keys(&self) -> Duration {
        Duration::from_nanos(self.new_keys)
    }
}

/// A key with its charge, as a record of the state file.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRecord {
    /// Key. It need not be UTF-8.
    #[serde(with = "crate::base64_bytes")]
    key: Key,
    /// Text of the key's rate; `None`: the zone's rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rate: Option<String>,
    /// Charge of the key; `None`: nothing is charged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    account: Option<SavedAccount>,
}

impl KeyRecord {
    /// Describes a key of a zone with this rate.
    pub fn new(saved: SavedKey, zone_rate: Rate) -> Self {
        Self {
            key: saved.key,
            rate: (saved.rate != zone_rate).then(|| saved.rate.to_string()),
            account: saved.account,
        }
    }

    /// Converts to a key of a zone with this rate.
    ///
    /// `None`: the rate of the key cannot be parsed. A later version may have written it.
    pub fn into_key(self, zone_rate: Rate) -> Option<SavedKey> {
        let rate = self.rate.as_deref().map(Rate::parse_or_unlimited);
        let rate = rate.transpose().ok()?.unwrap_or(zone_rate);
        Some(SavedKey {
            key: self.key,
            rate,
            account: self.account,
        })
    }
}
