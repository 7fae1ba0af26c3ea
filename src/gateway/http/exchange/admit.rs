//! A request waits for its turn: in its zones, for the answer of another one, at its origin's gate.

use std::future::{Ready, ready};
use std::time::Duration;

use config::Route;
use futures_util::future::Either;

use super::arrive::{Arrival, Stop, behind_room};
use super::gate::GateRequest;
use super::limits::{self, Begun, Turns};
use super::onward::{Admitted, BeforeGate, BoxedDecision, Decision, Destination, Onward};
use super::record::RequestRecord;
use super::reply::Reply;
use super::{collapse, room};
use crate::gate::{Admission, GateRejection, NoTurn};

/// Decides about a request that has arrived.
pub(super) fn admit<'w, 'a: 'w>(
    arrived: Result<Arrival<'a>, Stop<'a>>,
    record: &'w mut RequestRecord<'a>,
) -> impl Future<Output = Decision<'a>> + use<'w, 'a> {
    let Arrival { to, gate } = match arrived {
        Ok(arrival) => arrival,
        Err(Stop::Reply(reply)) => return Either::Left(known(Ok(Err(reply)))),
        Err(Stop::AtRoom(to)) => {
            return Either::Left(known(Err(Box::pin(enter_room(to, record)))));
        }
    };
    let mut turns = Turns::default();
    match limits::begin(to.route, record.info, record, &mut turns) {
        Begun::Decided => Either::Left(known(behind_limits(to, gate, turns, record))),
        // Not boxed: each request that waits for a turn would have a box more.
        Begun::Waiting(several) => Either::Right(async move {
            // What is not needed any more would be kept while it waits again.
            let waiting = {
                let turns = limits::wait(to.route, record.info, record, several).await;
                match behind_limits(to, gate, turns, record) {
                    Ok(decision) => return decision,
                    Err(waiting) => waiting,
                }
            };
            waiting.await
        }),
    }
}

/// Waits for the waiting room of an origin, and then goes on as [`admit`] does.
async fn enter_room<'w, 'a: 'w>(
    to: Destination<'a>,
    record: &'w mut RequestRecord<'a>,
) -> Decision<'a> {
    room::enter(record).await?;
    let arrived = behind_room(to, record).map_err(Stop::Reply);
    admit(arrived, record).await
}

/// The future of a decision that is there, or takes time.
fn known<'w, 'a>(
    decided: Result<Decision<'a>, BoxedDecision<'w, 'a>>,
) -> Either<Ready<Decision<'a>>, BoxedDecision<'w, 'a>> {
    match decided {
        Ok(decision) => Either::Left(ready(decision)),
        Err(waiting) => Either::Right(waiting),
    }
}

/// Decides about a request whose limits have decided, or lets it wait on: for the answer of another
/// one, or at the gate of its origin.
#[inline]
fn behind_limits<'w, 'a: 'w>(
    to: Destination<'a>,
    gate: Option<Box<GateRequest<'a>>>,
    turns: Turns<'a>,
    record: &'w mut RequestRecord<'a>,
) -> Result<Decision<'a>, BoxedDecision<'w, 'a>> {
    if let Some(reply) = rejected(to.route, record) {
        return Ok(Err(reply));
    }
    if to.route.collapse.is_some() {
        return collapse::share(BeforeGate { to, gate, turns }, record);
    }
    match gate {
        None => Ok(Ok(Onward::Admitted(Admitted::new(to, None, turns)))),
        // Boxed, because most origins have no gate.
        Some(gate) => Err(Box::pin(pass_gate(
            to,
            gate,
            turns,
            record,
            GateRequest::join,
        ))),
    }
}

/// Returns the response to a request that its limits rejected.
fn rejected<'a>(route: &'a Route, record: &RequestRecord<'_>) -> Option<Reply<'a>> {
    let outcome = record.outcome()?;
    let decisive = outcome.decisive();
    let retry_after = decisive.map(|verdict| verdict.outlook.one_more_in);
    Some(Reply::rejected(route, outcome.rejected?, retry_after))
}

/// Waits for the turn of a request at its origin's gate, once it has its turns in the zones.
///
/// `join`: how it joins the gate, given how long it has waited.
#[expect(
    clippy::manual_async_fn,
    reason = "an async fn keeps its arguments twice while it waits"
)]
pub(super) fn pass_gate<'w, 'a: 'w>(
    to: Destination<'a>,
    gate: Box<GateRequest<'a>>,
    turns: Turns<'a>,
    record: &'w mut RequestRecord<'a>,
    join: impl FnOnce(&GateRequest<'a>, Duration) -> Result<Admission, GateRejection> + 'w,
) -> impl Future<Output = Decision<'a>> + 'w {
    async move {
        let (worker, origin) = (record.worker, record.gateway.origin(to.origin));
        let waited = record.waited();
        let gate = gate.after(&turns, record.outcome());
        // Nobody waits for an origin that cannot be asked, unless it has `hold`.
        let any_in = origin.check_in(worker.pacer.now());
        let passed = match any_in.or_else(|error| origin.begin_outage(error)) {
            Ok(()) => gate.pass(worker, waited, &mut record.at_gate, join).await,
            Err(error) => Err(NoTurn::Outage(error)),
        };
        match passed {
            Ok(place) => {
                let place = Some(Box::new(place));
                Ok(Onward::Admitted(Admitted::new(to, place, turns)))
            }
            Err(NoTurn::Outage(error)) => {
                let _used = turns.take(to.route);
                origin.tell_unanswered(&error, worker.pacer.now());
                Err(Reply::unanswered(&error))
            }
            Err(NoTurn::Rejected(rejection)) => {
                turns.reject_elsewhere();
                Err(Reply::rejected_at_gate(to.route, &rejection))
            }
        }
    }
}
