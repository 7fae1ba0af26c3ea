//! Several limits that decide about one request together.
//!
//! The request is admitted only if all its *zones* (rate limits by key) admit it. Otherwise all
//! charges are refunded. To *join* a zone is to ask it for admission; a *probe* only asks whether a
//! join would be rejected. A *permit* is the right to run one request of a key (`in_flight`).

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use config::Route;
use limit::Limit;
use smallvec::SmallVec;

use super::admissions::ZoneAdmissions;
use super::pending::PendingLimit;
use super::verdict::Verdicts;
use crate::http::gateway::Gateway;
use crate::zone::{Joining, Rejection, ZoneAdmission, take_permits};

/// Joins all limits. Returns their verdicts when all have admitted, or the first rejection.
pub(super) async fn join_all(
    gateway: &Gateway,
    mut pending: Vec<PendingLimit>,
    waited: impl Fn() -> Duration,
) -> Result<(Verdicts, ZoneAdmissions<'_>), (PendingLimit, Rejection)> {
    // Limits without `in_flight` come first, in their order. The others follow, sorted by zone
    // name, so that all requests take permits in the same order.
    let join_order = |PendingLimit { zone, join }: &PendingLimit| {
        let zone = gateway.zone(*zone).settings();
        join.limit.in_flight.map(|_| zone.name.as_str())
    };
    pending.sort_by_key(join_order);
    // Index of the first limit with `in_flight`. These limits are called `bounded` here.
    let bounded_from = pending.partition_point(|limit| join_order(limit).is_none());
    // Limits with `in_flight` are not probed: whether a permit will be free cannot be predicted.
    if bounded_from > 1
        && let Some((index, rejection)) = probe(gateway, &pending[..bounded_from]).await
    {
        return Err((pending.swap_remove(index), rejection));
    }
    let joining = pending[..bounded_from]
        .iter()
        .map(|limit| limit.join(gateway));
    let mut admissions = match wait_for_all(joining.collect()).await {
        Ok(admissions) => admissions,
        Err((index, rejection)) => return Err((pending.swap_remove(index), rejection)),
    };
    // `max_wait` limits the total wait, so the time waited so far is subtracted.
    let bounded = &mut pending[bounded_from..];
    for limit in &mut *bounded {
        if let Some(max) = &mut limit.join.limit.max_wait {
            *max = max.saturating_sub(waited());
        }
    }
    match join_with_permits(gateway, bounded).await {
        Ok(with_permits) => admissions.0.extend(with_permits.0),
        Err((index, rejection)) => {
            admissions.reject_elsewhere();
            return Err((pending.swap_remove(bounded_from + index), rejection));
        }
    }
    // The verdict with the latest departure is decisive: it is moved to the front. `None` (no wait)
    // is less than any instant.
    let mut latest = None;
    let mut verdicts = SmallVec::with_capacity(pending.len());
    for (limit, admission) in pending.into_iter().zip(&admissions.0) {
        verdicts.push(limit.admitted_verdict(admission));
        if admission.grant().due > latest {
            latest = admission.grant().due;
            let last = verdicts.len() - 1;
            verdicts.swap(0, last);
        }
    }
    Ok((verdicts, admissions))
}

/// Joins the limits with `in_flight` (`bounded`), and takes their permits.
///
/// Returns the first rejection and its index in `bounded` if one rejects.
async fn join_with_permits<'r>(
    gateway: &'r Gateway,
    bounded: &mut [PendingLimit],
) -> Result<ZoneAdmissions<'r>, (usize, Rejection)> {
    let Some(first) = bounded.first() else {
        return Ok(ZoneAdmissions::default());
    };
    // Several permits are taken together, after all zones have admitted the request. In a dry run
    // no request waits for permits.
    let takes_permits_later = bounded.len() > 1 && !first.join.dry_run;
    let joining = bounded.iter_mut().map(|it| {
        it.join.takes_permits_later = takes_permits_later;
        it.join(gateway)
    });
    let admissions = wait_for_all(joining.collect()).await?;
    if !takes_permits_later {
        return Ok(admissions);
    }
    let limits: Vec<Limit> = bounded.iter().map(|it| it.join.limit).collect();
    let taken = take_permits(admissions.0.into_vec(), &limits).await?;
    Ok(ZoneAdmissions(taken.into()))
}

