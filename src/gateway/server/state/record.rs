//! What is in a state file: one record a line, as JSON.

use std::sync::Arc;
use std::time::Duration;

use config;
use limit::{Rate, SavedAccount};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::stamp::Stamp;
use crate::gate::SavedOriginGate;
use crate::http::gateway::SavedCost;
use crate::zone::SavedKey;

/// One line.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Record {
    /// The first line: when all the others were true.
    Written(Stamp),
    /// A zone, whose keys follow.
    Zone(ZoneRecord),
    /// A key of the zone before.
    Key(KeyRecord),
    /// The gate of an origin.
    Gate(GateRecord),
}

/// What a zone must still be, so that its keys can be continued.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ZoneRecord {
    pub(super) name: String,
    key: String,
    ipv6_prefix: u8,
    algorithm: String,
    /// The rate of each key that names none.
    #[serde(with = "as_text")]
    pub(super) rate: Rate,
    /// How much of the budget for new keys is used up: nanoseconds until none is.
    #[serde(default)]
    new_keys: u64,
}

impl ZoneRecord {
    /// `new_keys`: how long until its budget for new keys is whole.
    pub(super) fn of(zone: &config::Zone, new_keys: Duration) -> Self {
        Self {
            new_keys: u64::try_from(new_keys.as_nanos()).unwrap_or(u64::MAX),
            name: zone.name.clone(),
            key: zone.key.to_string(),
            ipv6_prefix: zone.ipv6_prefix,
            algorithm: zone.algorithm.name().to_owned(),
            rate: zone.rate,
        }
    }

    /// Whether a zone with these settings keeps the keys. Its rate may be another one.
    pub(super) fn is(&self, zone: &config::Zone) -> bool {
        let rate = self.rate;
        *self
            == Self {
                rate,
                ..Self::of(zone, self.new_keys())
            }
    }

    /// How long after the first line the budget for new keys is whole.
    pub(super) fn new_keys(&self) -> Duration {
        Duration::from_nanos(self.new_keys)
    }
}

/// A key, and what it was charged.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KeyRecord {
    /// Keys need not be UTF-8.
    #[serde(with = "crate::room::base64_bytes")]
    key: Arc<[u8]>,
    /// `None`: as the zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rate: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    account: Option<SavedAccount>,
}

impl KeyRecord {
    /// `of_zone`: the rate of its zone.
    pub(super) fn of(saved: SavedKey, of_zone: Rate) -> Self {
        Self {
            key: saved.key,
            rate: (saved.rate != of_zone).then(|| saved.rate.to_string()),
            account: saved.account,
        }
    }

    /// `None` if its rate is none.
    pub(super) fn into_key(self, of_zone: Rate) -> Option<SavedKey> {
        let rate = self
            .rate
            .map_or(Some(of_zone), |rate| as_text::parse(&rate))?;
        Some(SavedKey {
            key: self.key,
            rate,
            account: self.account,
        })
    }
}

/// A gate. Times are in nanoseconds from the first line on.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct GateRecord {
    pub(super) origin: String,
    #[serde(flatten)]
    pub(super) saved: SavedOriginGate,
    /// What was learned of the costs of routes to the origin.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) costs: Vec<SavedCost>,
}

/// Rates as in `gateway.toml`.
mod as_text {
    use super::{Deserialize, Deserializer, Rate, Serializer};
    use serde::de::Error as _;

    pub(super) fn parse(text: &str) -> Option<Rate> {
        match text {
            "none" => Some(Rate::UNLIMITED),
            text => text.parse().ok(),
        }
    }

    pub(super) fn serialize<S: Serializer>(rate: &Rate, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(rate)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Rate, D::Error> {
        let text = String::deserialize(from)?;
        parse(&text).ok_or_else(|| D::Error::custom("not a rate"))
    }
}
