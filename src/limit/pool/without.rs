use std::num::NonZeroU32;
use std::time::Duration;

/// What the file of a gateway says of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolLimits {
    /// The places of all gateways.
    pub most: usize,
    /// How long places of a gateway that vanished stay withheld.
    pub orphan: Duration,
    /// What the gateway does without the pool.
    pub without: WithoutPool,
    /// How many gateways there are, until the pool has told.
    pub gateways: Option<NonZeroU32>,
}

/// What a gateway does when its lease has ended and the pool cannot be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WithoutPool {
    /// It takes an equal part of the places, at least one.
    Local,
    /// It starts nothing.
    Closed,
}

impl WithoutPool {
    /// All values with their names in the file.
    pub const NAMED: [(&'static str, Self); 2] = [("local", Self::Local), ("closed", Self::Closed)];
}

/// How a gateway gets its places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Borrowing {
    /// From the pool.
    Pool,
    /// It takes so many without asking.
    Alone(usize),
}
