//! A request joins its zones, and waits for its turns.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Poll, ready};

use config::Route;
use limit::Moment;
use smallvec::smallvec;

use super::super::client::{Client, named_by_client};
use super::super::record::RequestRecord;
use super::super::request_info::RequestInfo;
use super::Limited;
use super::pending::{DecidedLimit, PendingLimit, pending};
use super::several::join_all;
use super::several::{set_apart, try_out};
use super::turns::Turns;
use super::verdict::{LimitOutcome, LimitVerdict, Verdicts};
use crate::http::gateway::Gateway;
use crate::http::message::FieldName;
use crate::observe::metrics::LimitStatus;
use crate::time::pacer::Pacer;
use crate::zone::{Key, Rejection};

/// What the limits have decided: all their verdicts and turns, or the first rejection.
pub(in super::super) type Decided<'r> = Result<(Verdicts, Turns<'r>), (LimitVerdict, Rejection)>;

/// How far a request is that has joined the zones of its route.
pub(in super::super) enum Begun<F> {
    /// It has all its turns; none if it is rejected. The outcome is in its record.
    Decided,
    /// It waits: at its only limit, which is in its record, or at several.
    Waiting(Option<Pin<Box<F>>>),
}

/// Joins all zones of the route for a request.
///
/// All zones are joined at once, but those that bound the running requests of a key: they come
/// after the others, and a request takes the places in all of them or none, so that it holds none
/// while it waits for another.
///
/// After a rejection there are no turns: the others are dropped, which refunds their charges. If
/// several zones are joined at once, they are probed first, so that this is rare. While the request
/// waits, its record says where, and then the outcome.
///
/// `turns`: where its turns go, if it has them at once.
pub(in super::super) fn begin<'i, 'r>(
    route: &'r Route,
    info: &'i RequestInfo<'i>,
    record: &mut RequestRecord<'r>,
    turns: &mut Turns<'r>,
) -> Begun<impl Future<Output = Decided<'r>> + use<'i, 'r>> {
    let (gateway, pacer, began) = (record.gateway, &record.worker.pacer, record.began);
    let mut pending = pending(gateway, route, info, record.cost);
    let first = pending.next();
    let second = (route.limits.len() > 1).then(|| pending.next()).flatten();
    match (first, second) {
        (None, _) => {
            record.limited = Limited::Decided(LimitOutcome::default());
            Begun::Decided
        }
        (Some(first), None) => match first.ask(gateway) {
            Ok(decided) => {
                // It was decided as it came.
                record_one(route, info, record, decided, began, turns);
                Begun::Decided
            }
            Err(asked) => {
                record.limited = Limited::WaitingAtOne(asked);
                Begun::Waiting(None)
            }
        },
        (Some(first), Some(second)) => {
            record.limited = Limited::WaitingAtSeveral(first.zone, Key::clone(&first.join.key));
            let all = [first, second].into_iter().chain(pending).collect();
            // Boxed: most routes have one limit.
            let several = all_of(pacer, gateway, route, info, all, began);
            Begun::Waiting(Some(Box::pin(several)))
        }
    }
}

/// Waits for all turns of a request, or the first rejection.
///
/// This is not an `async fn`: a waiting request should hold no more than it needs.
pub(in super::super) fn wait<'w, 'r: 'w>(
    route: &'r Route,
    info: &'w RequestInfo<'_>,
    record: &'w mut RequestRecord<'r>,
    mut several: Option<Pin<Box<impl Future<Output = Decided<'r>>>>>,
) -> impl Future<Output = Turns<'r>> {
    poll_fn(move |cx| {
        if let Some(several) = &mut several {
            let decided = ready!(several.as_mut().poll(cx));
            let now = rejected_at(record, &decided);
            return Poll::Ready(record_outcome(route, info, record, decided, now));
        }
        let Limited::WaitingAtOne(one) = &mut record.limited else {
            return Poll::Pending;
        };
        let decided = match ready!(Pin::new(&mut one.joining).poll(cx)) {
            Ok(turn) => Ok((one.granted(&turn), turn)),
            Err(rejection) => Err((one.rejected(&rejection), rejection)),
        };
        let now = rejected_at(record, &decided);
        let mut turns = Turns::default();
        record_one(route, info, record, decided, now, &mut turns);
        Poll::Ready(turns)
    })
}

