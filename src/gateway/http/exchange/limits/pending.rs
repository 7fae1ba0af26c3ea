//! A limit that applies to a request, before its zone has decided.
//!
//! A *zone* limits the rate of each key. A request *joins* the zone to be admitted; the *verdict*
//! is the zone's decision, for the response and the log. `wait` handles a single limit, `several`
//! more.

use config::{Route, RouteLimit};
use limit::{Cost, Limit};

use super::super::key::{self, NotLimited};
use super::super::request_info::RequestInfo;
use super::verdict::{AppliedLimit, LimitVerdict};
use crate::http::gateway::Gateway;
use crate::observe::metrics::LimitStatus;
use crate::zone::{Join, Joined, Joining, Rejection, ZoneAdmission, next_ticket};

/// A limit that applies to the request and was not joined yet.
pub(super) struct PendingLimit {
    /// Index of the zone.
    pub(super) zone: usize,
    /// The join to send to the zone.
    pub(super) join: Join,
}

/// A limit whose zone was joined.
pub(in super::super) struct JoinedLimit<'r> {
    /// Limit in the form for response fields.
    pub(super) limit: AppliedLimit,
    /// The join, which completes with the zone's decision.
    pub(super) joining: Joining<'r>,
}

/// Decision of a request's only limit: its verdict, with the admission or the rejection.
pub(super) type DecidedLimit<'r> =
    Result<(LimitVerdict, ZoneAdmission<'r>), (LimitVerdict, Rejection)>;

/// Returns the limits that apply to the request.
pub(super) fn pending_limits<'p>(
    gateway: &'p Gateway,
    route: &'p Route,
    info: &'p RequestInfo<'_>,
    cost: Cost,
) -> impl Iterator<Item = PendingLimit> + use<'p> {
    let above_burst = info.above_burst(&gateway.settings().server);
    let gate = route.origin().and_then(|it| gateway.origin(it).gate());
    // `ticket` identifies the request in all its zones, `onward` the gate that it goes to after
    // them.
    let (ticket, onward) = (next_ticket(), gate.and_then(|gate| gate.destination()));
    route.limits.iter().filter_map(move |route_limit| {
        let zone = gateway.zone(route_limit.zone).settings();
        let key = match key::for_zone(zone, info, route) {
            Ok(key) => key,
            Err(NotLimited::Exempt) => return None,
            Err(NotLimited::NoKey) => {
                let metrics = gateway.zone(route_limit.zone).metrics();
                metrics.count(None, LimitStatus::NoKey);
                return None;
            }
        };
        let plan = zone.plans.index_of(&key);
        let limit_with_cost = Limit {
            cost,
            ..route_limit.limit
        };
        let mut limit = zone.limit_in(plan, limit_with_cost);
        if zone.algorithm.queues() {
            limit = limit.with_above_burst(above_burst);
        }
        // A gRPC client chooses its timeout. With `in_flight`, each value of `max_wait` in use has
        // its own queue, so clients must not choose it.
        if limit.max_wait.is_none() && limit.in_flight.is_none() {
            limit.max_wait = info.call_timeout();
        }
        let dry_run = gateway.zone(route_limit.zone).dry_run(&key, route.dry_run);
        Some(PendingLimit {
            zone: route_limit.zone,
            join: Join {
                key,
                plan,
                limit,
                dry_run,
                ticket,
                onward,
                takes_permits_later: false,
            },
        })
    })
}

impl JoinedLimit<'_> {
    /// Returns the verdict of this limit after an admission.
    pub(super) fn admitted_verdict(&self, admission: &ZoneAdmission<'_>) -> LimitVerdict {
        LimitVerdict::of_admission(self.limit, admission, self.joining.is_dry_run())
    }

    /// Returns the verdict of this limit after a rejection.
    pub(super) fn rejected_verdict(&mut self, rejection: &Rejection) -> LimitVerdict {
        let (key, dry_run) = (self.joining.take_key(), self.joining.is_dry_run());
        LimitVerdict::of_rejection(self.limit, key, rejection, dry_run)
    }
}

impl PendingLimit {
    /// Joins the zone. Returns its decision, or the joined limit if the request must wait.
    pub(super) fn join_at_once(
        self,
        gateway: &Gateway,
    ) -> Result<DecidedLimit<'_>, JoinedLimit<'_>> {
        let (limit, dry_run) = (self.applied_limit(), self.join.dry_run);
        match gateway.zone(self.zone).join_at_once(self.join) {
            Joined::ZoneAdmission(admission) => Ok(Ok((
                LimitVerdict::of_admission(limit, &admission, dry_run),
                admission,
            ))),
            Joined::Rejected(key, rejection) => {
                let verdict = LimitVerdict::of_rejection(limit, key, &rejection, dry_run);
                Ok(Err((verdict, rejection)))
            }
            Joined::Waiting(joining) => Err(JoinedLimit { limit, joining }),
        }
    }

    /// Joins the zone. This value is kept, because the verdict needs it later.
    pub(super) fn join<'r>(&self, gateway: &'r Gateway) -> Joining<'r> {
        gateway.zone(self.zone).join(self.join.clone())
    }

    /// Returns the verdict of this limit after a rejection.
    pub(super) fn rejected_verdict(self, rejection: &Rejection) -> LimitVerdict {
        let (limit, dry_run) = (self.applied_limit(), self.join.dry_run);
        LimitVerdict::of_rejection(limit, self.join.key, rejection, dry_run)
    }

    /// Returns the verdict of this limit after an admission.
    pub(super) fn admitted_verdict(self, admission: &ZoneAdmission) -> LimitVerdict {
        LimitVerdict::of_admission(self.applied_limit(), admission, self.join.dry_run)
    }

    /// Returns the limit in the form for response fields.
    fn applied_limit(&self) -> AppliedLimit {
        AppliedLimit::of(&RouteLimit {
            zone: self.zone,
            limit: self.join.limit,
        })
    }
}
