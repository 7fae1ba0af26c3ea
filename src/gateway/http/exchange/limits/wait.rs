//! Joins the zones of a request, and waits for their admissions.
//!
//! `pending` builds the limits of a request, `several` joins more than one.

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
use super::admissions::ZoneAdmissions;
use super::pending::{DecidedLimit, PendingLimit, pending};
use super::several::join_all;
use super::several::{set_apart, try_out};
use super::verdict::{LimitOutcome, LimitVerdict, Verdicts};
use crate::http::gateway::Gateway;
use crate::http::message::FieldName;
use crate::observe::metrics::LimitStatus;
use crate::time::pacer::Pacer;
use crate::zone::{Key, Rejection};

/// Decision of all limits: their verdicts and admissions, or the first rejection.
pub(in super::super) type Decided<'r> =
    Result<(Verdicts, ZoneAdmissions<'r>), (LimitVerdict, Rejection)>;

/// State of a request after it has joined the zones of its route.
pub(in super::super) enum Begun<F> {
    /// All zones have decided. The outcome is in the request's record.
    Decided,
    /// The request waits: at its only limit (stored in its record), or at several limits.
    Waiting(Option<Pin<Box<F>>>),
}

/// Joins all zones of the route for a request.
///
/// Limits without `in_flight` are joined at once. Limits with `in_flight` come after them. A
/// request takes the permits of all or of none, so that it holds no permit while it waits for
/// another one.
///
/// After a rejection, the other admissions are dropped, which refunds their charges. To make this
/// rare, several zones are probed before they are joined. While the request waits, its record says
/// where. Afterwards the record has the outcome.
///
/// `admissions`: gets the admissions if all zones decide at once.
pub(in super::super) fn begin<'i, 'r>(
    route: &'r Route,
    info: &'i RequestInfo<'i>,
    record: &mut RequestRecord<'r>,
    admissions: &mut ZoneAdmissions<'r>,
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
                // The zone decided when the request arrived.
                record_one(route, info, record, decided, began, admissions);
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

/// Waits for all admissions of a request, or for the first rejection.
///
/// This is not an `async fn`: a waiting request must be small.
pub(in super::super) fn wait<'w, 'r: 'w>(
    route: &'r Route,
    info: &'w RequestInfo<'_>,
    record: &'w mut RequestRecord<'r>,
    mut several: Option<Pin<Box<impl Future<Output = Decided<'r>>>>>,
) -> impl Future<Output = ZoneAdmissions<'r>> {
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
            Ok(admission) => Ok((one.granted(&admission), admission)),
            Err(rejection) => Err((one.rejected(&rejection), rejection)),
        };
        let now = rejected_at(record, &decided);
        let mut admissions = ZoneAdmissions::default();
        record_one(route, info, record, decided, now, &mut admissions);
        Poll::Ready(admissions)
    })
}

/// Returns the instant of a rejection after a wait. An admission has its own instant.
fn rejected_at<T, E>(record: &RequestRecord<'_>, decided: &Result<T, E>) -> Moment {
    match decided {
        Ok(_) => record.began,
        Err(_) => record.now(),
    }
}

/// Returns the verdicts of several limits.
///
/// Limits in dry run beside enforced ones are joined first, because they decide at once. Their
/// verdicts come last.
async fn all_of<'r>(
    pacer: &Pacer,
    gateway: &'r Gateway,
    route: &'r Route,
    info: &RequestInfo<'_>,
    pending: Vec<PendingLimit>,
    began: Moment,
) -> Decided<'r> {
    let (enforced, tried) = set_apart(pending);
    let (tried_verdicts, tried_admissions) = try_out(gateway, route, tried).await;
    let waited = || pacer.now().since(began);
    match join_all(gateway, enforced, waited).await {
        Ok((mut verdicts, mut admissions)) => {
            let granted_at = admissions.granted_at(began);
            for verdict in &verdicts {
                log_delay(gateway, verdict, info, granted_at);
            }
            verdicts.extend(tried_verdicts);
            admissions.0.extend(tried_admissions.0);
            Ok((verdicts, admissions))
        }
        Err((refused, rejection)) => {
            tried_admissions.reject_elsewhere();
            Err((refused.rejected(&rejection), rejection))
        }
    }
}

/// Logs a delay by the limit, if there was one.
fn log_delay(gateway: &Gateway, verdict: &LimitVerdict, info: &RequestInfo<'_>, now: Moment) {
    if verdict.status != LimitStatus::Passed {
        let events = gateway.events(verdict.limit.zone);
        events.delayed(&verdict.limiting(gateway), now);
        note_forwarder(gateway, verdict.limit.zone, info, now);
    }
}

/// Records the decision of a request's only limit, and puts the admission into `admissions`.
///
/// `now`: instant of the rejection, if the request was rejected.
fn record_one<'r>(
    route: &Route,
    info: &RequestInfo<'_>,
    record: &mut RequestRecord<'r>,
    decided: DecidedLimit<'r>,
    now: Moment,
    admissions: &mut ZoneAdmissions<'r>,
) {
    let (verdict, admission) = match decided {
        Ok(granted) => granted,
        Err(rejected) => return record_rejection(route, info, record, rejected, now),
    };
    let granted_at = record.began.max(admission.grant().at);
    log_delay(record.gateway, &verdict, info, granted_at);
    record.limited = Limited::Decided(LimitOutcome {
        verdicts: smallvec![verdict],
        waited: granted_at.since(record.began),
        rejected: None,
    });
    admissions.0.push(admission);
}

/// Records the decision of several limits. `now`: instant of the rejection, if there was one.
fn record_outcome<'r>(
    route: &Route,
    info: &RequestInfo<'_>,
    record: &mut RequestRecord<'r>,
    decided: Decided<'r>,
    now: Moment,
) -> ZoneAdmissions<'r> {
    let (verdicts, admissions) = match decided {
        Ok(granted) => granted,
        Err(rejected) => {
            record_rejection(route, info, record, rejected, now);
            return ZoneAdmissions::default();
        }
    };
    record.limited = Limited::Decided(LimitOutcome {
        verdicts,
        waited: admissions.granted_at(record.began).since(record.began),
        rejected: None,
    });
    admissions
}

/// Records and logs the rejection of a request at `now`.
fn record_rejection(
    route: &Route,
    info: &RequestInfo<'_>,
    record: &mut RequestRecord<'_>,
    (verdict, rejection): (LimitVerdict, Rejection),
    now: Moment,
) {
    let gateway = record.gateway;
    verdict.log_rejection(gateway, route, &rejection);
    note_forwarder(gateway, verdict.limit.zone, info, now);
    let holds = verdict.status == LimitStatus::Rejected;
    record.limited = Limited::Decided(LimitOutcome {
        verdicts: smallvec![verdict],
        waited: now.since(record.began),
        rejected: holds.then_some(rejection.reason),
    });
}

/// Records a client that names another client, for a hint that `trusted_proxies` may be missing.
///
/// Only for zones whose key has the client's address. Without trusted proxies, the named client is
/// taken from the peer's field. Behind trusted proxies, it is the element to the left of the
/// client.
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
