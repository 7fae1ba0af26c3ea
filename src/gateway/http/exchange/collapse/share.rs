//! Collapse of one request: it leads, follows, gets a kept answer, or continues alone.
//!
//! A *leader* fetches an answer from the origin; *followers* wait for it. An answer is *kept* in
//! memory for a while, and is *stale* after that. Requests of the same *kind* may share an answer.

use std::sync::Arc;
use std::time::Duration;

use limit::Moment;
use tokio::time::timeout;

use super::super::admit::pass_gate;
use super::super::decision::{Admitted, BeforeGate, BoxedDecision, Decision, Leading, Proceed};
use super::super::gate::GateRequest;
use super::super::gate_progress::GateProgress;
use super::super::record::RequestRecord;
use super::super::reply::Reply;
use super::kind::{kind_of, preconditions};
use super::refresh;
use crate::collapse::{CollapseLookup, FollowResult, Follower, ReleasedTurn, SharedAnswer};
use crate::observe::metrics::{CollapseMetrics, SharedOutcome};
use crate::time::pacer::Pacer;

/// Decides how a request takes part in collapsing.
///
/// Returns `Err` with a future if the decision takes time.
pub(in super::super) fn share<'w, 'a: 'w>(
    before: BeforeGate<'a>,
    record: &'w mut RequestRecord<'a>,
) -> Result<Decision<'a>, BoxedDecision<'w, 'a>> {
    let (route, info) = (before.to.route, record.info);
    let shared = record.gateway.shared_answers();
    let Some((collapse, shared)) = route.collapse.as_ref().zip(shared) else {
        return continue_alone(before, record, None);
    };
    let Some(kind) = kind_of(collapse, route, info) else {
        return continue_alone(before, record, None);
    };
    let now = time_of_lookup(&before, record);
    let client = info.client.address;
    let lookup = shared.look_up(&kind.key, collapse, client, kind.may_lead, now);
    let (outcome, answer) = match lookup {
        CollapseLookup::Kept(answer) => (SharedOutcome::Kept, answer),
        CollapseLookup::Stale(answer, leader) => {
            if let Some(leader) = leader {
                refresh::start(record.worker, info, leader);
            }
            (SharedOutcome::Stale, answer)
        }
        CollapseLookup::Lead(leader) => {
            record.shared = SharedOutcome::Leader;
            let leading = Leading { before, leader };
            return Ok(Ok(Proceed::Leads(Box::new(leading))));
        }
        CollapseLookup::Follow(follower) => {
            return Err(Box::pin(follow(follower, before, record, now)));
        }
        CollapseLookup::Alone => return continue_alone(before, record, None),
    };
    Ok(Err(shared_reply(outcome, answer, before, record, now)))
}

/// Returns the current time. Avoids reading the clock if the request was just admitted.
fn time_of_lookup(before: &BeforeGate<'_>, record: &RequestRecord<'_>) -> Moment {
    if before.admissions.is_empty() {
        record.now()
    } else {
        before.admissions.granted_at(record.began)
    }
}

/// Lets a request continue alone.
///
/// `turn`: held by a former follower until it has joined the gate. Dropping it releases the next
/// follower.
fn continue_alone<'w, 'a: 'w>(
    before: BeforeGate<'a>,
    record: &'w mut RequestRecord<'a>,
    turn: Option<ReleasedTurn>,
) -> Result<Decision<'a>, BoxedDecision<'w, 'a>> {
    let (to, admissions) = (before.to, before.admissions);
    record.shared = SharedOutcome::Alone;
    let Some(gate) = before.gate else {
        record.count_shared(SharedOutcome::Alone, to.origin);
        return Ok(Ok(Proceed::Admitted(Admitted::new(to, None, admissions))));
    };
    let join = |gate: &GateRequest<'a>, waited| {
        let joined = gate.join(waited);
        // Releases the next follower, which must join the gate after this one.
        drop(turn);
        joined
    };
    Err(Box::pin(async move {
        let passed = pass_gate(to, gate, admissions, &mut *record, join).await;
        if passed.is_ok() {
            record.count_shared(SharedOutcome::Alone, to.origin);
        }
        passed
    }))
}

/// Returns the response to a request that gets a shared answer, and settles its charges.
fn shared_reply<'a>(
    outcome: SharedOutcome,
    answer: Arc<SharedAnswer>,
    before: BeforeGate<'a>,
    record: &mut RequestRecord<'a>,
    now: Moment,
) -> Reply<'a> {
    record.count_shared(outcome, before.to.origin);
    let route = before.to.route;
    let (mut used, _in_flight_permits) = before.admissions.take(route);
    record.settle(route, answer.head.status, answer.head.billed, &mut used);
    Reply::shared(answer, &preconditions(record.info), now)
}

