//! Decision about a request, and its state on the way to the origin.
//!
//! `admit` makes the decision; `handler` acts on it. A request passes its *zones* (rate limits by
//! key), which return admissions, and then the *gate* (limit of its origin), which returns a
//! permit. A *leader* is a request whose answer other requests, its *followers*, wait for.

use std::pin::Pin;

use super::cost::UsedAdmissions;
use super::destination::Destination;
use super::gate::GateRequest;
use super::limits::{InFlightPermits, ZoneAdmissions};
use super::reply::Reply;
use crate::collapse::Leader;
use crate::gate::Permit;

/// Decision about a request: it continues to its origin, or gets this response.
pub(super) type Decision<'a> = Result<Proceed<'a>, Reply<'a>>;

/// Boxed future of a decision that takes time. Most requests need none.
pub(super) type BoxedDecision<'w, 'a> = Pin<Box<dyn Future<Output = Decision<'a>> + 'w>>;

/// A request that continues.
pub(super) enum Proceed<'a> {
    /// The request goes to its origin.
    Admitted(Admitted<'a>),
    /// The request leads: it joins the gate of its origin while followers wait for its answer.
    Leads(Box<Leading<'a>>),
}

/// A request that its zones have admitted, before the gate of its origin.
pub(super) struct BeforeGate<'a> {
    pub(super) to: Destination<'a>,
    /// The request at the gate; `None` if the origin has no gate. Boxed: most have none.
    pub(super) gate: Option<Box<GateRequest<'a>>>,
    /// Admissions of the zones.
    pub(super) admissions: ZoneAdmissions<'a>,
}

/// A leader before the gate of its origin.
pub(super) struct Leading<'a> {
    pub(super) before: BeforeGate<'a>,
    /// The leader's side towards its followers.
    pub(super) leader: Leader,
}

/// A request that may go to its origin.
pub(super) struct Admitted<'r> {
    pub(super) to: Destination<'r>,
    /// Permit of the gate; `None` if the origin has no gate. Boxed: most have none.
    pub(super) permit: Option<Box<Permit>>,
    /// Charges of the zones, if the response may change them.
    pub(super) used: UsedAdmissions<'r>,
    /// Permits (`in_flight`) that the request holds in its zones.
    pub(super) in_flight_permits: InFlightPermits<'r>,
}

impl<'a> Admitted<'a> {
    /// Uses the admissions of a request: their charges stay.
    pub(super) fn new(
        to: Destination<'a>,
        permit: Option<Box<Permit>>,
        admissions: ZoneAdmissions<'a>,
    ) -> Self {
        let (used, in_flight_permits) = admissions.take(to.route);
        Self {
            to,
            permit,
            used,
            in_flight_permits,
        }
    }
}
