use std::time::Duration;

use super::{Moment, Rate};

/// What a route asks of a zone's bucket: nginx's `limit_req` parameters, judged request by request, so that
/// routes with different numbers share one bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// How far the level may rise above the steady rate, in requests.
    pub burst: u32,
    /// From which level on a request waits.
    pub delay: Delay,
    /// A request that would wait longer is rejected on arrival; `None`: it waits however long.
    pub max_wait: Option<Duration>,
}

/// From which level on an accepted request waits for its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Delay {
    /// A request that brings the level above this many requests waits until the level has leaked back to it.
    Above(u32),
    /// nginx's `nodelay`: whatever is accepted passes at once.
    Never,
}

/// A bucket's level, in requests, as people read it.
///
/// Bookkeeping is exact and done elsewhere, in ticks; this is its nearest floating-point number.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Default)]
pub struct Excess(f64);

impl Excess {
    #[allow(clippy::cast_precision_loss)]
    pub(super) fn from_ticks(ticks: i128, rate: Rate) -> Self {
        Self(ticks.max(0) as f64 / rate.ticks_per_request() as f64)
    }

    /// So many requests.
    pub(crate) fn of(requests: u32) -> Self {
        Self(requests.into())
    }

    /// The level with one request more.
    pub(crate) fn and_one(self) -> Self {
        Self(self.0 + 1.0)
    }

    /// The level in requests, never negative.
    #[must_use]
    pub fn requests(self) -> f64 {
        self.0
    }
}

/// What becomes of one request at one bucket.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// It goes on at once. `excess` is the level with it.
    Pass {
        /// The level with this request.
        excess: Excess,
    },
    /// It goes on at `until`, if nobody ahead of it leaves and the rate stays.
    Delay {
        /// When its turn comes.
        until: Moment,
        /// The level with this request.
        excess: Excess,
    },
    /// It is refused and nothing was charged.
    Reject(Refusal),
}

impl Verdict {
    /// The same verdict by another clock, which shows `here` when this one shows `there`.
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

/// Why a request was refused, and when it would not be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Refusal {
    /// What it ran into.
    pub reason: Reason,
    /// The level it would have made.
    pub excess: Excess,
    /// The first moment at which the same request would be accepted, if nobody else comes.
    pub retry_at: Moment,
}

/// What a refused request ran into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The level would have risen above `burst`.
    Burst,
    /// It would have waited longer than `max_wait`.
    MaxWait,
}
