//! The decisions of [`limit`](crate::limit), made in Redis, so that many gateways share one bucket a key.
//!
//! A decision is one Lua script, so it is atomic, and on Redis's own clock, so gateways need not agree on the time. A batch
//! of joins is one round trip: a pipeline of scripts, called by their hashes. What a script found comes back, and
//! the functions of `limit` make the verdict of it, to the same wording and nanosecond as in memory.
//!
//! **Resolution.** Redis tells time in microseconds, so joins come at whole ones and `max_wait` is cut to whole ones;
//! all else is exact: levels are kept in the ticks of [`Rate`](crate::limit::Rate), in whole numbers below 2^53. A rate
//! which needs longer ones has no [`Pace`]. Rates of weeks with decimals are kept in coarser ticks where that loses nothing; a
//! retune to one of them rounds the level down to those, which is below a microsecond's worth.
//!
//! **The schedule.** Each accepted join of a leaky bucket gets a place on one schedule that all gateways share, with places one
//! interval apart, and is told its time. A gateway keeps its waiters in FIFO order and its times in order of time: the first
//! waiter takes the first time. So when a waiter leaves, each behind it takes the time of the one before, and the
//! **last** time is the one to [give back](Store::refund). If it is the schedule's last too, the schedule ends before it;
//! else the place is free, and the next join of any gateway gets it instead of one at the end. No time is handed out
//! twice. A place whose time has passed is not given back, as its departure has been spent; memory, which can move
//! everybody up, gives back more there.
//!
//! **The rate in force** is the one that a gateway's file has had last ([`Pace::new`]'s `since`). A join under an older one changes
//! nothing, goes by the rate in force and is told so. From when on is told too, in Redis's time: those who wait since before
//! then go on at `since + (due - since) * new interval / old interval`, which keeps all gateways in step.

mod answer;
mod client;
mod connection;
mod pace;
mod script;
mod standing;
mod url;

pub use answer::{Answer, Charge, InForce, Retuned};
pub use client::Store;
pub use pace::{Pace, Unkept};
pub use url::{BadUrl, Url};

use crate::limit::{Algorithm, Limit, Moment};

/// A request that asks for its verdict.
#[derive(Clone, Copy, Debug)]
pub struct Join<'a> {
    /// The zone's name and the key, as [`Store`] is to name it in Redis after its prefix.
    pub key: &'a [u8],
    /// How the zone counts.
    pub algorithm: Algorithm,
    /// The zone's rate in this gateway's file.
    pub pace: &'a Pace,
    /// What the route asks.
    pub limit: Limit,
    /// When it comes; `None`, as ever but in tests: now, on Redis's clock.
    pub at: Option<Moment>,
}

/// A charge that was not used and is given back.
#[derive(Clone, Copy, Debug)]
pub struct Refund<'a> {
    /// As in its [`Join`].
    pub key: &'a [u8],
    /// As in its [`Join`].
    pub algorithm: Algorithm,
    /// As in its [`Join`].
    pub pace: &'a Pace,
    /// From the join's [`Answer`].
    pub charge: Charge,
    /// As in [`Join`].
    pub at: Option<Moment>,
}

/// A new rate in this gateway's file, for a key at which some wait. Others learn it as they join.
#[derive(Clone, Copy, Debug)]
pub struct Retune<'a> {
    /// As in the [`Join`]s of those who wait.
    pub key: &'a [u8],
    /// The new rate.
    pub pace: &'a Pace,
}

/// Why the store decided nothing.
///
/// A join that was [late](Self::Late) may have been charged nevertheless; then its key is paced too slowly once, never too fast.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There is no connection, or it broke.
    #[error("cannot reach the store: {0}")]
    Unreachable(String),
    /// No answer came in time.
    #[error("the store did not answer in time")]
    Late,
    /// Redis takes no writes: memory is full, it is a replica or still loading, or it wants another password.
    #[error("the store takes no writes: {0}")]
    Unfit(String),
    /// Redis refused this one alone, such as where its key has another type.
    #[error("the store refused: {0}")]
    Refused(String),
    /// The answer is not one of the scripts'.
    #[error("the store's answer makes no sense")]
    Nonsense,
}

impl Error {
    /// Whether the store as a whole is out, and not one of its keys.
    #[must_use]
    pub fn is_outage(&self) -> bool {
        !matches!(self, Self::Refused(_))
    }
}
