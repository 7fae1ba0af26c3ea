//! Joins the zones of a request, and waits for their admissions.
//!
//! A *zone* limits the rate of each key; a request *joins* it to be admitted. `pending` builds the
//! limits of a request, `several` joins more than one. A *permit* is the right to run one request
//! of a key (`in_flight`).

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
use super::pending::{DecidedLimit, PendingLimit, pending_limits};
use super::several::{join_all, join_dry_runs, split_by_dry_run};
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
pub(in super::super) enum Begun<'r, F> {
    /// All zones have decided. The outcome is in the request's record.
    Decided(ZoneAdmissions<'r>),
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
/// in which zone. Afterwards the record has the outcome.
pub(in super::super) fn begin<'i, 'r>(
    route: &'r Route,
    info: &'i RequestInfo<'i>,
    record: &mut RequestRecord<'r>,
) -> Begun<'r, impl Future<Output = Decided<'r>> + use<'i, 'r>> {
    let (gateway, pacer, began) = (record.gateway, &record.worker.pacer, record.began);
    let mut pending = pending_limits(gateway, route, info, record.cost);
    let first = pending.next();
    // With one limit, the iterator is not asked for a second one.
    let second = (route.limits.len() > 1).then(|| pending.next()).flatten();
    match (first, second) {
        (None, _) => {
            record.limited = Limited::Decided(LimitOutcome::default());
            Begun::Decided(ZoneAdmissions::default())
        }
        (Some(first), None) => match first.join_at_once(gateway) {
            Ok(decided) => {
                // The zone decided when the request arrived.
                let decided = log_only_limit(info, record, decided);
                Begun::Decided(record_decision(route, info, record, decided, began))
            }
            Err(joined) => {
                record.limited = Limited::WaitingAtOne(joined);
                Begun::Waiting(None)
            }
        },
        (Some(first), Some(second)) => {
            record.limited = Limited::WaitingAtSeveral(first.zone, Key::clone(&first.join.key));
            let all = [first, second].into_iter().chain(pending).collect();
            // Boxed: most routes have one limit.
            let several = decide_several(pacer, gateway, route, info, all, began);
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
        let decided = if let Some(several) = &mut several {
            ready!(several.as_mut().poll(cx))
        } else if let Limited::WaitingAtOne(one) = &mut record.limited {
            let decided = match ready!(Pin::new(&mut one.joining).poll(cx)) {
                Ok(admission) => Ok((one.admitted_verdict(&admission), admission)),
                Err(rejection) => Err((one.rejected_verdict(&rejection), rejection)),
            };
            log_only_limit(info, record, decided)
        } else {
            return Poll::Pending;
        };
        // `record_decision` uses this instant only for a rejection, so otherwise the clock is not
        // read.
        let now = decided
            .as_ref()
            .map_or_else(|_| record.now(), |_| record.began);
        Poll::Ready(record_decision(route, info, record, decided, now))
    })
}

/// Joins several limits, and waits for their decision.
///
/// Limits in dry run beside enforced ones are joined first, because they decide at once. Their
/// verdicts come last.
async fn decide_several<'r>(
    pacer: &Pacer,
    gateway: &'r Gateway,
    route: &'r Route,
    info: &RequestInfo<'_>,
    pending: Vec<PendingLimit>,
    began: Moment,
) -> Decided<'r> {
    let (enforced, dry_runs) = split_by_dry_run(pending);
    let (dry_verdicts, dry_admissions) = join_dry_runs(gateway, route, dry_runs).await;
    let waited = || pacer.now().since(began);
    match join_all(gateway, enforced, waited).await {
        Ok((mut verdicts, mut admissions)) => {
            let granted_at = admissions.granted_at(began);
            for verdict in &verdicts {
                log_delay(gateway, verdict, info, granted_at);
            }
            verdicts.extend(dry_verdicts);
            admissions.0.extend(dry_admissions.0);
            Ok((verdicts, admissions))
        }
        Err((refused, rejection)) => {
            dry_admissions.reject_elsewhere();
            Err((refused.rejected_verdict(&rejection), rejection))
        }
    }
}

/// Logs that the limit delayed the request, if it did.
fn log_delay(gateway: &Gateway, verdict: &LimitVerdict, info: &RequestInfo<'_>, now: Moment) {
    if verdict.status != LimitStatus::Passed {
        let events = gateway.zone(verdict.limit.zone).events();
        events.delayed(&verdict.limited_request(gateway), now);
        note_forwarder(gateway, verdict.limit.zone, info, now);
    }
}

/// Logs that the request's only limit delayed it, if it did. Returns its decision as that of all.
fn log_only_limit<'r>(
    info: &RequestInfo<'_>,
    record: &RequestRecord<'_>,
    decided: DecidedLimit<'r>,
) -> Decided<'r> {
    let (verdict, admission) = decided?;
    let admissions = ZoneAdmissions(smallvec![admission]);
    let granted_at = admissions.granted_at(record.began);
    log_delay(record.gateway, &verdict, info, granted_at);
    Ok((smallvec![verdict], admissions))
}

/// Records the decision of all limits, and logs a rejection. `now`: instant of the rejection.
fn record_decision<'r>(
    route: &Route,
    info: &RequestInfo<'_>,
    record: &mut RequestRecord<'r>,
    decided: Decided<'r>,
    now: Moment,
) -> ZoneAdmissions<'r> {
    let mut admissions = ZoneAdmissions::default();
    let (verdicts, ended, rejected) = match decided {
        Ok((verdicts, granted)) => {
            admissions = granted;
            (verdicts, admissions.granted_at(record.began), None)
        }
        Err((verdict, rejection)) => {
            verdict.log_rejection(record.gateway, route, &rejection);
            note_forwarder(record.gateway, verdict.limit.zone, info, now);
            let is_enforced = verdict.status == LimitStatus::Rejected;
            let rejected = is_enforced.then_some(rejection.reason);
            (smallvec![verdict], now, rejected)
        }
    };
    record.limited = Limited::Decided(LimitOutcome {
        verdicts,
        waited: ended.since(record.began),
        rejected,
    });
    admissions
}

/// Records a client that names another client, for a hint that `trusted_proxies` may be missing.
///
/// Only for zones whose key has the client's address. Without trusted proxies, the named client is
/// taken from the peer's field. Behind trusted proxies, it is the element to the left of the
/// client.
fn note_forwarder(gateway: &Gateway, zone: usize, info: &RequestInfo<'_>, now: Moment) {
    let zone = gateway.zone(zone);
    if !zone.settings().key.has_address() {
        return;
    }
    let Client { address, via_proxy } = info.client;
    let field = gateway.settings().server.forwarded_header;
    let named = || {
        if via_proxy {
            named_by_client(info.fields(), address, field)
        } else {
            info.fields().first(FieldName::XForwardedFor)
        }
    };
    zone.events().forwarders.note(address, named, now);
}
