//! All limits of a route, applied to one request.

mod pending;
mod several;
mod turns;
mod verdict;
mod wait;

use self::pending::JoinedLimit;
pub(super) use self::turns::{OccupiedPlaces, Turns};
pub(super) use self::verdict::{AppliedLimit, LimitOutcome};
pub(super) use self::wait::{Begun, begin, wait};
use crate::zone::Key;

/// How far a request is with the limits of its route.
#[derive(Debug, Default)]
pub(super) enum Limited<'r> {
    /// They were not asked yet.
    #[default]
    NotJoined,
    /// The request waits for its turn at its only limit. It is kept here, where the outcome will
    /// be: a waiting request has room for one of them.
    WaitingAtOne(JoinedLimit<'r>),
    /// The request waits for its turn at several limits: the zone of the first one, and its key
    /// there.
    WaitingAtSeveral(usize, Key),
    /// They have decided.
    Decided(LimitOutcome),
}

impl Limited<'_> {
    /// Returns the first zone that the request joined and its key there, while it waits.
    pub(super) fn waiting(&self) -> Option<(usize, &Key)> {
        match self {
            Self::WaitingAtOne(asked) => Some((asked.limit.zone, asked.joining.key()?)),
            Self::WaitingAtSeveral(zone, key) => Some((*zone, key)),
            Self::NotJoined | Self::Decided(_) => None,
        }
    }
}
