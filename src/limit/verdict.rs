//! Verdicts on requests: pass, wait until an instant, or a rejection with its reason.
//!
//! The *level* of a bucket is the number of charged requests that have not leaked yet. A level is
//! exact in *ticks*, the unit of its [`Rate`].

use super::{Cost, Moment, Rate};

/// Level of a bucket in requests, for display.
///
/// nginx's name for the level. The exact level is in the bucket, in ticks. This is the nearest
/// floating-point number.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Default)]
pub struct Excess(f64);

impl Excess {
    /// Converts a level in ticks of `rate`. A negative level counts as zero.
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
    /// Converts the verdict to another clock.
    ///
    /// When this clock shows `there`, the other clock shows `here`.
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
    /// Part of the limit that the request exceeded.
    pub reason: Reason,
    /// Level that the request would have made.
    pub excess: Excess,
    /// First instant at which the same request would be accepted, if no other request comes.
    pub retry_at: Moment,
}

/// Part of the limit that a rejected request exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The level would have risen above `burst`.
    Burst,
    /// The request would have waited longer than `max_wait`.
    MaxWait,
    /// The permits of the key are in use, and its queue for them is full.
    InFlight,
}
