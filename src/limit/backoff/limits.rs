//! The configured limits of a back-off, which lowers the load on an origin in trouble.
//!
//! *Trouble* is an answer that counts as a failure. Answers are counted in *windows* of 1 to 10
//! seconds. A *cut* lowers the rate, or the number of requests in flight. A *pause* stops all
//! departures.

use std::time::Duration;

use crate::Percent;

/// Configured limits of a back-off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackoffLimits {
    /// Time to an answer's head from which the answer is slow. `None`: never.
    ///
    /// The time starts when the origin has the whole request. Without a threshold, the number in
    /// flight is never cut.
    pub slow: Option<Duration>,
    /// Share of trouble in the answers of a window from which the rate is cut.
    pub trip: Percent,
    /// Lower bound of the rate, as a share of the configured rate.
    pub floor: Percent,
    /// Upper bound of a pause. A longer Retry-After is shortened to it.
    pub max_pause: Duration,
}
