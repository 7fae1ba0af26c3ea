//! A request's way through all the limits of its route.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use super::Worker;
use super::key;
use super::request_info::RequestInfo;
use crate::actors::{Grant, Joining, Key, Outlook, Probing, Rejection, Turn};
use crate::config::Route;
use crate::gateway::Gateway;
use crate::limit::{Excess, Limit, Moment};
use crate::metrics::LimitStatus;

/// What one limit has said of a request.
#[derive(Debug)]
pub(super) struct LimitVerdict {
    /// Index of the zone.
    pub(super) zone: usize,
    pub(super) key: Key,
    pub(super) limit: Limit,
    pub(super) status: LimitStatus,
    pub(super) excess: Excess,
    pub(super) outlook: Outlook,
}

/// What all limits together have said: `decisive` first, the others after it.
#[derive(Debug)]
pub(super) struct LimitOutcome {
    pub(super) verdicts: Vec<LimitVerdict>,
    /// How long the request waited for its turns.
    pub(super) waited: Duration,
    /// Set where the request must not go on.
    pub(super) rejection: Option<Rejection>,
}

impl LimitOutcome {
    /// The limit that made the request's status: the one that rejected it, or else the one that made it wait longest.
    pub(super) fn decisive(&self) -> Option<&LimitVerdict> {
        self.verdicts.first()
    }
}

/// The limits of a request that are not decided yet. In a place of their own: whoever waits should be small.
type Pending = Vec<PendingLimit>;

struct PendingLimit {
    zone: usize,
    key: Key,
    limit: Limit,
    joining: Option<Joining>,
    turn: Option<Turn>,
}

/// Where a request waits, for as long as it does: if its client leaves, this is all that is known of it.
#[derive(Debug)]
pub(super) struct WaitingPlace {
    /// Index of the first zone that it joined.
    pub(super) zone: usize,
    pub(super) key: Key,
    pub(super) since: Moment,
}

/// Joins all zones of the route at once and waits until the last lets the request go on, or the first rejects it. Then
/// the other turns are dropped, and their charges go back; several zones are asked beforehand, so that this is rare.
/// Meanwhile `place` tells where it waits, since it `began`.
pub(super) async fn wait(
    worker: &Worker,
    gateway: &Gateway,
    route: &Route,
    info: &RequestInfo<'_>,
    began: Moment,
    place: &mut Option<WaitingPlace>,
) -> LimitOutcome {
    let mut asked = Pending::with_capacity(route.limits.len());
    for wanted in &route.limits {
        let (zone, limit) = (gateway.zone(wanted.zone), wanted.limit);
        if let Some(key) = key::take(zone.settings(), info) {
            asked.push(PendingLimit {
                zone: wanted.zone,
                key,
                limit,
                joining: None,
                turn: None,
            });
        }
    }
    *place = asked.first().map(|asked| WaitingPlace {
        zone: asked.zone,
        key: Key::clone(&asked.key),
        since: began,
    });
    let mut rejected = None;
    if asked.len() > 1 {
        rejected = probe(gateway, &asked, route.dry_run).await;
    }
    if rejected.is_none() {
        for asked in &mut asked {
            let join =
                gateway
                    .zone(asked.zone)
                    .join(Key::clone(&asked.key), asked.limit, route.dry_run);
            asked.joining = Some(join);
        }
        rejected = join(&mut asked).await;
    }
    *place = None;
    let now = worker.pacer.now();
    let (verdicts, rejection) = match rejected {
        None => (granted(asked, route.dry_run), None),
        Some((index, rejection)) => {
            let verdict = refused(asked.swap_remove(index), &rejection, route.dry_run);
            let holds = verdict.status == LimitStatus::Rejected;
            (vec![verdict], holds.then_some(rejection))
        }
    };
    for LimitVerdict {
        zone,
        key,
        status,
        excess,
        ..
    } in &verdicts
    {
        let name = &gateway.zone(*zone).settings().name;
        gateway.events(*zone).tell(name, key, *status, *excess, now);
    }
    LimitOutcome {
        verdicts,
        waited: now.since(began),
        rejection,
    }
}

/// The first rejection by any of the zones, and which of `asked` it is, before any of them charges the request.
async fn probe(
    gateway: &Gateway,
    asked: &[PendingLimit],
    dry_run: bool,
) -> Option<(usize, Rejection)> {
    let ask = |asked: &PendingLimit| {
        Some(
            gateway
                .zone(asked.zone)
                .probe(Key::clone(&asked.key), asked.limit),
        )
    };
    let mut probes: Vec<Option<Probing>> = asked.iter().map(ask).collect();
    let (index, rejection) = poll_fn(|cx| {
        let mut pending = false;
        for (index, slot) in probes.iter_mut().enumerate() {
            let Some(probe) = slot else { continue };
            match Pin::new(probe).poll(cx) {
                Poll::Pending => pending = true,
                Poll::Ready(None) => *slot = None,
                Poll::Ready(Some(rejection)) => return Poll::Ready(Some((index, rejection))),
            }
        }
        if pending {
            Poll::Pending
        } else {
            Poll::Ready(None)
        }
    })
    .await?;
    for (other, asked) in asked.iter().enumerate() {
        let zone = gateway.zone(asked.zone);
        if other == index {
            zone.count_rejection(&rejection, dry_run);
        } else {
            zone.count_cancelled();
        }
    }
    Some((index, rejection))
}

/// All turns, put into `asked`; or the first rejection, and which of `asked` it is.
async fn join(asked: &mut [PendingLimit]) -> Option<(usize, Rejection)> {
    poll_fn(|cx| {
        let mut pending = false;
        for (index, asked) in asked.iter_mut().enumerate() {
            let Some(joining) = &mut asked.joining else {
                continue;
            };
            match Pin::new(joining).poll(cx) {
                Poll::Pending => pending = true,
                Poll::Ready(Ok(turn)) => {
                    asked.joining = None;
                    asked.turn = Some(turn);
                }
                Poll::Ready(Err(rejection)) => {
                    asked.joining = None;
                    return Poll::Ready(Some((index, rejection)));
                }
            }
        }
        if pending {
            Poll::Pending
        } else {
            Poll::Ready(None)
        }
    })
    .await
}

fn refused(asked: PendingLimit, rejection: &Rejection, dry_run: bool) -> LimitVerdict {
    let PendingLimit {
        zone, key, limit, ..
    } = asked;
    let outlook = Outlook {
        remaining: 0,
        one_more_in: rejection.retry_after,
    };
    LimitVerdict {
        zone,
        key,
        limit,
        status: rejection.status(dry_run),
        excess: rejection.excess,
        outlook,
    }
}

fn granted(asked: Pending, dry_run: bool) -> Vec<LimitVerdict> {
    let mut longest = None;
    let mut verdicts: Vec<LimitVerdict> = Vec::with_capacity(asked.len());
    for PendingLimit {
        zone,
        key,
        limit,
        turn,
        ..
    } in asked
    {
        let Some(turn) = turn else { continue };
        let grant = turn.take();
        let status = grant.status(dry_run);
        let Grant {
            due,
            excess,
            outlook,
            ..
        } = grant;
        verdicts.push(LimitVerdict {
            zone,
            key,
            limit,
            status,
            excess,
            outlook,
        });
        if due > longest {
            longest = due;
            let last = verdicts.len() - 1;
            verdicts.swap(0, last);
        }
    }
    verdicts
}
