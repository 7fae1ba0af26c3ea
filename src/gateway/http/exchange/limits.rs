//! All limits of a route, applied to one request.
//!
//! A limit is a zone with the burst and the waits that the route allows. A *zone* limits the rate
//! of each key: it admits a request at once, after a wait, or rejects it. To *join* a zone is to
//! ask it for admission.

mod admissions;
mod pending;
mod several;
mod verdict;
mod wait;

pub(super) use self::admissions::{InFlightPermits, ZoneAdmissions};
use self::pending::JoinedLimit;
pub(super) use self::verdict::{AppliedLimit, LimitOutcome};
pub(super) use self::wait::{Begun, begin, wait};
use crate::zone::Key;

/// Progress of a request with the limits of its route.
#[derive(Default)]
pub(super) enum Limited<'r> {
    /// No limit was joined yet.
    #[default]
    NotJoined,
    /// The request waits at its only limit.
    ///
    /// The join is stored here, where the outcome comes later: a waiting request reserves memory
    /// for only one of them.
    WaitingAtOne(JoinedLimit<'r>),
    /// The request waits at several limits. Index of the first zone, and the key there.
    WaitingAtSeveral(usize, Key),
    /// The limits have decided.
    Decided(LimitOutcome),
}

impl Limited<'_> {
    /// Returns the index of the first zone that the request waits in, and its key there.
    pub(super) fn waiting(&self) -> Option<(usize, &Key)> {
        match self {
            Self::WaitingAtOne(one) => Some((one.limit.zone, one.joining.key()?)),
            Self::WaitingAtSeveral(zone, key) => Some((*zone, key)),
            Self::NotJoined | Self::Decided(_) => None,
        }
    }
}
