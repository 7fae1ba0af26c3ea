//! Sends the request of a leader to the origin while followers wait for its answer.
//!
//! A *leader* is a request whose answer other requests, its *followers*, wait for. `collector`
//! keeps the answer for them.

use std::pin::pin;

use super::super::admit::pass_gate;
use super::super::decision::{Admitted, Decision, Leading, Proceed};
use super::super::forward::Forward;
use super::super::gate::GateRequest;
use super::super::record::RequestRecord;
use super::super::reply::{Reply, send};
use super::collector::Collector;
use super::kind::preconditions;
use crate::gate::{Admission, ReservedPosition};
use crate::http::downstream::{Aborted, ClientStream, unless_disconnected};
use crate::observe::metrics::SharedOutcome;

/// Sends a leader to its origin, and the answer to its client and to all followers.
///
/// `client`: `None` if the answer only refreshes a stale one.
pub(in super::super) async fn lead<'w, 'r: 'w>(
    leading: Box<Leading<'r>>,
    client: Option<&'w mut dyn ClientStream>,
    record: &mut RequestRecord<'r>,
) -> Result<(), Aborted> {
    let Leading { before, leader } = *leading;
    let (worker, info) = (record.worker, record.info);
    let mut collector = Collector::new(client, leader, &worker.pacer);
    // Passes the gate of the origin.
    let passed: Decision<'r> = match before.gate {
        // There is no gate, so no permit of one.
        None => {
            let admitted = Admitted::new(before.to, None, before.admissions);
            Ok(Proceed::Admitted(admitted))
        }
        // The origin will not answer for a while. `report_held` returns whether the client can have
        // a stale answer at once: then the 503 below is not sent.
        Some(_) if will_answer_later(record, before.to.origin) && collector.report_held() => {
            let _used = before.admissions.take(before.to.route);
            record.count_shared(SharedOutcome::Stale, before.to.origin);
            Err(Reply::of_status(503))
        }
        Some(gate) => {
            // A new leader takes over the position of the previous one in the gate's queue.
            let reserved = collector.take_reserved();
            let join =
                |gate: &GateRequest<'r>, waited| match reserved.and_then(ReservedPosition::take) {
                    Some(waiting) => Ok(Admission::Waiting(waiting)),
                    None => gate.join(waited),
                };
            let passing = pin!(pass_gate(before.to, gate, before.admissions, record, join));
            let passed = unless_disconnected(&collector, passing).await;
            passed.map_err(|_disconnected| Aborted::ClientDisconnected)?
        }
    };
    // Sends the request. The collector shares the answer while it is forwarded.
    let (done, rejection) = match passed {
        Ok(Proceed::Admitted(admitted)) => {
            collector.note_departure(admitted.permit.as_deref());
            record.count_shared(record.shared, before.to.origin);
            let forward = Forward::new(admitted, &mut collector, record);
            (Box::pin(forward.run()).await, None)
        }
        Ok(Proceed::Leads(_)) => (Ok(()), None),
        Err(reply) => (Ok(()), Some(reply)),
    };
    // Releases the followers, unless they have their answer or were released before.
    collector.report_unanswered();
    if collector.is_refresh() {
        return Ok(());
    }
    if collector.is_cut_off() {
        return Err(Aborted::AnswerBroken);
    }
    let stale = collector.take_stale();
    if collector.has_lost_client() {
        if !ClientStream::has_begun(&collector) {
            record.note_disconnect();
        }
        return Err(Aborted::ClientDisconnected);
    }
    // The client gets a stale answer instead of the error.
    if let Some(stale) = stale {
        record.shared = SharedOutcome::Stale;
        let reply = Reply::shared(stale, &preconditions(info), worker.pacer.now());
        return send(reply, &mut collector, record).await;
    }
    match rejection {
        Some(reply) => {
            record.shared = SharedOutcome::Alone;
            send(reply, &mut collector, record).await
        }
        None => done,
    }
}

/// Returns whether the origin is out of reach and has `hold`, or has ordered a pause.
fn will_answer_later(record: &RequestRecord<'_>, origin: usize) -> bool {
    let origin = record.gateway.origin(origin);
    let Some(gate) = origin.gate() else {
        return false;
    };
    let is_unreachable = || gate.is_in_outage() || origin.check_in(record.now()).is_err();
    origin.settings().holds() && is_unreachable() || gate.is_ordered_to_pause()
}
