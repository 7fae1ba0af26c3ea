//! Requests that leave the queue of a zone and then join the gate of an origin.
//!
//! When a process ends, it saves for each gate the requests that are still on the way to it.

use std::num::NonZeroU16;

use super::{Cost, Moment};

/// Number of the gate that a request joins after its departure. The caller assigns the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DestinationId(pub NonZeroU16);

/// Request that waits in a zone and will join the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpectedRequest {
    /// Instant at which it leaves the queue of the zone.
    pub due: Moment,
    /// Cost of the request.
    pub cost: Cost,
}
