//! A request passes the gate of its origin.

use std::time::Duration;

use super::destination::Destination;
use super::gate::GateRequest;
use super::limits::Turns;
use super::onward::{Admitted, Decision, Onward};
use super::record::RequestRecord;
use super::reply::Reply;
use crate::gate::{Admission, GateRejection, NoTurn};

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
            Ok(place) => Ok(Onward::Admitted(Admitted::new(
                to,
                Some(Box::new(place)),
                turns,
            ))),
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
