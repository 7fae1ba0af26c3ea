//! How far a request is on its way to its origin.

use config::Route;

use super::cost::UsedTurns;
use super::gate::GateRequest;
use super::limits::{OccupiedPlaces, Turns};
use super::reply::Reply;
use crate::collapse::Leader;
use crate::gate::Place;

/// What a request is to get: it goes on to its origin, or gets this response.
pub(super) type Decision<'a> = Result<Onward<'a>, Reply<'a>>;

/// A request that goes on.
pub(super) enum Onward<'a> {
    /// To its origin.
    Admitted(Admitted<'a>),
    /// To the gate of its origin, while others wait for its answer.
    Leads(Box<Leading<'a>>),
}

/// A request with its turns in the zones, before the gate of its origin.
pub(super) struct BeforeGate<'a> {
    pub(super) route: &'a Route,
    /// The index of the route's origin.
    pub(super) origin: usize,
    /// Boxed: most origins have no gate.
    pub(super) gate: Option<Box<GateRequest<'a>>>,
    pub(super) turns: Turns<'a>,
}

/// A request whose answer others wait for, before the gate of its origin.
pub(super) struct Leading<'a> {
    pub(super) before: BeforeGate<'a>,
    pub(super) leader: Leader,
}

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

impl<'a> Admitted<'a> {
    /// Uses the turns of a request.
    pub(super) fn new(
        route: &'a Route,
        origin: usize,
        place: Option<Place>,
        turns: Turns<'a>,
    ) -> Self {
        let (used, occupied) = turns.take(route);
        Self {
            route,
            origin,
            place,
            used,
            occupied,
        }
    }
}
