//! What is in a state file: one record a line, as JSON.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use config;
use limit::{Percent, Rate, SavedAccount, SavedBackoff, SavedGate, SavedPlaces};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::cost_record::CostRecord;
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
    #[serde(default, skip_serializing_if = "is_zero")]
    new_keys: u64,
}

impl ZoneRecord {
    /// `new_keys`: how long until its budget for new keys is whole.
    pub(super) fn of(zone: &config::Zone, new_keys: Duration) -> Self {
        Self {
            new_keys: nanos(new_keys),
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
    #[serde(with = "as_base64")]
    key: Arc<[u8]>,
    /// `None`: as the zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rate: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    account: Option<AccountRecord>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
struct AccountRecord(#[serde(with = "Account")] SavedAccount);

/// The form of a [`SavedAccount`].
#[derive(Serialize, Deserialize)]
#[serde(remote = "SavedAccount", rename_all = "snake_case")]
enum Account {
    LeakyBucket { ahead: i128 },
    TokenBucket { ahead: i128 },
    FixedWindow { count: u32 },
    SlidingWindowLog { ages: Vec<u64> },
    SlidingWindowCounter { previous: u32, current: u32 },
}

impl KeyRecord {
    /// `of_zone`: the rate of its zone.
    pub(super) fn of(saved: SavedKey, of_zone: Rate) -> Self {
        Self {
            key: saved.key,
            rate: (saved.rate != of_zone).then(|| saved.rate.to_string()),
            account: saved.account.map(AccountRecord),
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
            account: self.account.map(|account| account.0),
        })
    }
}

/// A gate. Times are in nanoseconds from the first line on.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct GateRecord {
    pub(super) origin: String,
    next: u64,
    opens: u64,
    /// Times in which departures of the process before still take place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    reserved: Vec<(u64, u64)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    backoff: Option<BackoffRecord>,
    /// What was learned of the costs of routes to the origin.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) costs: Vec<CostRecord>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct BackoffRecord {
    /// Millionths of the file's rate.
    share: u32,
    answers: u64,
    bad: u64,
    held: u64,
    paused: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    places: Option<PlacesRecord>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
struct PlacesRecord(#[serde(with = "Places")] SavedPlaces);

/// The form of [`SavedPlaces`].
#[derive(Serialize, Deserialize)]
#[serde(remote = "SavedPlaces")]
struct Places {
    limit: u64,
    of: u64,
    answers: u64,
    bad: u64,
}

impl GateRecord {
    pub(super) fn of(origin: &str, saved: &SavedOriginGate, costs: Vec<SavedCost>) -> Self {
        let SavedOriginGate { gate, backoff } = saved;
        Self {
            origin: origin.to_owned(),
            next: nanos(gate.next),
            opens: nanos(gate.opens),
            reserved: gate
                .reserved
                .iter()
                .map(|(from, to)| (nanos(*from), nanos(*to)))
                .collect(),
            backoff: backoff.map(|backoff| BackoffRecord {
                share: backoff.share.millionths(),
                answers: backoff.answers,
                bad: backoff.bad,
                held: nanos(backoff.steady),
                paused: nanos(backoff.paused),
                places: backoff.places.map(PlacesRecord),
            }),
            costs: costs.into_iter().map(CostRecord::of).collect(),
        }
    }

    pub(super) fn saved(&self) -> SavedOriginGate {
        let span = Duration::from_nanos;
        SavedOriginGate {
            gate: SavedGate {
                next: span(self.next),
                opens: span(self.opens),
                reserved: self
                    .reserved
                    .iter()
                    .map(|(from, to)| (span(*from), span(*to)))
                    .collect(),
            },
            backoff: self.backoff.as_ref().map(|backoff| SavedBackoff {
                share: Percent::from_millionths(backoff.share),
                answers: backoff.answers,
                bad: backoff.bad,
                steady: span(backoff.held),
                paused: span(backoff.paused),
                places: backoff.places.as_ref().map(|places| places.0),
            }),
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(nanos: &u64) -> bool {
    *nanos == 0
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
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

/// Keys need not be UTF-8.
mod as_base64 {
    use super::{Arc, Deserialize, Deserializer, Engine, STANDARD, Serializer};
    use serde::de::Error as _;

    pub(super) fn serialize<S: Serializer>(key: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&STANDARD.encode(key))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<[u8]>, D::Error> {
        let text = String::deserialize(from)?;
        let key = STANDARD.decode(text).map_err(D::Error::custom)?;
        Ok(key.into())
    }
}
