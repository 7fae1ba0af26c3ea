use std::num::NonZeroU32;

/// What a gateway tells the store of its places of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyPlacesCall {
    /// Counts up over all calls of a gateway. The store does nothing for one that comes late.
    pub number: u64,
    /// How many it uses, or was granted and goes on with. They count whatever the store knows.
    pub has: usize,
    /// How many it would use.
    pub wanted: usize,
    /// How many of those that it was granted go back, because others wait.
    pub yields: usize,
    /// Whether requests wait for places now, so that the gateway stands in the line.
    pub waits: bool,
    /// The most of all gateways together.
    pub most: NonZeroU32,
}

/// What the store replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyPlacesReply {
    /// How many the gateway has from now on.
    pub granted: usize,
    /// How many the others have, those of gateways that vanished included.
    pub others: usize,
    /// How many of these are of gateways that have vanished: nobody gets them yet.
    pub withheld: usize,
    /// Whether others wait for places.
    pub others_wait: bool,
}
