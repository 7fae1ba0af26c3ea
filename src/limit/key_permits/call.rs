//! Call: the message by which a gateway reports its permits of a key to the store. And its reply.
//!
//! A *permit* is the right to run one request of the key. Several gateways share a maximum of them.

use std::num::NonZeroU32;

/// Permits of a key, as a gateway reports them to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyPermitsCall {
    /// Number that increases over all calls of a gateway. The store ignores a call that arrives
    /// after a later one.
    pub number: u64,
    /// Number of permits that the gateway uses, or was granted and keeps.
    ///
    /// The store counts them even if it has not granted them.
    pub has: usize,
    /// Number of permits that the gateway could use now or soon.
    pub requested: usize,
    /// Number of granted permits that go back with this call, because other gateways wait.
    pub yields: usize,
    /// Whether requests wait for permits now. Then the store puts the gateway into its queue.
    pub waits: bool,
    /// Maximum of the permits of all gateways together.
    pub maximum: NonZeroU32,
}

/// Reply of the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyPermitsReply {
    /// Number of permits that the gateway has from now on.
    pub granted: usize,
    /// Number of permits of other gateways, including gateways that have vanished.
    pub others: usize,
    /// Number of permits of vanished gateways. The store does not grant them yet, because the
    /// requests of these gateways may still run.
    pub withheld: usize,
    /// Whether other gateways wait for permits.
    pub others_wait: bool,
}
