//! Limit of a request: the parameters of nginx's `limit_req`, and more.
//!
//! `burst` bounds the *level* of a bucket: the charged requests that have not leaked yet. [`Delay`]
//! says from which level on requests wait, or that they never wait (`nodelay`). [`Bucket`] applies
//! them: see `bucket/burst_and_nodelay.rs`.
//!
//! [`Bucket`]: super::Bucket

use std::num::NonZeroU32;
use std::time::Duration;

use super::{Cost, Rate};

/// Longest wait of an HTTP/2 request that waits above `burst`: see [`Limit::above_burst`].
pub const MAX_WAIT_ABOVE_BURST: Duration = Duration::from_secs(60);

/// Limit of a route for one request: nginx's `limit_req` parameters, and a cost.
///
/// Routes with different numbers can share one bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Level above the steady rate up to which requests are accepted, in requests.
    pub burst: u32,
    /// Level above which a request waits.
    pub delay: Delay,
    /// Longest wait; a request that would wait longer is rejected on arrival. `None`: no limit.
    pub max_wait: Option<Duration>,
    /// Cost of the request.
    pub cost: Cost,
    /// Number of requests of the key that may run at the same time; `None`: no limit.
    ///
    /// A bucket alone ignores it: see [`Permits`](super::Permits).
    pub in_flight: Option<NonZeroU32>,
    /// Number of HTTP/2 requests that may wait above `burst` instead of being rejected
    /// (`hold_streams` in the file).
    ///
    /// They raise the level above `burst`, where every other request is rejected. This applies only
    /// to a leaky bucket, and only [where requests wait](Self::ceiling).
    pub above_burst: u32,
}

impl Limit {
    /// Returns a limit that no request exceeds: the cost is charged at any level.
    pub fn unlimited(delay: Delay, cost: Cost) -> Self {
        Self {
            burst: u32::MAX,
            delay,
            max_wait: None,
            cost,
            in_flight: None,
            above_burst: 0,
        }
    }

    /// Returns whether it is [`unlimited`](Self::unlimited).
    pub fn is_unlimited(&self) -> bool {
        self.burst == u32::MAX
    }

    /// Returns the highest level after a request of this limit, at this rate of its key.
    ///
    /// HTTP/2 requests may exceed `burst` only where requests wait, that is where `burst` is
    /// above `delay`. They may not wait longer than [`MAX_WAIT_ABOVE_BURST`].
    pub fn ceiling(&self, rate: Rate) -> u32 {
        let delay = match self.delay {
            Delay::Above(delay) if self.above_burst > 0 && delay < self.burst => delay,
            _ => return self.burst,
        };
        let max_waiters = if rate.is_unlimited() {
            u32::MAX
        } else {
            u32::try_from(rate.count_in(MAX_WAIT_ABOVE_BURST)).unwrap_or(u32::MAX)
        };
        let ceiling = self.burst.saturating_add(self.above_burst);
        let highest = delay.saturating_add(max_waiters);
        ceiling.min(highest).max(self.burst)
    }

    /// Returns the same limit with `above_burst` included in `burst`, at this rate.
    ///
    /// At this rate both limits give the same verdicts. The result no longer depends on the rate.
    #[must_use]
    pub fn with_ceiling_at(self, rate: Rate) -> Self {
        Self {
            burst: self.ceiling(rate),
            above_burst: 0,
            ..self
        }
    }

    /// Returns the same limit with room for `above_burst` HTTP/2 requests above `burst`.
    #[must_use]
    pub fn with_above_burst(self, above_burst: u32) -> Self {
        Self {
            above_burst,
            ..self
        }
    }

    /// Returns the same limit for a request of cost 1.
    #[must_use]
    pub fn for_one(self) -> Self {
        Self {
            cost: Cost::ONE,
            ..self
        }
    }
}

/// Level above which an accepted request waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Delay {
    /// A request that raises the level above this number of requests waits.
    ///
    /// It waits until the level has leaked back to this number.
    Above(u32),
    /// nginx's `nodelay`: every accepted request passes at once.
    Never,
}
