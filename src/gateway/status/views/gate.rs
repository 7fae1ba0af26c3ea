use std::collections::BTreeMap;

use serde::Serialize;

use super::Plain;
use crate::observe::networks::Crowd;

/// Values of a gate in place of those of the file, until they expire or the gateway restarts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GateOverride {
    /// `None`: the rate of the file.
    pub rate: Option<Plain>,
    /// `None`: as in the file.
    pub max_in_flight: Option<u64>,
    /// No request leaves.
    pub pause: bool,
    /// When it was set, and when it ends; in UTC.
    pub since: Plain,
    pub until: Plain,
    /// Who set it: the name of a token, or the address of the admin port's client.
    pub by: Plain,
    /// Who renews it; left out if nobody does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<Plain>,
}

/// The store answers, but refuses what a gate asks for: the gate goes on alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct GateRefused {
    pub asks_for: GateAsks,
    /// The gate's part of the rate or of the places, from 0 to 1.
    pub part: f64,
    /// Why, and what helps.
    pub reason: Plain,
    pub remedy: Plain,
}

/// What gates that share an origin ask the store for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GateAsks {
    /// Slots of the rate.
    #[default]
    Slots,
    /// Places at the origin.
    Places,
    /// What the back-off of others has learned.
    Backoff,
}

/// A setting as the file has it, and as it is now in force.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FileAndNow<T> {
    pub file: Option<T>,
    pub now: Option<T>,
}

/// A class of traffic at a gate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GateClass {
    pub class: Plain,
    pub weight: u32,
    pub queue_depth: u64,
}

/// Why a gate lets less through than the file says.
#[expect(clippy::struct_excessive_bools, reason = "each is a field of the API")]
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct BackingOff {
    /// `trouble`, `slow` or `retry_after`.
    pub reason: Plain,
    pub text: Plain,
    /// With `mode = "shadow"`: it only would let less through.
    pub shadow: bool,
    /// Nothing is lower than in the file: with fewer at once, answers were as slow.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub kept: bool,
    /// With fewer at once, answers were as slow. Some places may be lower than in the file still.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub in_vain: bool,
    /// Answers come in time again, and the places grow back to what the file says.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub grows: bool,
    /// How long answers took on average before, in seconds; left out if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usual: Option<f64>,
}

/// An outage of an origin for whose end requests wait.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct GateOutage {
    /// For how long it has lasted, in seconds.
    pub lasts: f64,
    /// The longest wait of a request, as in the file, such as `5s`.
    pub hold: Plain,
    /// Why the origin was last not reached.
    pub error: Plain,
}

/// The gate of an origin in one second.
#[derive(Clone, Debug, Default, Serialize)]
pub struct GateSample {
    pub depth: u64,
    /// Requests that left it since the gateway started; `None` from an older gateway.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub departures: Option<u64>,
    /// In requests a second, or in units if there are costs; `None`: no pace.
    pub rate: FileAndNow<f64>,
    /// Whether requests may cost more than 1, so that the rate counts units.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub costs: bool,
    pub max_in_flight: FileAndNow<u64>,
    /// Rejections in this second, by reason; those without any are left out.
    pub rejected: BTreeMap<Plain, u64>,
    /// Seconds of this second in which any request waited, by cause; zeros are left out.
    pub blocked: BTreeMap<Plain, f64>,
    /// In seconds, as the one after it: of the requests that left in this second after a wait.
    pub wait_p50: Option<f64>,
    pub wait_p99: Option<f64>,
    /// Clients that left after they had waited here for a tenth of a second or longer.
    pub left: u64,
    /// How long half of these had waited at most, in seconds.
    pub left_after: Option<f64>,
    /// What is not as in the file for a while.
    #[serde(rename = "override", skip_serializing_if = "Option::is_none")]
    pub overridden: Option<GateOverride>,
    pub backing_off: Option<BackingOff>,
    pub outage: Option<GateOutage>,
    /// What the store refuses it; left out if nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<GateRefused>,
    /// Left out if gateways do not share its places, or this one was not told of them yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub places: Option<Places>,
    /// The classes that share the gate, in the order of the file.
    pub classes: Vec<GateClass>,
    /// The keys with the most waiting requests, deepest first.
    pub deepest: Vec<GateKeySample>,
    /// The network whose clients crowd a gate that keys do not share.
    #[serde(skip)]
    pub crowd: Option<Crowd>,
}

/// A key with requests that wait at a gate, in one second.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GateKeySample {
    pub key: Plain,
    /// Its plan; left out without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plain>,
    pub depth: u64,
}

/// The places of an origin that gateways share: its `max_in_flight` over all of them.
///
/// What the store counts is as this gateway was last told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Places {
    /// All places, as the store counts them.
    pub of: u64,
    /// Places that this gateway holds, and those of them in which a request runs.
    pub held: u64,
    pub in_use: u64,
    /// Places that gateways hold, as the store counts them.
    pub lent: u64,
    /// Places of gateways that vanished, which nobody gets yet. As the store counts them.
    pub withheld: u64,
    /// Places of which nobody has told Redis yet who has them, as the pool is new or its state was
    /// lost: for some 2.4 s. As the store counts them.
    pub unknown: u64,
    /// How long places of a gateway that vanishes stay withheld, as in the file, such as `75s`.
    pub orphan: Plain,
    /// Places that no gateway holds, as the store counts them.
    pub free: u64,
    /// Gateways that share the places, as the store counts them.
    pub gateways: u64,
    /// Whether the lease of this gateway has ended and Redis does not lend it any: then what the
    /// store counts is of before.
    pub alone: bool,
    /// Why it does not, and what helps; left out if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Plain>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<Plain>,
}
