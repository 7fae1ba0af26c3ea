//! A limit that counts a request, before its zone has decided.

use super::super::key::{self, NotLimited};
use super::super::request_info::RequestInfo;
use super::verdict::LimitVerdict;
use crate::actors::{Joining, Key, Outlook, Probing, Rejection, RequestTicket, Turn};
use crate::config::{Route, RouteLimit};
use crate::http::gateway::Gateway;
use crate::limit::Cost;
use crate::observe::metrics::LimitStatus;

/// A limit that counts the request, with its key there.
pub(super) struct PendingLimit {
    /// The limit as it applies to this request.
    pub(super) wanted: RouteLimit,
    pub(super) key: Key,
    /// The index of the plan of the key, if it has one.
    pub(super) plan: Option<usize>,
    /// Decide, charge and count, but let it pass.
    pub(super) dry_run: bool,
    request: RequestTicket,
}

/// Returns the limits that count the request, the first one separately.
pub(super) fn pending(
    gateway: &Gateway,
    route: &Route,
    info: &RequestInfo<'_>,
    cost: Cost,
) -> (Option<PendingLimit>, Vec<PendingLimit>) {
    let held = info.held(&gateway.settings().server);
    let gate = route.origin().and_then(|it| gateway.origin(it).gate());
    let request = RequestTicket::new(gate.and_then(|gate| gate.onward()));
    let mut pending = route.limits.iter().filter_map(|wanted| {
        let zone = gateway.zone(wanted.zone).settings();
        let key = match key::take(zone, info) {
            Ok(key) => key,
            Err(NotLimited::Exempt) => return None,
            Err(NotLimited::NoKey) => {
                let metrics = gateway.zone(wanted.zone).metrics();
                metrics.count(None, LimitStatus::NoKey);
                return None;
            }
        };
        let mut wanted = wanted.costing(Some(cost));
        let plan = zone.plans.index_of(&key);
        wanted.limit = zone.limit_in(plan, wanted.limit);
        if zone.algorithm.queues() {
            wanted.limit = wanted.limit.holding(held);
        }
        // Places for running requests keep a lane for each time in use, so clients must not set it.
        if wanted.limit.max_wait.is_none() && wanted.limit.in_flight.is_none() {
            wanted.limit.max_wait = info.call_timeout;
        }
        let dry_run = gateway.zone(wanted.zone).dry_run(&key, route.dry_run);
        Some(PendingLimit {
            wanted,
            key,
            plan,
            dry_run,
            request,
        })
    });
    (pending.next(), pending.collect())
}

impl PendingLimit {
    /// Asks the zone for a turn.
    pub(super) fn join<'r>(&self, gateway: &'r Gateway) -> Joining<'r> {
        let (zone, limit) = (gateway.zone(self.wanted.zone), self.wanted.limit);
        let key = Key::clone(&self.key);
        zone.join_as(self.request, key, self.plan, limit, self.dry_run)
    }

    /// Asks the zone whether it would reject the request, which it does not charge.
    pub(super) fn probe<'r>(&self, gateway: &'r Gateway) -> Probing<'r> {
        let zone = gateway.zone(self.wanted.zone);
        zone.probe(&self.key, self.wanted.limit, self.dry_run)
    }

    pub(super) fn rejected(self, rejection: &Rejection) -> LimitVerdict {
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

    pub(super) fn granted(self, turn: &Turn) -> LimitVerdict {
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
