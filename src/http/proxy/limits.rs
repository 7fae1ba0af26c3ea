//! All limits of a route, applied to one request.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use smallvec::{SmallVec, smallvec};

use super::Worker;
use super::cost::UsedTurns;
use super::key;
use super::request_info::RequestInfo;
use crate::actors::{Grant, HeldPlace, Joining, Key, Outlook, Probing, Rejection, Turn};
use crate::config::{Route, RouteLimit};
use crate::http::gateway::Gateway;
use crate::limit::{Cost, Excess, Moment};
use crate::observe::events::Limiting;
use crate::observe::metrics::{LimitStatus, Rejected};

/// The verdict of one limit about a request.
#[derive(Debug)]
pub(super) struct LimitVerdict {
    /// The limit as it applied to this request.
    pub(super) wanted: RouteLimit,
    pub(super) key: Key,
    pub(super) status: LimitStatus,
    pub(super) excess: Excess,
    pub(super) outlook: Outlook,
}

impl LimitVerdict {
    /// What the log says of it.
    fn limiting<'r>(&'r self, gateway: &'r Gateway) -> Limiting<'r> {
        Limiting {
            zone: &gateway.zone(self.wanted.zone).settings().name,
            key: &self.key,
            status: self.status.label(),
            excess: self.excess,
        }
    }
}

type Verdicts = SmallVec<[LimitVerdict; 1]>;

/// The verdicts of all limits together: the decisive one first, then the others.
#[derive(Debug, Default)]
pub(super) struct LimitOutcome {
    pub(super) verdicts: Verdicts,
    /// How long the request waited for its turns.
    pub(super) waited: Duration,
    /// Set if the request must not continue: the reason of the only verdict.
    pub(super) rejected: Option<Rejected>,
}

impl LimitOutcome {
    /// Returns the limit that set the request's status.
    ///
    /// It is the limit that rejected the request, or else the one that made it wait longest.
    pub(super) fn decisive(&self) -> Option<&LimitVerdict> {
        self.verdicts.first()
    }
}

/// Where a request waits, as long as it waits.
///
/// If its client leaves, this is all that is known of the request.
#[derive(Debug)]
pub(super) struct WaitingPlace {
    /// Index of the first zone that the request joined.
    pub(super) zone: usize,
    pub(super) key: Key,
    pub(super) since: Moment,
}

/// The turns that a request was given.
///
/// Those that are not used are given back when this is dropped.
#[derive(Debug, Default)]
pub(super) struct Turns<'r>(SmallVec<[Turn<'r>; 1]>);

impl<'r> Turns<'r> {
    /// Uses all turns: their charges stay, unless the answer on this route changes them.
    ///
    /// The request holds the returned places as long as it runs.
    pub(super) fn take(self, route: &Route) -> (UsedTurns<'r>, HeldPlaces<'r>) {
        let used = if route.settles() {
            UsedTurns(self.0.iter().map(Turn::used).collect())
        } else {
            UsedTurns::default()
        };
        (used, self.0.into_iter().filter_map(Turn::take).collect())
    }
}

/// The places that a running request holds in its zones.
pub(super) type HeldPlaces<'r> = Vec<HeldPlace<'r>>;

/// A limit that counts the request, with its key there.
struct PendingLimit {
    /// The limit as it applies to this request.
    wanted: RouteLimit,
    key: Key,
    /// The index of the plan of the key, if it has one.
    plan: Option<usize>,
}

