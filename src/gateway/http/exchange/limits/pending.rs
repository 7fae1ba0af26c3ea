//! A limit that counts a request, before its zone has decided.

use config::{Route, RouteLimit};
use limit::Cost;

use super::super::key::{self, NotLimited};
use super::super::request_info::RequestInfo;
use super::verdict::{AppliedLimit, LimitVerdict};
use crate::http::gateway::Gateway;
use crate::observe::metrics::LimitStatus;
use crate::zone::{Joined, Joining, Key, Probing, Rejection, RequestTicket, Turn};

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

/// A limit whose zone was asked for a turn.
#[derive(Debug)]
pub(in super::super) struct JoinedLimit<'r> {
    pub(super) limit: AppliedLimit,
    pub(super) joining: Joining<'r>,
}

/// The decision of a request's only limit.
pub(super) type DecidedLimit<'r> = Result<(LimitVerdict, Turn<'r>), (LimitVerdict, Rejection)>;

/// Returns the limits that count the request.
pub(super) fn pending<'p>(
    gateway: &'p Gateway,
    route: &'p Route,
    info: &'p RequestInfo<'_>,
    cost: Cost,
) -> impl Iterator<Item = PendingLimit> + use<'p> {
    let above_burst = info.above_burst(&gateway.settings().server);
    let gate = route.origin().and_then(|it| gateway.origin(it).gate());
    let request = RequestTicket::new(gate.and_then(|gate| gate.onward()));
    route.limits.iter().filter_map(move |wanted| {
        let zone = gateway.zone(wanted.zone).settings();
        let key = match key::take(zone, info, route) {
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
            wanted.limit = wanted.limit.with_above_burst(above_burst);
        }
        // Places for running requests keep a lane for each time in use, so clients must not set it.
        if wanted.limit.max_wait.is_none() && wanted.limit.in_flight.is_none() {
            wanted.limit.max_wait = info.call_timeout();
        }
        let dry_run = gateway.zone(wanted.zone).dry_run(&key, route.dry_run);
        Some(PendingLimit {
            wanted,
            key,
            plan,
            dry_run,
            request,
        })
    })
}

impl JoinedLimit<'_> {
    pub(super) fn granted(&self, turn: &Turn<'_>) -> LimitVerdict {
        LimitVerdict::granted(self.limit, turn, self.joining.is_dry_run())
    }

    pub(super) fn rejected(&mut self, rejection: &Rejection) -> LimitVerdict {
        let (key, dry_run) = (self.joining.take_key(), self.joining.is_dry_run());
        LimitVerdict::rejected(self.limit, key, rejection, dry_run)
    }
}

impl PendingLimit {
    /// Asks the zone for a turn. Returns its decision, or the limit at which the request waits.
    pub(super) fn ask(self, gateway: &Gateway) -> Result<DecidedLimit<'_>, JoinedLimit<'_>> {
        let (zone, limit) = (
            gateway.zone(self.wanted.zone),
            AppliedLimit::from(&self.wanted),
        );
        let (plan, dry_run) = (self.plan, self.dry_run);
        match zone.ask(self.request, self.key, plan, self.wanted.limit, dry_run) {
            Joined::Turn(turn) => Ok(Ok((LimitVerdict::granted(limit, &turn, dry_run), turn))),
            Joined::Rejected(key, rejection) => {
                let verdict = LimitVerdict::rejected(limit, key, &rejection, dry_run);
                Ok(Err((verdict, rejection)))
            }
            Joined::Waiting(joining) => Err(JoinedLimit { limit, joining }),
        }
    }

    /// Asks the zone for a turn, and keeps what the verdict needs.
    pub(super) fn join<'r>(&self, gateway: &'r Gateway) -> Joining<'r> {
        self.join_as(self.request, gateway)
    }

    /// Asks the zone for a turn without its place, which the request asks for later.
    pub(super) fn join_without_place<'r>(&self, gateway: &'r Gateway) -> Joining<'r> {
        self.join_as(self.request.with_places_later(), gateway)
    }

    fn join_as<'r>(&self, request: RequestTicket, gateway: &'r Gateway) -> Joining<'r> {
        let (zone, limit) = (gateway.zone(self.wanted.zone), self.wanted.limit);
        let key = Key::clone(&self.key);
        zone.join_as(request, key, self.plan, limit, self.dry_run)
    }

    /// Asks the zone whether it would reject the request, which it does not charge.
    pub(super) fn probe<'r>(&self, gateway: &'r Gateway) -> Probing<'r> {
        let zone = gateway.zone(self.wanted.zone);
        zone.probe(&self.key, self.wanted.limit, self.dry_run)
    }

    pub(super) fn rejected(self, rejection: &Rejection) -> LimitVerdict {
        let limit = AppliedLimit::from(&self.wanted);
        LimitVerdict::rejected(limit, self.key, rejection, self.dry_run)
    }

    pub(super) fn granted(self, turn: &Turn) -> LimitVerdict {
        LimitVerdict::granted(AppliedLimit::from(&self.wanted), turn, self.dry_run)
    }
}
