use serde::{Deserialize, Serialize};

use super::{Headline, Plain};

/// `/api/fleet`: one picture of several gateways.
///
/// Sums are over the gateways that answer. What the store counts is the same at each, and shown
/// once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Fleet {
    /// What matters most between the gateways. What each says of itself is in `gateways`.
    pub headline: Headline,
    pub gateways: Vec<FleetGateway>,
    pub zones: Vec<FleetZone>,
    pub gates: Vec<FleetGate>,
    pub places: Vec<FleetPlaces>,
    /// The keys that wait or were rejected in the last minute, the heaviest first.
    pub keys: Vec<FleetKey>,
}

/// One of the gateways.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetGateway {
    /// Its own name if no other gateway has the same, or else its address.
    pub name: Plain,
    /// Host and port of its admin port; left out for the gateway that tells this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<Plain>,
    /// `answers`, `silent` (it does not answer), `refuses` (it answers, but does not tell),
    /// `strange` (what answers is no drip gateway), `same` (it is a gateway that is listed before)
    /// or `unknown` (not read yet).
    pub state: Plain,
    /// Since when it could not be read, in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Plain>,
    /// Why it could not be read, or which gateway it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Plain>,
    pub version: Plain,
    pub stopping: bool,
    /// Answers to clients in the last second.
    pub answers: u64,
    pub in_flight: u64,
    /// Requests that wait in zones and at gates. One that waits in two zones counts twice.
    pub depth: u64,
    /// Rejections in the last second, in zones and at gates.
    pub rejected: u64,
    /// How many seconds its clock is ahead of the one that this is read with; left out if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock: Option<f64>,
    /// Severity and title of its own headline.
    pub severity: Plain,
    pub title: Plain,
}

impl FleetGateway {
    /// What is said of one that could not be read.
    #[must_use]
    pub fn trouble(&self) -> Option<&'static str> {
        match self.state.as_str() {
            "silent" => Some("does not answer"),
            "refuses" => Some("cannot be read"),
            "strange" => Some("is no drip gateway"),
            _ => None,
        }
    }
}

/// A zone over all gateways.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetZone {
    pub name: Plain,
    /// `memory` or `redis`; in Redis a key has one level for all gateways.
    pub store: Plain,
    /// The rates in force: one, unless gateways differ.
    pub rates: Vec<Plain>,
    /// Requests that went on in the last second.
    pub out: u64,
    pub rejected: u64,
    pub depth: u64,
    /// In seconds.
    pub oldest_wait: f64,
    pub parts: Vec<FleetZonePart>,
}

/// What one gateway has of a zone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetZonePart {
    pub gateway: Plain,
    pub out: u64,
    pub rejected: u64,
    pub depth: u64,
    /// In seconds.
    pub oldest_wait: f64,
}

/// The gates of an origin over all gateways.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetGate {
    pub origin: Plain,
    /// Whether the gateways share its rate.
    pub shared: bool,
    /// The rates in force: one, unless gateways differ; none without a pace.
    pub rates: Vec<Plain>,
    /// How many gateways share the rate, as the store counts them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateways: Option<u32>,
    /// Requests a second that left the gates in the last seconds; left out until it is measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent: Option<f64>,
    pub depth: u64,
    pub in_flight: u64,
    /// In the last second.
    pub rejected: u64,
    pub parts: Vec<FleetGatePart>,
}

/// What one gateway has of the gate of an origin.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetGatePart {
    pub gateway: Plain,
    /// Its part of the shared rate, from 0 to 1. That of an idle gateway is what it would have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<f64>,
    /// Whether it goes on without the store.
    pub alone: bool,
    /// A second, as in the sum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent: Option<f64>,
    pub depth: u64,
    pub in_flight: u64,
    pub rejected: u64,
}

/// The places of an origin that gateways share.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetPlaces {
    pub origin: Plain,
    /// As the store counts them, as the next three: the same at each gateway.
    pub of: u64,
    pub withheld: u64,
    pub free: u64,
    pub gateways: u64,
    /// Sums over the gateways.
    pub held: u64,
    pub in_use: u64,
    /// Places of gateways that are not read here: what is missing to `of`, if the store counts more
    /// gateways than `parts` has.
    pub elsewhere: u64,
    pub parts: Vec<FleetPlacesPart>,
}

/// What one gateway has of the places of an origin.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetPlacesPart {
    pub gateway: Plain,
    pub held: u64,
    pub in_use: u64,
}

/// A key that waits or was rejected at any gateway.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetKey {
    pub zone: Plain,
    /// The origin at whose gate it waits; left out for a key that waits in the zone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gate: Option<Plain>,
    pub key: Plain,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plain>,
    /// Whether the name is masked: then it means something at its gateway alone, and is not summed.
    pub masked: bool,
    pub depth: u64,
    /// In the last minute.
    pub rejections: u64,
    /// In seconds.
    pub oldest_wait: f64,
    pub parts: Vec<FleetKeyPart>,
}

/// What one gateway has of a key.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetKeyPart {
    pub gateway: Plain,
    pub depth: u64,
    pub rejections: u64,
}
