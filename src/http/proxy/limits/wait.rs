//! A request waits for its turns.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Poll, ready};

use smallvec::smallvec;

use super::super::record::RequestRecord;
use super::super::request_info::RequestInfo;
use super::Limited;
use super::pending::{PendingLimit, pending};
use super::several::join_all;
use super::trial::{set_apart, try_out};
use super::turns::Turns;
use super::verdict::{LimitOutcome, LimitVerdict, Verdicts};
use crate::actors::{Key, Rejection};
use crate::config::Route;
use crate::http::gateway::Gateway;
use crate::http::message::FieldName;
use crate::limit::Moment;
use crate::observe::metrics::LimitStatus;
use crate::time::pacer::Pacer;

/// What the limits have decided: all their verdicts and turns, or the first rejection.
type Decided<'r> = Result<(Verdicts, Turns<'r>), (LimitVerdict, Rejection)>;

/// Joins all zones of the route for a request of this cost.
///
/// Waits for all turns or the first rejection. All zones are joined at once, but those that bound
/// the running requests of a key: they come after the others, one after another in the order of the
/// zones' names, which no reload changes. So a request that holds a place in one of them only waits
/// for zones further on, and no two requests can wait for each other.
///
/// After a rejection there are no turns: the others are dropped, which refunds their charges. If
/// several zones are joined at once, they are probed first, so that this is rare. While the request
/// waits, its record says where, and then the outcome.
///
/// This is not an `async fn`: a waiting request should hold no more than it needs.
pub(in super::super) fn wait<'w, 'r: 'w>(
    route: &'r Route,
    info: &'w RequestInfo<'_>,
    record: &'w mut RequestRecord<'r>,
) -> impl Future<Output = Turns<'r>> {
    let (gateway, pacer, began) = (record.gateway, record.pacer, record.began);
    let mut pending = pending(gateway, route, info, record.cost);
    let (first, second) = (pending.next(), pending.next());
    let mut several = match (first, second) {
        (None, _) => {
            record.limited = Limited::Decided(LimitOutcome::default());
            None
        }
        (Some(first), None) => {
            record.limited = Limited::Asked(first.ask(gateway));
            None
        }
        (Some(first), Some(second)) => {
            record.limited = Limited::Several(first.wanted.zone, Key::clone(&first.key));
            let all = [first, second].into_iter().chain(pending).collect();
            // Boxed: most routes have one limit.
            Some(Box::pin(all_of(pacer, gateway, route, info, all, began)))
        }
    };
    poll_fn(move |cx| {
        let (gateway, began) = (record.gateway, record.began);
        let decided = match (&mut several, &mut record.limited) {
            (Some(several), _) => ready!(several.as_mut().poll(cx)),
            (None, Limited::Asked(one)) => match ready!(Pin::new(&mut one.joining).poll(cx)) {
                Ok(turn) => {
                    let verdicts = smallvec![one.granted(&turn)];
                    let turns = Turns::from_iter([turn]);
                    tell_delays(gateway, &verdicts, info, turns.granted_at(began));
                    Ok((verdicts, turns))
                }
                Err(rejection) => Err((one.rejected(&rejection), rejection)),
            },
            // Nothing limits it.
            (None, _) => return Poll::Ready(Turns::default()),
        };
        let now = match &decided {
            Ok((_, turns)) => turns.granted_at(began),
            Err(_) => record.pacer.now(),
        };
        let (outcome, turns) = outcome(gateway, route, info, (began, now), decided);
        record.limited = Limited::Decided(outcome);
        Poll::Ready(turns)
    })
}

/// Returns the verdicts of several limits.
///
/// Those in dry run beside others come first, as they answer at once, and last in the verdicts.
async fn all_of<'r>(
    pacer: &Pacer,
    gateway: &'r Gateway,
    route: &'r Route,
    info: &RequestInfo<'_>,
    pending: Vec<PendingLimit>,
    began: Moment,
) -> Decided<'r> {
    let (enforced, tried) = set_apart(pending);
    let (tried_verdicts, tried_turns) = try_out(gateway, route, tried).await;
    let waited = || pacer.now().since(began);
    match join_all(gateway, enforced, waited).await {
        Ok((mut verdicts, mut turns)) => {
            tell_delays(gateway, &verdicts, info, turns.granted_at(began));
            verdicts.extend(tried_verdicts);
            turns.extend(tried_turns);
            Ok((verdicts, turns))
        }
        Err((refused, rejection)) => {
            tried_turns.reject_elsewhere();
            Err((refused.rejected(&rejection), rejection))
        }
    }
}

fn tell_delays(gateway: &Gateway, verdicts: &[LimitVerdict], info: &RequestInfo<'_>, now: Moment) {
    let was_delayed = |verdict: &&LimitVerdict| verdict.status != LimitStatus::Passed;
    for verdict in verdicts.iter().filter(was_delayed) {
        let events = gateway.events(verdict.limit.zone);
        events.delayed(&verdict.limiting(gateway), now);
        note_forwarder(gateway, verdict.limit.zone, info, now);
    }
}

/// Logs the rejection, if there is one.
fn outcome<'r>(
    gateway: &'r Gateway,
    route: &Route,
    info: &RequestInfo<'_>,
    (began, now): (Moment, Moment),
    decided: Decided<'r>,
) -> (LimitOutcome, Turns<'r>) {
    let (verdicts, turns, rejected) = match decided {
        Ok((verdicts, turns)) => (verdicts, turns, None),
        Err((verdict, rejection)) => {
            verdict.tell_rejection(gateway, route, &rejection);
            note_forwarder(gateway, verdict.limit.zone, info, now);
            let holds = verdict.status == LimitStatus::Rejected;
            let rejected = holds.then_some(rejection.reason);
            (smallvec![verdict], Turns::default(), rejected)
        }
    };
    let outcome = LimitOutcome {
        verdicts,
        waited: now.since(began),
        rejected,
    };
    (outcome, turns)
}

/// Notes whom the peer of a limited request names as its client, if only trust would let it.
fn note_forwarder(gateway: &Gateway, zone: usize, info: &RequestInfo<'_>, now: Moment) {
    if info.client.trusted || !gateway.zone(zone).settings().key.has_address() {
        return;
    }
    let named = || info.fields().all(FieldName::XForwardedFor).next();
    let forwarders = &gateway.events(zone).forwarders;
    forwarders.note(info.peer.ip(), named, now);
}
