use serde::Serialize;

use super::Plain;

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
