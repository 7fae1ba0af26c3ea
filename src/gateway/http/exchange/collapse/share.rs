//! What a request does that may share the answer of others.

use std::sync::Arc;
use std::time::Duration;

use limit::Moment;
use tokio::time::timeout;

use super::super::admit::pass_gate;
use super::super::gate::GateRequest;
use super::super::onward::{Admitted, BeforeGate, BoxedDecision, Decision, Leading, Onward};
use super::super::record::RequestRecord;
use super::super::reply::Reply;
use super::kind::{kind, preconditions};
use super::refresh;
use crate::collapse::{Followed, Follower, Preconditions, Release, Share, SharedAnswer};
use crate::observe::metrics::{CollapseMetrics, SharedOutcome};
use crate::time::pacer::Pacer;

/// Lets a request lead, follow, or go on for itself, or gives it an answer from memory.
///
/// Returns `Err` with the future of the decision if that takes time.
pub(in super::super) fn share<'w, 'a: 'w>(
    before: BeforeGate<'a>,
    record: &'w mut RequestRecord<'a>,
) -> Result<Decision<'a>, BoxedDecision<'w, 'a>> {
    let (route, info) = (before.to.route, record.info);
    let shared = record.gateway.shared_answers();
    let collapse = route.collapse.as_ref().zip(shared);
    let kind = collapse.and_then(|(collapse, shared)| {
        let kind = kind(collapse, route, info)?;
        Some((collapse, shared, kind))
    });
    let Some((collapse, shared, kind)) = kind else {
        return alone(before, record, None);
    };
    let now = asked_at(&before, record);
    let client = info.client.address;
    match shared.ask(&kind.key, collapse, client, kind.may_lead(), now) {
        Share::Kept(answer) => {
            let kept = SharedOutcome::Kept;
            let asked = kind.preconditions(info);
            Ok(Err(answered(kept, answer, &asked, before, record, now)))
        }
        Share::Stale(answer, leader) => {
            if let Some(leader) = leader {
                refresh::start(record.worker, info, leader);
            }
            let stale = SharedOutcome::Stale;
            let asked = kind.preconditions(info);
            Ok(Err(answered(stale, answer, &asked, before, record, now)))
        }
        Share::Lead(leader) => {
            record.shared = SharedOutcome::Leader;
            let leading = Leading { before, leader };
            Ok(Ok(Onward::Leads(Box::new(leading))))
        }
        Share::Follow(follower) => Err(Box::pin(follow(follower, before, record, now))),
        Share::Alone => alone(before, record, None),
    }
}

/// The present moment. The clock is not read again for a request that just had its turns.
fn asked_at(before: &BeforeGate<'_>, record: &RequestRecord<'_>) -> Moment {
    if before.turns.is_empty() {
        record.now()
    } else {
        before.turns.granted_at(record.began)
    }
}

/// A request goes on for itself. `release`: the turn of one that followed to join the gate.
fn alone<'w, 'a: 'w>(
    before: BeforeGate<'a>,
    record: &'w mut RequestRecord<'a>,
    release: Option<Release>,
) -> Result<Decision<'a>, BoxedDecision<'w, 'a>> {
    let BeforeGate { to, gate, turns } = before;
    record.shared = SharedOutcome::Alone;
    let Some(gate) = gate else {
        record.count_shared(SharedOutcome::Alone, to.origin);
        return Ok(Ok(Onward::Admitted(Admitted::new(to, None, turns))));
    };
    let join = |gate: &GateRequest<'a>, waited| {
        let joined = gate.join(waited);
        // The one behind it joins behind it.
        drop(release);
        joined
    };
    Err(Box::pin(async move {
        let passed = pass_gate(to, gate, turns, &mut *record, join).await;
        if passed.is_ok() {
            record.count_shared(SharedOutcome::Alone, to.origin);
        }
        passed
    }))
}

/// The response to a request that gets an answer which several get.
fn answered<'a>(
    outcome: SharedOutcome,
    answer: Arc<SharedAnswer>,
    preconditions: &Preconditions<'_>,
    before: BeforeGate<'a>,
    record: &mut RequestRecord<'a>,
    now: Moment,
) -> Reply<'a> {
    record.count_shared(outcome, before.to.origin);
    let route = before.to.route;
    let (mut used, _occupied) = before.turns.take(route);
    record.settle(route, answer.head.status, answer.head.billed, &mut used);
    Reply::shared(answer, preconditions, now)
}

