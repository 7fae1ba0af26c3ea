//! Several limits that decide about one request together.
//!
//! The request is admitted only if all zones admit it. Otherwise all charges are refunded.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use config::Route;
use futures_util::StreamExt;
use futures_util::future::ready;
use futures_util::stream::FuturesUnordered;
use limit::Limit;
use smallvec::SmallVec;

use super::pending::PendingLimit;
use super::turns::Turns;
use super::verdict::Verdicts;
use crate::http::gateway::Gateway;
use crate::zone::{Joining, Rejection, Turn, take_places};

/// Joins all limits. Returns their verdicts when all have admitted, or the first rejection.
pub(super) async fn join_all(
    gateway: &Gateway,
    mut pending: Vec<PendingLimit>,
    waited: impl Fn() -> Duration,
) -> Result<(Verdicts, Turns<'_>), (PendingLimit, Rejection)> {
    // Limits without `in_flight` come first, in their order. The others are sorted by zone name.
    let turn_order = |PendingLimit { zone, join }: &PendingLimit| {
        let zone = gateway.zone(*zone).settings();
        join.limit.in_flight.map(|_| zone.name.as_str())
    };
    pending.sort_by_key(turn_order);
    let at_once = pending.partition_point(|asked| turn_order(asked).is_none());
    // Limits with `in_flight` are not probed: it cannot be predicted whether a permit will be free.
    if at_once > 1
        && let Some((index, rejection)) = probe(gateway, &pending[..at_once]).await
    {
        return Err((pending.swap_remove(index), rejection));
    }
    let joining = pending[..at_once].iter().map(|asked| asked.join(gateway));
    let mut turns = match turns(joining.collect()).await {
        Ok(turns) => turns,
        Err((index, rejection)) => return Err((pending.swap_remove(index), rejection)),
    };
    // `max_wait` limits the total wait: the time so far is subtracted.
    let bounded = &mut pending[at_once..];
    for asked in &mut *bounded {
        if let Some(max) = &mut asked.join.limit.max_wait {
            *max = max.saturating_sub(waited());
        }
    }
    match with_places(gateway, bounded).await {
        Ok(with_places) => turns.0.extend(with_places.0),
        Err((index, rejection)) => {
            turns.reject_elsewhere();
            return Err((pending.swap_remove(at_once + index), rejection));
        }
    }
    // The verdict with the longest wait is decisive: it is moved to the front.
    let mut longest = None;
    let mut verdicts = SmallVec::with_capacity(pending.len());
    for (asked, turn) in pending.into_iter().zip(&turns.0) {
        verdicts.push(asked.granted(turn));
        if turn.grant().due > longest {
            longest = turn.grant().due;
            let last = verdicts.len() - 1;
            verdicts.swap(0, last);
        }
    }
    Ok((verdicts, turns))
}

/// Joins the limits with `in_flight` and takes their permits.
///
/// Returns the first rejection and its index in `bounded` if one rejects.
async fn with_places<'r>(
    gateway: &'r Gateway,
    bounded: &mut [PendingLimit],
) -> Result<Turns<'r>, (usize, Rejection)> {
    let Some(first) = bounded.first() else {
        return Ok(Turns::default());
    };
    // In a dry run no request waits for permits.
    let places_later = bounded.len() > 1 && !first.join.dry_run;
    let joining = bounded.iter_mut().map(|it| {
        it.join.places_later = places_later;
        it.join(gateway)
    });
    let turns = turns(joining.collect()).await?;
    if !places_later {
        return Ok(turns);
    }
    let limits: Vec<Limit> = bounded.iter().map(|it| it.join.limit).collect();
    let taken = take_places(turns.0.into_vec(), &limits).await?;
    Ok(Turns(taken.into()))
}

