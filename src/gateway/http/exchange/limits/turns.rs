//! Admissions of a request by its zones, until they are used or returned.

use config::Route;
use limit::Moment;
use smallvec::SmallVec;

use super::super::cost::UsedTurns;
use crate::zone::{OccupiedPlace, Turn};

/// Admissions of a request by its zones.
///
/// Dropping this returns the unused ones.
#[derive(Default)]
pub(in super::super) struct Turns<'r>(pub(super) SmallVec<[Turn<'r>; 1]>);

impl<'r> Turns<'r> {
    /// Returns whether no zone has admitted the request.
    pub(in super::super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the instant of the last admission; at least `began`.
    pub(in super::super) fn granted_at(&self, began: Moment) -> Moment {
        let granted = self.0.iter().map(|turn| turn.grant().at);
        granted.fold(began, Moment::max)
    }

    /// Uses all admissions. Their charges stay, unless the response on this route changes them.
    ///
    /// The request holds the returned permits until it ends.
    pub(in super::super) fn take(mut self, route: &Route) -> (UsedTurns<'r>, OccupiedPlaces<'r>) {
        let used = if route.settles() {
            UsedTurns(self.0.iter().map(Turn::used).collect())
        } else {
            UsedTurns::default()
        };
        let occupied = self.0.iter_mut().filter_map(Turn::use_up).collect();
        (used, occupied)
    }

    /// Returns all admissions, because another zone or the origin's gate rejected the request.
    pub(in super::super) fn reject_elsewhere(self) {
        self.0.into_iter().for_each(Turn::reject_elsewhere);
    }
}

/// Permits (`in_flight`) that a running request holds in its zones.
pub(in super::super) type OccupiedPlaces<'r> = Vec<OccupiedPlace<'r>>;