/// Joins all zones of the route for a request of this cost.
///
/// Waits for all turns or the first rejection. All zones are joined at once, but those that bound
/// the running requests of a key: they come after the others, one after another in the order of the
/// zones' names, which no reload changes. So a request that holds a place in one of them only waits
/// for zones further on, and no two requests can wait for each other.
///
/// After a rejection there are no turns: the others are dropped, which refunds their charges. If
/// several zones are joined at once, they are probed first, so that this is rare. While the request
/// waits, `place` says where, and that it has waited since `began`.
pub(super) async fn wait<'r>(
    worker: &Worker,
    gateway: &'r Gateway,
    route: &'r Route,
    info: &RequestInfo<'_>,
    cost: Cost,
    began: Moment,
    place: &mut Option<WaitingPlace>,
) -> (LimitOutcome, Turns<'r>) {
    let (first, others) = pending(gateway, route, info, cost);
    let Some(first) = first else {
        return Default::default();
    };
    *place = Some(WaitingPlace {
        zone: first.wanted.zone,
        key: Key::clone(&first.key),
        since: began,
    });
    let decided = if others.is_empty() {
        let (zone, limit) = (gateway.zone(first.wanted.zone), first.wanted.limit);
        let joined = zone.join(Key::clone(&first.key), first.plan, limit, route.dry_run);
        match joined.await {
            Ok(turn) => {
                let verdict = first.granted(turn.grant(), route.dry_run);
                Ok((smallvec![verdict], Turns(smallvec![turn])))
            }
            Err(rejection) => Err((first, rejection)),
        }
    } else {
        // Boxed: most routes have one limit, and a waiting request should be small.
        Box::pin(join_all(gateway, route, first, others, || {
            worker.pacer.now().since(began)
        }))
        .await
    };
    *place = None;
    let now = worker.pacer.now();
    let (verdicts, turns, rejected) = match decided {
        Ok((verdicts, turns)) => {
            let was_delayed = |verdict: &&LimitVerdict| verdict.status != LimitStatus::Passed;
            for verdict in verdicts.iter().filter(was_delayed) {
                let events = gateway.events(verdict.wanted.zone);
                events.delayed(&verdict.limiting(gateway), now);
            }
            (verdicts, turns, None)
        }
        Err((refused, rejection)) => {
            let verdict = refused.rejected(&rejection, route.dry_run);
            let reason = rejection.reason.label();
            gateway.events(verdict.wanted.zone).rejected(
                &verdict.limiting(gateway),
                reason,
                || route.name(),
            );
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

/// Returns the limits that count the request, the first one separately.
fn pending(
    gateway: &Gateway,
    route: &Route,
    info: &RequestInfo<'_>,
    cost: Cost,
) -> (Option<PendingLimit>, Vec<PendingLimit>) {
    let mut pending = route.limits.iter().filter_map(|wanted| {
        let zone = gateway.zone(wanted.zone).settings();
        let key = key::take(zone, info)?;
        let mut wanted = wanted.costing(Some(cost));
        let plan = zone.plans.index_of(&key);
        wanted.limit = zone.limit_in(plan, wanted.limit);
        Some(PendingLimit { wanted, key, plan })
    });
    (pending.next(), pending.collect())
}

/// Returns the verdicts of several limits when all have given a turn, or the first rejection.
async fn join_all<'r>(
    gateway: &'r Gateway,
    route: &'r Route,
    first: PendingLimit,
    others: Vec<PendingLimit>,
    waited: impl Fn() -> Duration,
) -> Result<(Verdicts, Turns<'r>), (PendingLimit, Rejection)> {
    let mut pending = others;
    pending.insert(0, first);
    // Those without `in_flight` come first, in their order.
    let turn_order = |PendingLimit { wanted, .. }: &PendingLimit| {
        let zone = gateway.zone(wanted.zone).settings();
        wanted.limit.in_flight.map(|_| zone.name.as_str())
    };
    pending.sort_by_key(turn_order);
    let at_once = pending.partition_point(|asked| turn_order(asked).is_none());
    // Whether a place will be free when a request has waited for its time is not known before.
    if at_once > 1
        && let Some((index, rejection)) = probe(gateway, &pending[..at_once], route.dry_run).await
    {
        return Err((pending.swap_remove(index), rejection));
    }
    let join = |asked: &PendingLimit| {
        let (zone, limit) = (gateway.zone(asked.wanted.zone), asked.wanted.limit);
        zone.join(Key::clone(&asked.key), asked.plan, limit, route.dry_run)
    };
    let mut turns = match turns(pending[..at_once].iter().map(join).collect()).await {
        Ok(turns) => turns,
        Err((index, rejection)) => return Err((pending.swap_remove(index), rejection)),
    };
    for index in at_once..pending.len() {
        let asked = &mut pending[index];
        if let Some(max) = &mut asked.wanted.limit.max_wait {
            *max = max.saturating_sub(waited());
        }
        match join(asked).await {
            Ok(turn) => turns.0.push(turn),
            Err(rejection) => return Err((pending.swap_remove(index), rejection)),
        }
    }
    let mut longest = None;
    let mut verdicts = SmallVec::with_capacity(pending.len());
    for (asked, turn) in pending.into_iter().zip(&turns.0) {
        verdicts.push(asked.granted(turn.grant(), route.dry_run));
        if turn.grant().due > longest {
            longest = turn.grant().due;
            let last = verdicts.len() - 1;
            verdicts.swap(0, last);
        }
    }
    Ok((verdicts, turns))
}

/// Returns the first rejection by any of the zones, and its index in `asked`.
///
/// No zone charges the request for this.
async fn probe(
    gateway: &Gateway,
    asked: &[PendingLimit],
    dry_run: bool,
) -> Option<(usize, Rejection)> {
    let ask = |PendingLimit { wanted, key, .. }: &PendingLimit| {
        let zone = gateway.zone(wanted.zone);
        Some(zone.probe(Key::clone(key), wanted.limit))
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
        let zone = gateway.zone(asked.wanted.zone);
        if other == index {
            zone.count_rejection(asked.plan, &rejection, dry_run);
        } else {
            zone.count_cancelled(asked.plan);
        }
    }
    Some((index, rejection))
}

/// The state of one of several joins.
enum PendingTurn<'r> {
    Joining(Joining<'r>),
    Joined(Turn<'r>),
}

/// Returns all turns, or the first rejection and its index in `joining`.
async fn turns<'r>(joining: Vec<Joining<'r>>) -> Result<Turns<'r>, (usize, Rejection)> {
    let mut asked: Vec<PendingTurn<'r>> = joining.into_iter().map(PendingTurn::Joining).collect();
    poll_fn(|cx| {
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
    .await?;
    let turn = |asked| match asked {
        PendingTurn::Joined(turn) => Some(turn),
        PendingTurn::Joining(_) => None,
    };
    Ok(Turns(asked.into_iter().filter_map(turn).collect()))
}

impl PendingLimit {
    fn rejected(self, rejection: &Rejection, dry_run: bool) -> LimitVerdict {
        let outlook = Outlook {
            remaining: 0,
            one_more_in: rejection.retry_after,
        };
        LimitVerdict {
            wanted: self.wanted,
            key: self.key,
            status: rejection.status(dry_run),
            excess: rejection.excess,
            outlook,
        }
    }

    fn granted(self, grant: &Grant, dry_run: bool) -> LimitVerdict {
        LimitVerdict {
            wanted: self.wanted,
            key: self.key,
            status: grant.status(dry_run),
            excess: grant.excess,
            outlook: grant.outlook,
        }
    }
}
