use config::Route;
use limit::Moment;
use smallvec::SmallVec;

use super::super::cost::UsedTurns;
use crate::zone::{OccupiedPlace, Turn};

/// The turns that a request was given.
///
/// Those that are not used are given back when this is dropped.
#[derive(Debug, Default)]
pub(in super::super) struct Turns<'r>(pub(super) SmallVec<[Turn<'r>; 1]>);

impl<'r> Turns<'r> {
    pub(in super::super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// When the last of them was granted; not before `began`.
    pub(in super::super) fn granted_at(&self, began: Moment) -> Moment {
        let granted = self.0.iter().map(|turn| turn.grant().at);
        granted.fold(began, Moment::max)
    }

    /// Uses all turns: their charges stay, unless the answer on this route changes them.
    ///
    /// The request holds the returned places as long as it runs.
    pub(in super::super) fn take(mut self, route: &Route) -> (UsedTurns<'r>, OccupiedPlaces<'r>) {
        let used = if route.settles() {
            UsedTurns(self.0.iter().map(Turn::used).collect())
        } else {
            UsedTurns::default()
        };
        let occupied = self.0.iter_mut().filter_map(Turn::use_up).collect();
        (used, occupied)
    }

    /// Gives all turns back, because another zone or the origin's gate rejected the request.
    pub(in super::super) fn reject_elsewhere(self) {
        self.0.into_iter().for_each(Turn::reject_elsewhere);
    }
}

/// The places that a running request holds in its zones.
pub(in super::super) type OccupiedPlaces<'r> = Vec<OccupiedPlace<'r>>;
