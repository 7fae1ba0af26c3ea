use serde::{Deserialize, Serialize};

/// The places of an origin that gateways share: its `max_in_flight` over all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Places {
    /// All places, as the store counts them.
    pub of: u64,
    /// Places that this gateway holds, and those of them in which a request runs.
    pub held: u64,
    pub in_use: u64,
    /// Places of gateways that vanished, which nobody gets yet. As the store counts them.
    pub withheld: u64,
    /// Places that no gateway holds, as the store counts them.
    pub free: u64,
    /// Gateways that share the places, as the store counts them.
    pub gateways: u64,
}