/// Returns when a request that has waited is rejected. A turn knows its own time.
fn rejected_at<T, E>(record: &RequestRecord<'_>, decided: &Result<T, E>) -> Moment {
    match decided {
        Ok(_) => record.began,
        Err(_) => record.now(),
    }
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
            let granted_at = turns.granted_at(began);
            for verdict in &verdicts {
                tell_delay(gateway, verdict, info, granted_at);
            }
            verdicts.extend(tried_verdicts);
            turns.0.extend(tried_turns.0);
            Ok((verdicts, turns))
        }
        Err((refused, rejection)) => {
            tried_turns.reject_elsewhere();
            Err((refused.rejected(&rejection), rejection))
        }
    }
}

/// Tells the log that the limit delayed the request, if it did.
fn tell_delay(gateway: &Gateway, verdict: &LimitVerdict, info: &RequestInfo<'_>, now: Moment) {
    if verdict.status != LimitStatus::Passed {
        let events = gateway.events(verdict.limit.zone);
        events.delayed(&verdict.limiting(gateway), now);
        note_forwarder(gateway, verdict.limit.zone, info, now);
    }
}

/// Records what the only limit of a request has decided, and puts its turn into `turns`.
///
/// `now`: when it was rejected, if it was.
fn record_one<'r>(
    route: &Route,
    info: &RequestInfo<'_>,
    record: &mut RequestRecord<'r>,
    decided: DecidedLimit<'r>,
    now: Moment,
    turns: &mut Turns<'r>,
) {
    let (verdict, turn) = match decided {
        Ok(granted) => granted,
        Err(rejected) => return record_rejection(route, info, record, rejected, now),
    };
    let granted_at = record.began.max(turn.grant().at);
    tell_delay(record.gateway, &verdict, info, granted_at);
    record.limited = Limited::Decided(LimitOutcome {
        verdicts: smallvec![verdict],
        waited: granted_at.since(record.began),
        rejected: None,
    });
    turns.0.push(turn);
}

/// Records what several limits have decided. If one rejected the request, that was `now`.
fn record_outcome<'r>(
    route: &Route,
    info: &RequestInfo<'_>,
    record: &mut RequestRecord<'r>,
    decided: Decided<'r>,
    now: Moment,
) -> Turns<'r> {
    let (verdicts, turns) = match decided {
        Ok(granted) => granted,
        Err(rejected) => {
            record_rejection(route, info, record, rejected, now);
            return Turns::default();
        }
    };
    record.limited = Limited::Decided(LimitOutcome {
        verdicts,
        waited: turns.granted_at(record.began).since(record.began),
        rejected: None,
    });
    turns
}

/// Records and logs the rejection of a request, which was `now`.
fn record_rejection(
    route: &Route,
    info: &RequestInfo<'_>,
    record: &mut RequestRecord<'_>,
    (verdict, rejection): (LimitVerdict, Rejection),
    now: Moment,
) {
    let gateway = record.gateway;
    verdict.tell_rejection(gateway, route, &rejection);
    note_forwarder(gateway, verdict.limit.zone, info, now);
    let holds = verdict.status == LimitStatus::Rejected;
    record.limited = Limited::Decided(LimitOutcome {
        verdicts: smallvec![verdict],
        waited: now.since(record.began),
        rejected: holds.then_some(rejection.reason),
    });
}

/// Notes whom the client of a limited request names as its own client, if only trust would let it.
///
/// That is the peer, or behind trusted proxies one that may be a proxy with another address.
fn note_forwarder(gateway: &Gateway, zone: usize, info: &RequestInfo<'_>, now: Moment) {
    if !gateway.zone(zone).settings().key.has_address() {
        return;
    }
    let forwarders = &gateway.events(zone).forwarders;
    let Client { address, trusted } = info.client;
    if trusted {
        let field = gateway.settings().server.forwarded_header;
        let named = || named_by_client(info.fields(), address, field);
        forwarders.note(address, named, now);
    } else {
        let named = || info.fields().all(FieldName::XForwardedFor).next();
        forwarders.note(address, named, now);
    }
}
