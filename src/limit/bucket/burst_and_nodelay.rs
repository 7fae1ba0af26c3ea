//! Where `burst`, `delay`, `nodelay` and `max_wait` of a limit take effect: levels of the bucket.
//!
//! The *level* is the number of charged requests that have not leaked yet, in *ticks* of the
//! [`Rate`]. With `nodelay` ([`Delay::Never`]), a request passes at once at any level up to
//! `burst`. With `delay=n` ([`Delay::Above`]), a request waits if the level with it is above `n`.

use super::ticks_in;
use crate::{Delay, Limit, Rate};

/// Thresholds of a limit, in ticks of the level after a request of cost 1.
pub(super) struct Thresholds {
    /// Highest level at which a request does not wait. With `nodelay`, no level is higher.
    pub(super) free: i128,
    /// Highest level at which a request is accepted: within `burst` and `max_wait`.
    pub(super) accepted: i128,
}

impl Thresholds {
    /// Returns the thresholds for a request of this limit's cost.
    ///
    /// The whole cost must stay within `burst`: a cost above 1 leaves less of it.
    pub(super) fn new(rate: Rate, limit: Limit) -> Self {
        let request = rate.ticks_per_request();
        let free = match limit.delay {
            Delay::Never => i128::MAX,
            Delay::Above(delay) => i128::from(delay) * request,
        };
        let max_wait = limit.max_wait.map_or(i128::MAX, |max| ticks_in(rate, max));
        let burst = i128::from(limit.ceiling(rate)) - i128::from(limit.cost.above_one());
        let accepted = (burst * request).min(free.saturating_add(max_wait));
        Self { free, accepted }
    }
}
