//! Types of the JSON of gates: what `/api/live` and the live page get of each, once a second.
//!
//! A *permit* is the right to run one request at the origin; a *slot* is an instant at which one
//! may leave for it; a *waiter* waits for both. The *store* is Redis, through which gateways share.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::gate::GateOverride;
use crate::observe::networks::Crowd;
use crate::status::plain::Plain;

/// Operation that the store refuses although it is up: the gate goes on alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct GateRefused {
    /// Refused operation.
    pub operation: RefusedOperation,
    /// Part of the rate or of the permits that the gate uses alone, from 0 to 1.
    pub part: f64,
    /// Reason.
    pub reason: Plain,
    /// Remedy.
    pub remedy: Plain,
}

/// Operation that gates sharing an origin request from the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusedOperation {
    /// Slots of the rate.
    #[default]
    Slots,
    /// Permits of the origin.
    Permits,
    /// Levels of the back-off of other gateways.
    Backoff,
}

/// Configured and effective value of a setting.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ConfiguredAndEffective<T> {
    /// Configured value.
    pub file: Option<T>,
    /// Effective value.
    pub now: Option<T>,
}

/// Class of traffic at a gate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GateClass {
    /// Name of the class.
    pub class: Plain,
    /// Weight of the class: its share of the slots relative to other classes.
    pub weight: u32,
    /// Number of waiters of the class.
    pub queue_depth: u64,
}

/// Reason why a gate lets less through than configured.
#[expect(clippy::struct_excessive_bools, reason = "each is a field of the API")]
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct BackingOff {
    /// Main reason: `trouble`, `slow` or `retry_after`.
    pub reason: Plain,
    /// All reasons as a sentence.
    pub text: Plain,
    /// Whether `mode = "shadow"` is set: the reduction is computed, not applied.
    pub shadow: bool,
    /// Whether nothing is lower than configured: with fewer at once, responses were as slow.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub kept: bool,
    /// Whether responses were as slow with fewer at once. Some permits may still be lower than
    /// configured.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub in_vain: bool,
    /// Whether responses are in time again, and the permits grow back to the configured number.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub grows: bool,
    /// Mean latency before the back-off, in seconds; left out if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usual: Option<f64>,
}

/// Outage of an origin whose requests wait for its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct GateOutage {
    /// Duration so far, in seconds.
    pub lasts: f64,
    /// Maximum wait of a request, as configured, such as `5s`.
    pub hold: Plain,
    /// Error of the last attempt to reach the origin.
    pub error: Plain,
}

/// Sample of an origin's gate for one second.
#[derive(Clone, Debug, Default, Serialize)]
pub struct GateSample {
    /// Number of waiters.
    pub depth: u64,
    /// Requests that departed since the gateway started.
    pub departures: u64,
    /// Rate, in requests a second, or in units if there are costs; `None`: no rate.
    pub rate: ConfiguredAndEffective<f64>,
    /// Whether requests may cost more than 1, so that the rate counts units.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub costs: bool,
    /// Maximum number of requests in flight; `None`: unbounded.
    pub max_in_flight: ConfiguredAndEffective<u64>,
    /// Rejections in this second, by reason, without zeros.
    pub rejected: BTreeMap<Plain, u64>,
    /// Seconds of this second in which any request waited, by cause, without zeros.
    pub blocked: BTreeMap<Plain, f64>,
    /// Median wait of the requests that departed in this second after a wait, in seconds.
    pub wait_p50: Option<f64>,
    /// 99th percentile of the same waits, in seconds.
    pub wait_p99: Option<f64>,
    /// Clients that disconnected after they had waited here for at least 0.1 s.
    pub left: u64,
    /// Median of the waits of these clients, in seconds.
    pub left_after: Option<f64>,
    /// Override in force.
    #[serde(rename = "override", skip_serializing_if = "Option::is_none")]
    pub overridden: Option<GateOverride>,
    /// Reason for a reduced rate or number of permits.
    pub backing_off: Option<BackingOff>,
    /// Outage of the origin, while requests wait for its end.
    pub outage: Option<GateOutage>,
    /// Refusal of the store; left out if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<GateRefused>,
    /// Shared permits. Left out if they are not shared, or not yet reported by the store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permits: Option<PermitsStatus>,
    /// Classes that share the gate, in the order of the file.
    pub classes: Vec<GateClass>,
    /// Keys with the most waiters, deepest first.
    pub deepest: Vec<GateKeySample>,
    /// Network whose clients crowd a gate without shares for keys.
    #[serde(skip)]
    pub crowd: Option<Crowd>,
}

/// Key with waiters at a gate, in one second.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GateKeySample {
    /// Name of the key.
    pub key: Plain,
    /// Plan of the key; left out without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plain>,
    /// Number of waiters of the key.
    pub depth: u64,
}

/// Permits of an origin that gateways share: its `max_in_flight` over all of them.
///
/// The store's counts are those of its last reply.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PermitsStatus {
    /// Total number of permits, as the store counts them.
    pub of: u64,
    /// Permits of this gateway.
    pub held: u64,
    /// Permits of this gateway in which a request runs.
    pub in_use: u64,
    /// Permits leased to gateways, as the store counts them.
    pub leased: u64,
    /// Permits of vanished gateways, which no gateway gets yet, as the store counts them.
    pub withheld: u64,
    /// Permits whose holders the store does not know yet, as the store counts them.
    ///
    /// The pool is new or its state was lost. This lasts some 2.4 s.
    pub unknown: u64,
    /// Duration for which a vanished gateway's permits stay withheld, as configured, such as `75s`.
    pub orphan: Plain,
    /// Permits that no gateway holds, as the store counts them.
    pub free: u64,
    /// Gateways that share the permits, as the store counts them.
    pub gateways: u64,
    /// Whether the lease of this gateway has expired and the store gives it no new one.
    ///
    /// Then the store's counts are out of date.
    pub alone: bool,
    /// Reason why the store gives no lease; left out if it gives one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Plain>,
    /// Remedy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<Plain>,
}