/// Waits for the answer of the leader. `began`: start of the wait.
///
/// Not an `async fn`, which would store its arguments twice while it waits.
fn follow<'w, 'a: 'w>(
    mut follower: Follower,
    mut before: BeforeGate<'a>,
    record: &'w mut RequestRecord<'a>,
    began: Moment,
) -> impl Future<Output = Decision<'a>> + 'w {
    record.shared = SharedOutcome::Follower;
    async move {
        let worker = record.worker;
        let metrics = record.gateway.collapse_metrics(before.to.origin);
        // Counts this request as waiting until it is dropped.
        let waiting = metrics.map(CollapseMetrics::wait);
        let route = before.to.route;
        let follow_timeout = route.collapse.as_ref().map(|it| it.follow_timeout);
        let limit = route.follow_limit(follow_timeout.unwrap_or_default(), record.waited());
        let decision = wait_for_leader(&worker.pacer, &mut follower, &before, limit, began).await;
        let (now, departed) = (worker.pacer.now(), follower.departed());
        let span = now.since(began);
        drop((follower, waiting));
        if let Some(metrics) = metrics {
            metrics.waits.record(span);
        }
        let (outcome, answer) = match decision {
            Ok(Some(FollowResult::Answer(answer))) => (SharedOutcome::Follower, answer),
            Ok(Some(FollowResult::Stale(answer))) => (SharedOutcome::Stale, answer),
            Ok(Some(FollowResult::Lead(leader))) => {
                note_followed(&mut before, record, span, departed.is_none());
                record.shared = SharedOutcome::Leader;
                let leader = *leader;
                return Ok(Proceed::Leads(Box::new(Leading { before, leader })));
            }
            Ok(Some(FollowResult::Alone(turn))) => {
                return stop_following(before, record, span, departed, Some(turn)).await;
            }
            Err(FollowTimeout::AtOrigin) => {
                return stop_following(before, record, span, departed, None).await;
            }
            // The process is ending.
            Ok(None) => return Err(Reply::of_status(503)),
            Err(FollowTimeout::AtGate) => return Err(reject_follower(span, before, record)),
        };
        Err(shared_reply(outcome, answer, before, record, now))
    }
}

/// Lets a request continue alone after it followed for `span`.
///
/// `departed`: instant at which its leader departed to the origin. Boxed: few requests get here.
fn stop_following<'w, 'a: 'w>(
    mut before: BeforeGate<'a>,
    record: &'w mut RequestRecord<'a>,
    span: Duration,
    departed: Option<Moment>,
    turn: Option<ReleasedTurn>,
) -> BoxedDecision<'w, 'a> {
    note_followed(&mut before, record, span, departed.is_none());
    match continue_alone(before, record, turn) {
        Ok(decision) => Box::pin(std::future::ready(decision)),
        Err(passing) => passing,
    }
}

/// Notes the time that the request spent as a follower.
///
/// `in_queue`: its leader waited at the gate, so the time counts as time in the gate's queue.
fn note_followed(
    before: &mut BeforeGate<'_>,
    record: &mut RequestRecord<'_>,
    span: Duration,
    in_queue: bool,
) {
    if let Some(gate) = &mut before.gate {
        gate.note_followed(span, in_queue);
        // Only an origin with `hold` needs this time later, after the gate.
        if record.gateway.origin(before.to.origin).settings().holds() {
            record.note_time_as_follower(span);
        }
    }
}

/// Timeout that ends the wait of a follower.
enum FollowTimeout {
    /// The leader did not pass the gate in time: the follower is rejected, as the gate would do.
    AtGate,
    /// The leader had no complete answer in time: the follower continues alone.
    AtOrigin,
}

/// Waits until the leader has an answer or has failed. `began`: start of the wait.
///
/// While the leader waits at the gate, a follower waits at most as long as a request may wait
/// there. Once a leader has departed, the follower waits at most for `limit`, even if several
/// leaders follow one another.
async fn wait_for_leader(
    pacer: &Pacer,
    follower: &mut Follower,
    before: &BeforeGate<'_>,
    limit: Duration,
    began: Moment,
) -> Result<Option<FollowResult>, FollowTimeout> {
    let limit_at_gate = before.gate.as_ref().map(|gate| gate.follow_limit());
    let mut first_departed = None;
    loop {
        let now = pacer.now();
        let departed = follower.departed();
        // Kept while the leader has departed, also if another one follows at once. `None` again
        // while the current leader has not departed.
        first_departed = departed.and(first_departed.or(departed));
        let until = match (first_departed, limit_at_gate) {
            (None, Some(limit_at_gate)) => began + limit_at_gate,
            // Counted from the departure or from the start of this wait, whichever is later.
            (departed, _) => departed.unwrap_or(began).max(began) + limit,
        };
        if now < until {
            // The step is limited, so the departure of the leader is noticed in time.
            let step = until.since(now).min(limit);
            match timeout(step, &mut *follower).await {
                Ok(decision) => return Ok(decision),
                Err(_) => continue,
            }
        }
        if departed.is_none() && limit_at_gate.is_some() {
            return Err(FollowTimeout::AtGate);
        }
        let collapse = before.to.route.collapse.as_ref();
        let follow_timeout = collapse.map_or(limit, |it| it.follow_timeout);
        // An answer that may never end releases all followers, one after the other.
        if follower.give_up(follow_timeout, now) {
            return Ok(follower.await);
        }
        return Err(FollowTimeout::AtOrigin);
    }
}

/// Returns the response to a follower whose leader did not pass the gate in time.
fn reject_follower<'a>(
    span: Duration,
    before: BeforeGate<'a>,
    record: &mut RequestRecord<'a>,
) -> Reply<'a> {
    let route = before.to.route;
    before.admissions.reject_elsewhere();
    let Some(gate) = before.gate else {
        return Reply::of_status(503);
    };
    let rejection = gate.reject_follower();
    record.shared = SharedOutcome::Alone;
    record.at_gate = Some(GateProgress::rejected_after(span, rejection));
    Reply::rejected_at_gate(route, &rejection)
}
