//! Admission of a request: it waits in its zones, for a shared answer, and at its origin's gate.
//!
//! The order is: `limits` (the zones), `collapse` (an answer of another request), `gate` (the
//! origin's gate). `room` comes before all of them. A *zone* limits the rate of each key; the
//! *gate* limits all requests to an origin. `decision` has the results.

use std::future::{Ready, ready};
use std::time::Duration;

use config::Route;
use futures_util::future::Either;

use super::arrive::{Arrival, NotArrived, pass_stages_after_room};
use super::decision::{Admitted, BeforeGate, BoxedDecision, Decision, Proceed};
use super::destination::Destination;
use super::gate::GateRequest;
use super::limits::{self, Begun, ZoneAdmissions};
use super::record::RequestRecord;
use super::reply::Reply;
use super::{collapse, room};
use crate::gate::{Admission, GateRejection, WaitError};

/// Decides whether a request that has arrived may go to its origin.
pub(super) fn admit<'w, 'a: 'w>(
    arrived: Result<Arrival<'a>, NotArrived<'a>>,
    record: &'w mut RequestRecord<'a>,
) -> impl Future<Output = Decision<'a>> + use<'w, 'a> {
    let Arrival { to, gate } = match arrived {
        Ok(arrival) => arrival,
        // The decision is already known: this response.
        Err(NotArrived::Reply(reply)) => return Either::Left(ready_or_boxed(Ok(Err(reply)))),
        Err(NotArrived::AtRoom(to)) => {
            return Either::Left(ready_or_boxed(Err(Box::pin(enter_room(to, record)))));
        }
    };
    match limits::begin(to.route, record.info, record) {
        Begun::Decided(admissions) => Either::Left(ready_or_boxed(pass_after_limits(
            to, gate, admissions, record,
        ))),
        // Not boxed: otherwise each waiting request would need one more allocation.
        Begun::Waiting(several) => Either::Right(async move {
            // This block ends before the second wait, so that its variables are not kept during it.
            let waiting = {
                let admissions = limits::wait(to.route, record.info, record, several).await;
                match pass_after_limits(to, gate, admissions, record) {
                    Ok(decision) => return decision,
                    Err(waiting) => waiting,
                }
            };
            waiting.await
        }),
    }
}

/// Waits in the waiting room of an origin, and then continues like [`admit`].
async fn enter_room<'w, 'a: 'w>(
    to: Destination<'a>,
    record: &'w mut RequestRecord<'a>,
) -> Decision<'a> {
    room::enter(record).await?;
    let arrived = pass_stages_after_room(to, record).map_err(NotArrived::Reply);
    admit(arrived, record).await
}

/// Returns the future of a decision that is already known (`Ok`), or that takes time (`Err`).
fn ready_or_boxed<'w, 'a>(
    decided: Result<Decision<'a>, BoxedDecision<'w, 'a>>,
) -> Either<Ready<Decision<'a>>, BoxedDecision<'w, 'a>> {
    match decided {
        Ok(decision) => Either::Left(ready(decision)),
        Err(waiting) => Either::Right(waiting),
    }
}

/// Decides about a request after its zones have decided.
///
/// Returns `Err` with a future if the request still has to wait: for a shared answer, or at the
/// gate of its origin.
#[inline]
fn pass_after_limits<'w, 'a: 'w>(
    to: Destination<'a>,
    gate: Option<Box<GateRequest<'a>>>,
    admissions: ZoneAdmissions<'a>,
    record: &'w mut RequestRecord<'a>,
) -> Result<Decision<'a>, BoxedDecision<'w, 'a>> {
    if let Some(reply) = reply_to_rejected(to.route, record) {
        return Ok(Err(reply));
    }
    if to.route.collapse.is_some() {
        let before_gate = BeforeGate {
            to,
            gate,
            admissions,
        };
        return collapse::share(before_gate, record);
    }
    let Some(gate) = gate else {
        // `None`: there is no gate, so no permit of one.
        return Ok(Ok(Proceed::Admitted(Admitted::new(to, None, admissions))));
    };
    let passing = pass_gate(to, gate, admissions, record, GateRequest::join);
    // Boxed: most origins have no gate, and a waiting request must be small.
    Err(Box::pin(passing))
}

/// Returns the response to a request that its zones rejected; `None` if they did not reject it.
fn reply_to_rejected<'a>(route: &'a Route, record: &RequestRecord<'_>) -> Option<Reply<'a>> {
    let outcome = record.outcome()?;
    let decisive = outcome.decisive();
    let retry_after = decisive.map(|verdict| verdict.prediction.one_more_in);
    // `rejected` is `None` if the zones did not reject the request.
    Some(Reply::rejected(route, outcome.rejected?, retry_after))
}

/// Waits at the gate of the request's origin. The request has already passed its zones.
///
/// `join` adds the request to the gate. Its second argument is the time that the request has waited
/// so far.
pub(super) fn pass_gate<'w, 'a: 'w>(
    to: Destination<'a>,
    gate: Box<GateRequest<'a>>,
    admissions: ZoneAdmissions<'a>,
    record: &'w mut RequestRecord<'a>,
    join: impl FnOnce(&GateRequest<'a>, Duration) -> Result<Admission, GateRejection> + 'w,
) -> impl Future<Output = Decision<'a>> + 'w {
    async move {
        let (worker, origin) = (record.worker, record.gateway.origin(to.origin));
        let waited = record.waited();
        let gate = gate.after_zones(&admissions, record.outcome());
        // While the origin is unavailable, only requests with `hold` wait for it.
        let available = origin.check_in(worker.pacer.now());
        // `begin_outage` returns `Ok` if requests are held: then this one waits at the gate.
        let passed = match available.or_else(|error| origin.begin_outage(error)) {
            Ok(()) => gate.pass(worker, waited, &mut record.at_gate, join).await,
            Err(error) => Err(WaitError::Outage(error)),
        };
        match passed {
            Ok(permit) => {
                let permit = Some(Box::new(permit));
                Ok(Proceed::Admitted(Admitted::new(to, permit, admissions)))
            }
            Err(WaitError::Outage(error)) => {
                // The charges of the zones stay.
                let _used = admissions.take(to.route);
                origin.log_unanswered(&error, worker.pacer.now());
                Err(Reply::unanswered(&error))
            }
            Err(WaitError::Rejected(rejection)) => {
                admissions.reject_elsewhere();
                Err(Reply::rejected_at_gate(to.route, &rejection))
            }
        }
    }
}
