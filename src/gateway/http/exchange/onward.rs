//! Decision about a request, and its state on the way to the origin.
//!
//! `admit` makes the decision; `handler` acts on it.

use std::pin::Pin;

use super::cost::UsedTurns;
use super::destination::Destination;
use super::gate::GateRequest;
use super::limits::{OccupiedPlaces, Turns};
use super::reply::Reply;
use crate::collapse::Leader;
use crate::gate::Place;

/// Decision about a request: it continues to its origin, or gets this response.
pub(super) type Decision<'a> = Result<Onward<'a>, Reply<'a>>;

/// Boxed future of a decision that takes time. Most requests need none.
pub(super) type BoxedDecision<'w, 'a> = Pin<Box<dyn Future<Output = Decision<'a>> + 'w>>;

/// A request that continues.
pub(super) enum Onward<'a> {
    /// The request goes to its origin.
    Admitted(Admitted<'a>),
    /// The request leads: it joins the gate of its origin while followers wait for its answer.
    Leads(Box<Leading<'a>>),
}

/// A request that its zones have admitted, before the gate of its origin.
pub(super) struct BeforeGate<'a> {
    pub(super) to: Destination<'a>,
    /// Boxed: most origins have no gate.
    pub(super) gate: Option<Box<GateRequest<'a>>>,
    /// Admissions of the zones.
    pub(super) turns: Turns<'a>,
}

/// A leader before the gate of its origin.
pub(super) struct Leading<'a> {
    pub(super) before: BeforeGate<'a>,
    pub(super) leader: Leader,
}

/// A request that may go to its origin.
pub(super) struct Admitted<'r> {
    pub(super) to: Destination<'r>,
    /// Permit of the gate, boxed, as most origins have no gate; `None` if there is none.
    pub(super) place: Option<Box<Place>>,
    /// Charges of its zones, if the response may change them.
    pub(super) used: UsedTurns<'r>,
    /// Permits (`in_flight`) that the request holds in its zones.
    pub(super) occupied: OccupiedPlaces<'r>,
}

impl<'a> Admitted<'a> {
    /// Uses the admissions of a request.
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
