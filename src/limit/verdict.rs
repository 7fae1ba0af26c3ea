use std::num::NonZeroU32;
use std::time::Duration;

use super::{Cost, Moment, Rate};

/// The longest wait of a request that is held back where `burst` has no room left.
pub const MAX_WAIT_ABOVE_BURST: Duration = Duration::from_secs(60);

/// A route's limit as it applies to one request: nginx's `limit_req` parameters, and a cost.
///
/// Routes with different numbers can share one bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// How far the level may rise above the steady rate, in requests.
    pub burst: u32,
    /// The level above which a request waits.
    pub delay: Delay,
    /// A request that would wait longer is rejected on arrival. `None` means no limit.
    pub max_wait: Option<Duration>,
    /// What the request counts for.
    pub cost: Cost,
    /// How many requests of the key may run at the same time; `None` means no limit.
    ///
    /// A bucket alone does not look at it: see [`Places`](super::Places).
    pub in_flight: Option<NonZeroU32>,
    /// How many more requests may wait above `burst`: those that are held back, not refused.
    ///
    /// They raise the level above `burst`, where every other request is refused. Only a leaky
    /// bucket has such places, and only [where requests wait](Self::ceiling).
    pub above_burst: u32,
}

impl Limit {
    /// A limit that no request exceeds: the cost is charged whatever the level.
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

    /// Whether it is [`unlimited`](Self::unlimited).
    pub fn is_unlimited(&self) -> bool {
        self.burst == u32::MAX
    }

    /// How far the level may rise with a request of this limit, at this rate of its key.
    ///
    /// A limit holds requests only where it makes others wait, that is where `burst` is above
    /// `delay`, and none that would wait longer than [`MAX_WAIT_ABOVE_BURST`].
    pub fn ceiling(&self, rate: Rate) -> u32 {
        let delay = match self.delay {
            Delay::Above(delay) if self.above_burst > 0 && delay < self.burst => delay,
            _ => return self.burst,
        };
        let in_time = if rate.is_unlimited() {
            u32::MAX
        } else {
            u32::try_from(rate.count_in(MAX_WAIT_ABOVE_BURST)).unwrap_or(u32::MAX)
        };
        let held = self.burst.saturating_add(self.above_burst);
        held.min(delay.saturating_add(in_time)).max(self.burst)
    }

    /// The same limit with its places for held requests counted into `burst`, at this rate.
    ///
    /// It decides as before, also for a key whose rate is another one.
    #[must_use]
    pub fn with_ceiling_at(self, rate: Rate) -> Self {
        Self {
            burst: self.ceiling(rate),
            above_burst: 0,
            ..self
        }
    }

    /// The same limit with places for so many requests that are held back.
    #[must_use]
    pub fn with_above_burst(self, above_burst: u32) -> Self {
        Self {
            above_burst,
            ..self
        }
    }

    /// The same limit for a request of cost 1.
    #[must_use]
    pub fn for_one(self) -> Self {
        Self {
            cost: Cost::ONE,
            ..self
        }
    }
}

/// The level above which an accepted request waits for its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Delay {
    /// A request that raises the level above this number of requests waits.
    ///
    /// It waits until the level has leaked back to this number.
    Above(u32),
    /// nginx's `nodelay`: every accepted request passes at once.
    Never,
}

/// A bucket's level in requests, for display.
///
/// The exact level is kept elsewhere in ticks. This is the nearest floating-point number.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Default)]
pub struct Excess(f64);

impl Excess {
    pub(super) fn from_ticks(ticks: i128, rate: Rate) -> Self {
        if ticks <= 0 {
            return Self::default();
        }
        Self(float(ticks) / float(rate.ticks_per_request()))
    }

    /// A level of this many requests.
    pub fn of(requests: u32) -> Self {
        Self(requests.into())
    }

    /// The level with one more request of this cost.
    #[must_use]
    pub fn and(self, cost: Cost) -> Self {
        Self(self.0 + f64::from(cost.get()))
    }

    /// The level in requests, never negative.
    pub fn requests(self) -> f64 {
        self.0
    }
}

/// The nearest floating-point number.
#[allow(clippy::cast_precision_loss)]
fn float(ticks: i128) -> f64 {
    // No processor converts 128 bits, and most numbers of ticks have fewer than 64.
    i64::try_from(ticks).map_or_else(|_| ticks as f64, |few| few as f64)
}

/// The decision about one request at one bucket.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// The request goes on at once. `excess` is the level with it.
    Pass {
        /// The level with this request.
        excess: Excess,
    },
    /// The request goes on at `until`, if no waiter ahead leaves and the rate stays the same.
    Delay {
        /// When the request's turn comes.
        until: Moment,
        /// The level with this request.
        excess: Excess,
    },
    /// The request is refused. Nothing was charged.
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

/// Why a request was refused, and when it would be accepted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Refusal {
    /// The limit that the request exceeded.
    pub reason: Reason,
    /// The level that the request would have made.
    pub excess: Excess,
    /// The first moment at which the same request would be accepted, if no other request comes.
    pub retry_at: Moment,
}

/// The limit that a refused request exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The level would have risen above `burst`.
    Burst,
    /// The request would have waited longer than `max_wait`.
    MaxWait,
    /// As many requests of the key run as may, and as many wait as may.
    InFlight,
}
