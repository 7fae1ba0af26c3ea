use super::cost::UsedTurns;
use super::limits::OccupiedPlaces;
use crate::config::Route;
use crate::gate::Place;

/// A request that may go to its origin.
pub(super) struct Admitted<'r> {
    pub(super) route: &'r Route,
    /// The index of the route's origin.
    pub(super) origin: usize,
    /// Its place at the origin; `None` if there is no gate.
    pub(super) place: Option<Place>,
    /// The turns that it has used in its zones.
    pub(super) used: UsedTurns<'r>,
    /// Its places among the running requests of its keys.
    pub(super) occupied: OccupiedPlaces<'r>,
}