/// Probes the zones. Returns the first rejection and its index in `asked`.
///
/// A probe charges nothing.
async fn probe(gateway: &Gateway, asked: &[PendingLimit]) -> Option<(usize, Rejection)> {
    let asking = asked.iter().enumerate().map(async |(index, asked)| {
        let probed = gateway.zone(asked.zone).probe(asked.join.clone()).await;
        probed.map(|rejection| (index, rejection))
    });
    // The first rejection decides; the other results are ignored.
    let mut probed = asking.collect::<FuturesUnordered<_>>().filter_map(ready);
    let (index, rejection) = probed.next().await?;
    for (other, asked) in asked.iter().enumerate() {
        let zone = gateway.zone(asked.zone);
        if other == index {
            zone.count_rejection(&asked.join, &rejection);
        } else {
            zone.count_rejected_elsewhere(&asked.join);
        }
    }
    Some((index, rejection))
}

/// State of one of several joins.
enum PendingTurn<'r> {
    /// The zone has not decided yet.
    Joining(Joining<'r>),
    /// The zone has admitted the request.
    Joined(Turn<'r>),
}

impl PendingTurn<'_> {
    /// Cancels the join, or returns the admission, because another limit rejected the request.
    fn reject_elsewhere(self) {
        match self {
            Self::Joining(joining) => joining.reject_elsewhere(),
            Self::Joined(turn) => turn.reject_elsewhere(),
        }
    }
}

/// Waits for all joins. Returns the first rejection and its index in `joining` if one rejects.
async fn turns<'r>(joining: Vec<Joining<'r>>) -> Result<Turns<'r>, (usize, Rejection)> {
    let mut asked: Vec<PendingTurn<'r>> = joining.into_iter().map(PendingTurn::Joining).collect();
    let decided = poll_fn(|cx| {
        let mut pending = false;
        for (index, asked) in asked.iter_mut().enumerate() {
            let PendingTurn::Joining(joining) = asked else {
                continue;
            };
            match Pin::new(joining).poll(cx) {
                Poll::Pending => pending = true,
                Poll::Ready(Ok(turn)) => *asked = PendingTurn::Joined(turn),
                Poll::Ready(Err(rejection)) => return Poll::Ready(Err((index, rejection))),
            }
        }
        if pending {
            Poll::Pending
        } else {
            Poll::Ready(Ok(()))
        }
    })
    .await;
    if let Err((index, rejection)) = decided {
        // The rejected join is already counted.
        asked.into_iter().for_each(PendingTurn::reject_elsewhere);
        return Err((index, rejection));
    }
    let turn = |asked| match asked {
        PendingTurn::Joined(turn) => Some(turn),
        PendingTurn::Joining(_) => None,
    };
    Ok(Turns(asked.into_iter().filter_map(turn).collect()))
}

/// Separates the limits in dry run from the enforced ones, if there are both.
///
/// An override may set dry run for one of several zones. It must not let the request bypass the
/// others.
pub(super) fn set_apart(pending: Vec<PendingLimit>) -> (Vec<PendingLimit>, Vec<PendingLimit>) {
    let (dry, enforced): (Vec<_>, Vec<_>) = pending.into_iter().partition(|it| it.join.dry_run);
    if enforced.is_empty() {
        (dry, enforced)
    } else {
        (enforced, dry)
    }
}

/// Joins limits in dry run beside enforced ones. They decide at once and reject nothing.
pub(super) async fn try_out<'r>(
    gateway: &'r Gateway,
    route: &Route,
    tried: Vec<PendingLimit>,
) -> (Verdicts, Turns<'r>) {
    let (mut verdicts, mut turns) = (Verdicts::new(), Turns::default());
    for asked in tried {
        match asked.join(gateway).await {
            Ok(turn) => {
                verdicts.push(asked.granted(&turn));
                turns.0.push(turn);
            }
            Err(rejection) => {
                let verdict = asked.rejected(&rejection);
                verdict.tell_rejection(gateway, route, &rejection);
                verdicts.push(verdict);
            }
        }
    }
    (verdicts, turns)
}
