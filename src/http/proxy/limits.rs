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
use crate::actors::{HeldPlace, Joining, Key, NEW_KEYS, Outlook, Probing, Rejection, Turn};
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
    /// The request's own key.
    pub(super) key: Key,
    /// Whether it was counted in the bucket that unknown keys share.
    pub(super) is_flood: bool,
    pub(super) status: LimitStatus,
    pub(super) excess: Excess,
    pub(super) outlook: Outlook,
}

impl LimitVerdict {
    /// What the log says of it.
    fn limiting<'r>(&'r self, gateway: &'r Gateway) -> Limiting<'r> {
        Limiting {
            zone: &gateway.zone(self.wanted.zone).settings().name,
            key: if self.is_flood { NEW_KEYS } else { &self.key },
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

    /// Gives all turns back, because another zone or the origin's gate rejected the request.
    pub(super) fn reject_elsewhere(self) {
        self.0.into_iter().for_each(Turn::reject_elsewhere);
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
    /// Decide, charge and count, but let it pass.
    dry_run: bool,
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
    let (first, others, tried) = set_apart(first, others);
    *place = Some(WaitingPlace {
        zone: first.wanted.zone,
        key: Key::clone(&first.key),
        since: began,
    });
    let tried = try_out(gateway, route, tried).await;
    let decided = if others.is_empty() {
        let (zone, limit) = (gateway.zone(first.wanted.zone), first.wanted.limit);
        let joined = zone.join(Key::clone(&first.key), first.plan, limit, first.dry_run);
        match joined.await {
            Ok(turn) => {
                let verdict = first.granted(&turn);
                Ok((smallvec![verdict], Turns(smallvec![turn])))
            }
            Err(rejection) => Err((first, rejection)),
        }
    } else {
        // Boxed: most routes have one limit, and a waiting request should be small.
        Box::pin(join_all(gateway, first, others, || {
            worker.pacer.now().since(began)
        }))
        .await
    };
    *place = None;
    let now = worker.pacer.now();
    let (verdicts, turns, rejected) = match decided {
        Ok((mut verdicts, mut turns)) => {
            let was_delayed = |verdict: &&LimitVerdict| verdict.status != LimitStatus::Passed;
            for verdict in verdicts.iter().filter(was_delayed) {
                let events = gateway.events(verdict.wanted.zone);
                events.delayed(&verdict.limiting(gateway), now);
            }
            verdicts.extend(tried.0);
            turns.0.extend(tried.1.0);
            (verdicts, turns, None)
        }
        Err((refused, rejection)) => {
            let verdict = refused.rejected(&rejection);
            tell_rejection(gateway, route, &verdict, &rejection);
            tried.1.reject_elsewhere();
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
        let dry_run = gateway.zone(wanted.zone).dry_run(&key, route.dry_run);
        Some(PendingLimit {
            wanted,
            key,
            plan,
            dry_run,
        })
    });
    (pending.next(), pending.collect())
}

/// Sets the limits in dry run apart from the others, if there are both: an override may be for one
/// of several zones, and must not let the request past the others.
fn set_apart(
    first: PendingLimit,
    others: Vec<PendingLimit>,
) -> (PendingLimit, Vec<PendingLimit>, Vec<PendingLimit>) {
    let Some(index) = others.iter().position(|it| it.dry_run != first.dry_run) else {
        return (first, others, Vec::new());
    };
    let mut others = others;
    let other = others.swap_remove(index);
    let (enforced, tried) = if first.dry_run {
        (other, first)
    } else {
        (first, other)
    };
    let (mut dry, others): (Vec<_>, Vec<_>) = others.into_iter().partition(|it| it.dry_run);
    dry.push(tried);
    (enforced, others, dry)
}

/// Joins limits in dry run beside others. They answer at once, and reject nothing.
async fn try_out<'r>(
    gateway: &'r Gateway,
    route: &Route,
    tried: Vec<PendingLimit>,
) -> (Verdicts, Turns<'r>) {
    let (mut verdicts, mut turns) = (Verdicts::new(), Turns::default());
    for asked in tried {
        let (zone, limit) = (gateway.zone(asked.wanted.zone), asked.wanted.limit);
        match zone
            .join(Key::clone(&asked.key), asked.plan, limit, true)
            .await
        {
            Ok(turn) => {
                verdicts.push(asked.granted(&turn));
                turns.0.push(turn);
            }
            Err(rejection) => {
                let verdict = asked.rejected(&rejection);
                tell_rejection(gateway, route, &verdict, &rejection);
                verdicts.push(verdict);
            }
        }
    }
    (verdicts, turns)
}

fn tell_rejection(gateway: &Gateway, route: &Route, verdict: &LimitVerdict, rejection: &Rejection) {
    let (limiting, reason) = (verdict.limiting(gateway), rejection.reason.label());
    let events = gateway.events(verdict.wanted.zone);
    events.rejected(&limiting, reason, || route.name());
}

/// Returns the verdicts of several limits when all have given a turn, or the first rejection.
async fn join_all(
    gateway: &Gateway,
    first: PendingLimit,
    others: Vec<PendingLimit>,
    waited: impl Fn() -> Duration,
) -> Result<(Verdicts, Turns<'_>), (PendingLimit, Rejection)> {
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
        && let Some((index, rejection)) = probe(gateway, &pending[..at_once]).await
    {
        return Err((pending.swap_remove(index), rejection));
    }
    let join = |asked: &PendingLimit| {
        let (zone, limit) = (gateway.zone(asked.wanted.zone), asked.wanted.limit);
        zone.join(Key::clone(&asked.key), asked.plan, limit, asked.dry_run)
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
            Err(rejection) => {
                turns.reject_elsewhere();
                return Err((pending.swap_remove(index), rejection));
            }
        }
    }
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

/// Returns the first rejection by any of the zones, and its index in `asked`.
///
/// No zone charges the request for this.
async fn probe(gateway: &Gateway, asked: &[PendingLimit]) -> Option<(usize, Rejection)> {
    let ask = |asked: &PendingLimit| {
        let zone = gateway.zone(asked.wanted.zone);
        Some(zone.probe(&asked.key, asked.wanted.limit, asked.dry_run))
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
            zone.count_rejection(asked.plan, &rejection, asked.dry_run);
        } else {
            zone.count_rejected_elsewhere(asked.plan);
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
    Ok(Turns(asked.into_iter().filter_map(turn).collect()))
}

impl PendingLimit {
    fn rejected(self, rejection: &Rejection) -> LimitVerdict {
        let outlook = Outlook {
            remaining: 0,
            one_more_in: rejection.retry_after,
        };
        LimitVerdict {
            wanted: self.wanted,
            key: self.key,
            is_flood: rejection.is_flood,
            status: rejection.status(self.dry_run),
            excess: rejection.excess,
            outlook,
        }
    }

    fn granted(self, turn: &Turn) -> LimitVerdict {
        let grant = turn.grant();
        LimitVerdict {
            wanted: self.wanted,
            key: self.key,
            is_flood: turn.is_flood(),
            status: grant.status(self.dry_run),
            excess: grant.excess,
            outlook: grant.outlook,
        }
    }
}
