//! Destinations of requests that leave a queue, and requests that are still expected.

use std::num::NonZeroU16;

use super::{Cost, Moment};

/// Destination of requests after their departure. The caller assigns the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DestinationId(pub NonZeroU16);

/// Request that is still to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpectedRequest {
    /// Instant of its departure.
    pub due: Moment,
    /// Cost of the request.
    pub cost: Cost,
}
