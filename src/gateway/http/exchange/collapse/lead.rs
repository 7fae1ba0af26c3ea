//! A request goes to the origin while others wait for its answer.

use std::pin::{Pin, pin};

use super::super::admitted::{Admitted, Decision, Leading, Onward};
use super::super::forward::Forward;
use super::super::pass_gate::pass_gate;
use super::super::record::RequestRecord;
use super::super::reply::{Reply, send};
use super::super::request_info::RequestInfo;
use super::super::worker::Worker;
use super::collector::Collector;
use super::erased::AnyClient;
use super::kind::preconditions;
use crate::gate::{Admission, Reserved};
use crate::http::downstream::{Aborted, ClientStream, ConnectionContext, unless_gone};
use crate::observe::metrics::SharedOutcome;

/// Sends a request that leads to its origin, and its answer to the client and to all who wait.
///
/// Boxed: few requests lead. `client`: `None` if the answer is fetched behind a stale one.
pub(in super::super) fn lead<'w, 'r: 'w, C: ClientStream>(
    worker: &'w Worker,
    leading: Box<Leading<'r>>,
    info: &'w RequestInfo<'w>,
    context: &'w ConnectionContext,
    client: &'w mut C,
    record: &'w mut RequestRecord<'r>,
) -> Pin<Box<dyn Future<Output = Result<(), Aborted>> + 'w>> {
    Box::pin(lead_any(
        worker,
        leading,
        info,
        context,
        Some(client),
        record,
    ))
}

/// The same for a client of any protocol, or none.
pub(super) async fn lead_any<'w, 'r>(
    worker: &'w Worker,
    leading: Box<Leading<'r>>,
    info: &RequestInfo<'_>,
    context: &ConnectionContext,
    client: Option<&'w mut dyn AnyClient>,
    record: &mut RequestRecord<'r>,
) -> Result<(), Aborted> {
    let Leading { before, leader } = *leading;
    let mut collector = Collector::new(client, leader, &worker.pacer);
    let passed: Decision<'r> = match before.gate {
        None => {
            let admitted = Admitted::new(before.route, before.origin, None, before.turns);
            Ok(Onward::Admitted(admitted))
        }
        // The origin is known to answer nothing for a while, and a stale answer serves at once.
        Some(_) if answers_later(worker, record, before.origin) && collector.held() => {
            let _used = before.turns.take(before.route);
            record.count_shared(SharedOutcome::Stale, before.origin);
            Err(Reply::of_status(503))
        }
        Some(gate) => {
            let reserved = collector.take_reserved();
            let passing = pass_gate(
                worker,
                before.route,
                before.origin,
                gate,
                before.turns,
                record,
                |gate, waited| match reserved.and_then(Reserved::take) {
                    Some(waiting) => Ok(Admission::Waiting(waiting)),
                    None => gate.join(waited),
                },
            );
            let passing = pin!(passing);
            let passed = unless_gone(&collector, passing).await;
            passed.map_err(|_gone| Aborted::ClientGone)?
        }
    };
    let (done, rejection) = match passed {
        Ok(Onward::Admitted(admitted)) => {
            collector.departs(admitted.place.as_ref());
            record.count_shared(record.shared, before.origin);
            let forward = Forward::new(worker, admitted, info, context, &mut collector, record);
            (Box::pin(forward.run()).await, None)
        }
        Ok(Onward::Leads(_)) => (Ok(()), None),
        Err(reply) => (Ok(()), Some(reply)),
    };
    collector.fail();
    if collector.is_for_nobody() {
        return Ok(());
    }
    if collector.is_cut_off() {
        return Err(Aborted::AnswerBroken);
    }
    let stale = collector.take_stale();
    if collector.has_lost_client() {
        if !ClientStream::has_begun(&collector) {
            record.client_left();
        }
        return Err(Aborted::ClientGone);
    }
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

/// Whether requests wait at the gate until the origin can be reached again, or until the end of a pause that it ordered.
fn answers_later(worker: &Worker, record: &RequestRecord<'_>, origin: usize) -> bool {
    let origin = record.gateway.origin(origin);
    let Some(gate) = origin.gate() else {
        return false;
    };
    let is_out = || gate.is_in_outage() || origin.check_in(worker.pacer.now()).is_err();
    origin.settings().holds() && is_out() || gate.is_ordered_to_pause()
}
