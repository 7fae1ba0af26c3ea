//! Settings of a pool of permits, and the behaviour of a gateway that cannot reach the pool.
//!
//! A *permit* is the right to run one request at the origin. The pool leases permits to gateways.

use std::num::NonZeroU32;
use std::time::Duration;

/// Settings of a pool, from the file of a gateway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolLimits {
    /// Configured number of permits of all gateways together.
    pub permits: usize,
    /// Duration for which permits of a vanished gateway stay withheld: it may still use them.
    pub orphan: Duration,
    /// Behaviour without the pool.
    pub without: WithoutPool,
    /// Number of gateways, until the pool reports it.
    pub gateways: Option<NonZeroU32>,
}

/// Behaviour of a gateway whose lease has ended while the pool cannot be reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WithoutPool {
    /// The gateway takes an equal part of the permits, at least one.
    #[default]
    Local,
    /// The gateway starts no request.
    Closed,
}

impl WithoutPool {
    /// All values with their names in the file.
    pub const NAMED: [(&'static str, Self); 2] = [("local", Self::Local), ("closed", Self::Closed)];
}

/// Source of a gateway's permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PermitSource {
    /// The pool leases them.
    Pool,
    /// The gateway takes this number without the pool.
    Alone(usize),
}
