//! Message by which a gateway reports its permits of a key to the store, and the reply.

use std::num::NonZeroU32;

/// Permits of a key, as a gateway reports them to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyPermitsCall {
    /// Number that increases over all calls of a gateway. The store ignores a late call.
    pub number: u64,
    /// Permits that the gateway uses, or was granted and keeps.
    ///
    /// The store counts them even if it has not granted them.
    pub has: usize,
    /// Permits that the gateway could use now or soon.
    pub requested: usize,
    /// Granted permits that go back, because other gateways wait.
    pub yields: usize,
    /// Whether requests wait for permits now, so that the gateway queues at the store.
    pub waits: bool,
    /// Maximum of all gateways together.
    pub maximum: NonZeroU32,
}

/// Reply of the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyPermitsReply {
    /// Permits of the gateway from now on.
    pub granted: usize,
    /// Permits of other gateways, including gateways that have vanished.
    pub others: usize,
    /// Permits of gateways that have vanished: they are not granted yet.
    pub withheld: usize,
    /// Whether other gateways wait for permits.
    pub others_wait: bool,
}
