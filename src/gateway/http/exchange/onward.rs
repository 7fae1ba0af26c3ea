//! How far a request is on its way to its origin.

use std::pin::Pin;

use config::Route;

use super::cost::UsedTurns;
use super::gate::GateRequest;
use super::limits::{OccupiedPlaces, Turns};
use super::reply::Reply;
use crate::collapse::Leader;
use crate::gate::Place;

/// What a request is to get: it goes on to its origin, or gets this response.
pub(super) type Decision<'a> = Result<Onward<'a>, Reply<'a>>;

/// A decision that takes time, in a box: most requests need none.
pub(super) type BoxedDecision<'w, 'a> = Pin<Box<dyn Future<Output = Decision<'a>> + 'w>>;

/// A request that goes on.
pub(super) enum Onward<'a> {
    /// To its origin.
    Admitted(Admitted<'a>),
    /// To the gate of its origin, while others wait for its answer.
    Leads(Box<Leading<'a>>),
}

/// A request with its turns in the zones, before the gate of its origin.
pub(super) struct BeforeGate<'a> {
    pub(super) to: Destination<'a>,
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
    pub(super) to: Destination<'r>,
    /// Its place at the origin, boxed, as most origins have no gate; `None` if there is none.
    pub(super) place: Option<Box<Place>>,
    /// The turns that it has used in its zones.
    pub(super) used: UsedTurns<'r>,
    /// Its places among the running requests of its keys.
    pub(super) occupied: OccupiedPlaces<'r>,
}

impl<'a> Admitted<'a> {
    /// Uses the turns of a request.
    pub(super) fn new(to: Destination<'a>, place: Option<Box<Place>>, turns: Turns<'a>) -> Self {
        let (used, occupied) = turns.take(to.route);
        Self {
            to,
            place,
            used,
            occupied,
        }
    }
}

/// The route of a request, and the index of the route's origin.
#[derive(Clone, Copy)]
pub(super) struct Destination<'a> {
    pub(super) route: &'a Route,
    pub(super) origin: usize,
}
