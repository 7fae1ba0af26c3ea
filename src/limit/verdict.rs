//! Limits of requests, and verdicts on them.

use std::num::NonZeroU32;
use std::time::Duration;

use super::{Cost, Moment, Rate};

/// Longest wait of an HTTP/2 request that waits above `burst` (`hold_streams`).
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
    /// Number of HTTP/2 requests that may wait above `burst` instead of being rejected.
    ///
    /// They raise the level above `burst`, where every other request is rejected. Only a leaky
    /// bucket has this room, and only [where requests wait](Self::ceiling).
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
    /// It decides as before, also for a key that has another rate.
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

/// Level of a bucket in requests, for display.
///
/// The exact level is kept in the bucket, in ticks. This is the nearest floating-point number.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Default)]
pub struct Excess(f64);

impl Excess {
    pub(super) fn from_ticks(ticks: i128, rate: Rate) -> Self {
        if ticks <= 0 {
            return Self::default();
        }
        Self(float(ticks) / float(rate.ticks_per_request()))
    }

    /// Returns a level of this many requests.
    pub fn of(requests: u32) -> Self {
        Self(requests.into())
    }

    /// Returns the level with one more request of this cost.
    #[must_use]
    pub fn plus(self, cost: Cost) -> Self {
        Self(self.0 + f64::from(cost.get()))
    }

    /// Returns the level in requests, never negative.
    pub fn requests(self) -> f64 {
        self.0
    }
}

/// Converts to the nearest floating-point number.
#[allow(clippy::cast_precision_loss)]
fn float(ticks: i128) -> f64 {
    // No processor converts 128 bits, and most numbers of ticks have fewer than 64.
    i64::try_from(ticks).map_or_else(|_| ticks as f64, |few| few as f64)
}

/// Verdict of one bucket on one request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// The request passes at once.
    Pass {
        /// Level with this request.
        excess: Excess,
    },
    /// The request passes at `until`, if no waiter ahead leaves and the rate stays the same.
    Delay {
        /// Departure of the request.
        until: Moment,
        /// Level with this request.
        excess: Excess,
    },
    /// The request is rejected. Nothing was charged.
    Reject(Refusal),
}

impl Verdict {
    /// Converts the verdict to another clock, which shows `here` when this clock shows `there`.
    #[must_use]
    pub fn on_clock(self, there: Moment, here: Moment) -> Self {
        match self {
            Self::Pass { .. } => self,
            Self::Delay { until, excess } => Self::Delay {
                until: until.on_clock(there, here),
                excess,
            },
            Self::Reject(refusal) => Self::Reject(Refusal {
                retry_at: refusal.retry_at.on_clock(there, here),
                ..refusal
            }),
        }
    }
}

/// Reason of a rejection, and the instant at which the request would be accepted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Refusal {
    /// Limit that the request exceeded.
    pub reason: Reason,
    /// Level that the request would have made.
    pub excess: Excess,
    /// First instant at which the same request would be accepted, if no other request comes.
    pub retry_at: Moment,
}

/// Limit that a rejected request exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The level would have risen above `burst`.
    Burst,
    /// The request would have waited longer than `max_wait`.
    MaxWait,
    /// The permits of the key are in use, and its queue for them is full.
    InFlight,
}
