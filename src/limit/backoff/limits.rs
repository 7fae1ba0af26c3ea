use std::time::Duration;

use crate::Percent;

/// What the file says about backing off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackoffLimits {
    /// An answer is slow whose head comes later after the origin had the whole request. `None`: the number in flight is never cut.
    pub slow: Option<Duration>,
    /// The share of trouble in a window that cuts the rate.
    pub trip: Percent,
    /// The rate is never below this share of the file's.
    pub floor: Percent,
    /// The longest Retry-After that is obeyed.
    pub max_pause: Duration,
}