/// Probes the zones. Returns the first rejection and its index in `limits`.
///
/// A probe charges nothing.
async fn probe(gateway: &Gateway, limits: &[PendingLimit]) -> Option<(usize, Rejection)> {
    let probe = |limit: &PendingLimit| gateway.zone(limit.zone).probe(limit.join.clone());
    let mut probes: Vec<_> = limits.iter().map(|it| Some(Box::pin(probe(it)))).collect();
    // The first rejection decides. Of several that arrive together, it is the first in order.
    let (index, rejection) = poll_fn(|cx| {
        for (index, pending) in probes.iter_mut().enumerate() {
            let outcome = pending.as_mut().map(|probe| probe.as_mut().poll(cx));
            match outcome {
                Some(Poll::Ready(Some(rejection))) => return Poll::Ready(Some((index, rejection))),
                // This zone would admit the request.
                Some(Poll::Ready(None)) => *pending = None,
                Some(Poll::Pending) | None => {}
            }
        }
        if probes.iter().all(Option::is_none) {
            return Poll::Ready(None);
        }
        Poll::Pending
    })
    .await?;
    for (other, limit) in limits.iter().enumerate() {
        let zone = gateway.zone(limit.zone);
        if other == index {
            zone.count_rejection(&limit.join, &rejection);
        } else {
            zone.count_rejected_elsewhere(&limit.join);
        }
    }
    Some((index, rejection))
}

/// State of one of several joins.
enum PendingJoin<'r> {
    /// The zone has not decided yet.
    Joining(Joining<'r>),
    /// The zone has admitted the request.
    Joined(ZoneAdmission<'r>),
}

impl PendingJoin<'_> {
    /// Cancels the join, or returns the admission, because another limit rejected the request.
    fn reject_elsewhere(self) {
        match self {
            Self::Joining(joining) => joining.reject_elsewhere(),
            Self::Joined(admission) => admission.reject_elsewhere(),
        }
    }
}

/// Waits for all joins. Returns the first rejection and its index in `joining` if one rejects.
async fn wait_for_all<'r>(
    joining: Vec<Joining<'r>>,
) -> Result<ZoneAdmissions<'r>, (usize, Rejection)> {
    let mut joins: Vec<PendingJoin<'r>> = joining.into_iter().map(PendingJoin::Joining).collect();
    let decided = poll_fn(|cx| {
        let mut is_pending = false;
        for (index, join) in joins.iter_mut().enumerate() {
            let PendingJoin::Joining(joining) = join else {
                continue;
            };
            match Pin::new(joining).poll(cx) {
                Poll::Pending => is_pending = true,
                Poll::Ready(Ok(admission)) => *join = PendingJoin::Joined(admission),
                Poll::Ready(Err(rejection)) => return Poll::Ready(Err((index, rejection))),
            }
        }
        if is_pending {
            Poll::Pending
        } else {
            Poll::Ready(Ok(()))
        }
    })
    .await;
    if let Err((index, rejection)) = decided {
        // The rejected join has ended, so it is not counted again here.
        joins.into_iter().for_each(PendingJoin::reject_elsewhere);
        return Err((index, rejection));
    }
    let admission = |join| match join {
        PendingJoin::Joined(admission) => Some(admission),
        PendingJoin::Joining(_) => None,
    };
    Ok(ZoneAdmissions(
        joins.into_iter().filter_map(admission).collect(),
    ))
}

/// Returns the limits that decide, and the limits in dry run beside them.
///
/// If all limits are in dry run, all decide. An override may set dry run for one of several zones.
/// It must not let the request bypass the others.
pub(super) fn split_by_dry_run(
    pending: Vec<PendingLimit>,
) -> (Vec<PendingLimit>, Vec<PendingLimit>) {
    let (dry, enforced): (Vec<_>, Vec<_>) = pending.into_iter().partition(|it| it.join.dry_run);
    if enforced.is_empty() {
        (dry, enforced)
    } else {
        (enforced, dry)
    }
}

/// Joins limits in dry run beside enforced ones. They decide at once and reject nothing.
pub(super) async fn join_dry_runs<'r>(
    gateway: &'r Gateway,
    route: &Route,
    dry_runs: Vec<PendingLimit>,
) -> (Verdicts, ZoneAdmissions<'r>) {
    let (mut verdicts, mut admissions) = (Verdicts::new(), ZoneAdmissions::default());
    for limit in dry_runs {
        match limit.join(gateway).await {
            Ok(admission) => {
                verdicts.push(limit.admitted_verdict(&admission));
                admissions.0.push(admission);
            }
            Err(rejection) => {
                let verdict = limit.rejected_verdict(&rejection);
                verdict.log_rejection(gateway, route, &rejection);
                verdicts.push(verdict);
            }
        }
    }
    (verdicts, admissions)
}
