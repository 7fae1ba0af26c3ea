//! Several limits that decide about one request together.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use futures_util::future;
use limit::Limit;
use smallvec::SmallVec;

use super::pending::PendingLimit;
use super::turns::Turns;
use super::verdict::Verdicts;
use crate::http::gateway::Gateway;
use crate::zone::{Joining, Rejection, Turn, take_places};

/// Returns the verdicts of several limits when all have given a turn, or the first rejection.
pub(super) async fn join_all(
    gateway: &Gateway,
    mut pending: Vec<PendingLimit>,
    waited: impl Fn() -> Duration,
) -> Result<(Verdicts, Turns<'_>), (PendingLimit, Rejection)> {
    // Those without `in_flight` come first, in their order.
    let turn_order = |PendingLimit { zone, join }: &PendingLimit| {
        let zone = gateway.zone(*zone).settings();
        join.limit.in_flight.map(|_| zone.name.as_str())
    };
    pending.sort_by_key(turn_order);
    let at_once = pending.partition_point(|asked| turn_order(asked).is_none());
    // Whether a place will be free when a request has waited for its time is not known before.
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
    let bounded = &mut pending[at_once..];
    for asked in &mut *bounded {
        if let Some(max) = &mut asked.join.limit.max_wait {
            *max = max.saturating_sub(waited());
        }
    }
    match with_places(gateway, bounded).await {
        Ok(with_places) => turns.extend(with_places),
        Err((index, rejection)) => {
            turns.reject_elsewhere();
            return Err((pending.swap_remove(at_once + index), rejection));
        }
    }
    let mut longest = None;
    let mut verdicts = SmallVec::with_capacity(pending.len());
    for (asked, turn) in pending.into_iter().zip(turns.iter()) {
        verdicts.push(asked.granted(turn));
        if turn.grant().due > longest {
            longest = turn.grant().due;
            let last = verdicts.len() - 1;
            verdicts.swap(0, last);
        }
    }
    Ok((verdicts, turns))
}

/// Returns the turns of limits that bound the running requests, with their places, or the first
/// rejection and its index in `bounded`.
async fn with_places<'r>(
    gateway: &'r Gateway,
    bounded: &mut [PendingLimit],
) -> Result<Turns<'r>, (usize, Rejection)> {
    let Some(first) = bounded.first() else {
        return Ok(Turns::default());
    };
    // In a dry run nothing waits for places.
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
    let taken = take_places(turns.into_iter().collect(), &limits).await?;
    Ok(taken.into_iter().collect())
}

/// Returns the first rejection by any of the zones, and its index in `asked`.
///
/// No zone charges the request for this.
async fn probe(gateway: &Gateway, asked: &[PendingLimit]) -> Option<(usize, Rejection)> {
    let asking = asked
        .iter()
        .map(|asked| gateway.zone(asked.zone).probe(asked.join.clone()));
    let probed = future::join_all(asking).await.into_iter().enumerate();
    let mut rejected = probed.filter_map(|(index, rejection)| Some((index, rejection?)));
    let (index, rejection) = rejected.next()?;
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

/// The state of one of several joins.
enum PendingTurn<'r> {
    Joining(Joining<'r>),
    Joined(Turn<'r>),
}

impl PendingTurn<'_> {
    fn reject_elsewhere(self) {
        match self {
            Self::Joining(joining) => joining.reject_elsewhere(),
            Self::Joined(turn) => turn.reject_elsewhere(),
        }
    }
}

/// Returns all turns, or the first rejection and its index in `joining`.
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
        // The one that was rejected has its answer, and counts nothing more.
        asked.into_iter().for_each(PendingTurn::reject_elsewhere);
        return Err((index, rejection));
    }
    let turn = |asked| match asked {
        PendingTurn::Joined(turn) => Some(turn),
        PendingTurn::Joining(_) => None,
    };
    Ok(asked.into_iter().filter_map(turn).collect())
}