/// Waits for the answer of another request, since `began`.
///
/// Not an `async fn`, whose arguments would be kept twice while it waits.
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
        let waiting = metrics.map(CollapseMetrics::wait);
        let route = before.to.route;
        let timeout = route.collapse.as_ref().map(|it| it.follow_timeout);
        let limit = route.follow_limit(timeout.unwrap_or_default(), record.waited());
        let told = told_in_time(&worker.pacer, &mut follower, &before, limit, began).await;
        let (now, departed) = (worker.pacer.now(), follower.departed());
        drop((follower, waiting));
        if let Some(metrics) = metrics {
            metrics.waits.record(now.since(began));
        }
        match told {
            Ok(Some(Followed::Answer(answer))) => {
                let follower = SharedOutcome::Follower;
                let asked = preconditions(record.info);
                Err(answered(follower, answer, &asked, before, record, now))
            }
            Ok(Some(Followed::Stale(answer))) => {
                let stale = SharedOutcome::Stale;
                let asked = preconditions(record.info);
                Err(answered(stale, answer, &asked, before, record, now))
            }
            Ok(Some(Followed::Lead(leader))) => {
                note_followed(&mut before, record, now.since(began), departed.is_none());
                record.shared = SharedOutcome::Leader;
                let leader = *leader;
                Ok(Onward::Leads(Box::new(Leading { before, leader })))
            }
            Ok(Some(Followed::Alone(release))) => {
                let span = now.since(began);
                go_on(before, record, span, departed, Some(release)).await
            }
            Err(GaveUp::AtOrigin) => {
                let span = now.since(began);
                go_on(before, record, span, departed, None).await
            }
            Ok(None) => Err(Reply::of_status(503)),
            Err(GaveUp::AtGate) => Err(gave_up(now.since(began), before, record)),
        }
    }
}

/// A request that followed for `span` goes on for itself. `departed`: when its leader left for the origin.
///
/// Boxed: few do.
fn go_on<'w, 'a: 'w>(
    mut before: BeforeGate<'a>,
    record: &'w mut RequestRecord<'a>,
    span: Duration,
    departed: Option<Moment>,
    release: Option<Release>,
) -> BoxedDecision<'w, 'a> {
    note_followed(&mut before, record, span, departed.is_none());
    match alone(before, record, release) {
        Ok(decision) => Box::pin(std::future::ready(decision)),
        Err(passing) => passing,
    }
}

/// A request that followed comes to the gate as one that has waited there since it came.
fn note_followed(
    before: &mut BeforeGate<'_>,
    record: &mut RequestRecord<'_>,
    span: Duration,
    in_queue: bool,
) {
    if let Some(gate) = &mut before.gate {
        gate.note_followed(span, in_queue);
        // For no other origin does it count behind the gate.
        if record.gateway.origin(before.to.origin).settings().holds() {
            record.went_on(span);
        }
    }
}

/// Why a request follows no longer.
enum GaveUp {
    /// The leader did not pass the gate in time.
    AtGate,
    /// The leader had no complete answer in time.
    AtOrigin,
}

/// Waits until the leader has an answer, or has none, since `began`.
///
/// While the leader waits at the gate, the others wait no longer than one may wait there. While it is
/// at the origin, they wait for `limit`, also for several leaders in turn.
async fn told_in_time(
    pacer: &Pacer,
    follower: &mut Follower,
    before: &BeforeGate<'_>,
    limit: Duration,
    began: Moment,
) -> Result<Option<Followed>, GaveUp> {
    let at_gate = before.gate.as_ref().map(|gate| gate.follow_limit());
    let mut first_departed = None;
    loop {
        let now = pacer.now();
        let departed = follower.departed();
        first_departed = departed.and(first_departed.or(departed));
        let until = match (first_departed, at_gate) {
            (None, Some(at_gate)) => began + at_gate,
            (departed, _) => departed.unwrap_or(began).max(began) + limit,
        };
        if now < until {
            // A leader that departs meanwhile is seen in time.
            let step = until.since(now).min(limit);
            match timeout(step, &mut *follower).await {
                Ok(told) => return Ok(told),
                Err(_) => continue,
            }
        }
        if departed.is_none() && at_gate.is_some() {
            return Err(GaveUp::AtGate);
        }
        let collapse = before.to.route.collapse.as_ref();
        let follow_timeout = collapse.map_or(limit, |it| it.follow_timeout);
        if follower.give_up(follow_timeout, now) {
            return Ok(follower.await);
        }
        return Err(GaveUp::AtOrigin);
    }
}

/// The response to a request that has waited too long for a leader to pass the gate.
fn gave_up<'a>(
    span: Duration,
    before: BeforeGate<'a>,
    record: &mut RequestRecord<'a>,
) -> Reply<'a> {
    let route = before.to.route;
    before.turns.reject_elsewhere();
    let Some(gate) = before.gate else {
        return Reply::of_status(503);
    };
    let (rejection, at_gate) = gate.give_up(span);
    record.shared = SharedOutcome::Alone;
    record.at_gate = Some(at_gate);
    Reply::rejected_at_gate(route, &rejection)
}
