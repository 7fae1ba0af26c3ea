//! Replays requests through zones, permits of keys, and gates of origins, event by event.
//!
//! If there are gates or permits, the departures of all requests depend on each other. Then a
//! departure also depends on requests that come later, so an outcome is known only when the request
//! departs.
//!
//! A *permit* is the right to run one request at an origin or of a key. A *charge* is what a zone
//! has counted for a request. `zone_queues`, `key_permits` and `origin_gates` have the state of the
//! three; `after_zones` has the steps of a request that its zones have admitted.

mod after_zones;
mod key_permits;
mod origin_gates;
mod zone_queues;

#[cfg(test)]
mod properties;

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use config::{Origin, Route, Settings};
use foldhash::fast::RandomState;
use limit::{Cost, Excess, Moment, Share, Verdict};

use self::after_zones::at_gate;
use self::key_permits::{PermitRequest, SimulatedKeyPermits};
use self::origin_gates::OriginGates;
use self::zone_queues::{Charged, ZoneQueues};
use super::line::Line;
use super::outcome::Outcome;
use super::request_keys::RequestKeys;
use crate::observe::metrics::{GateRejected, LimitStatus};

/// Simulates the gateway's zones and its origins' gates for one request after the other.
pub struct Simulator<'a> {
    requests: RequestKeys<'a>,
    zones: ZoneQueues<'a>,
    permits: SimulatedKeyPermits,
    gates: OriginGates<'a>,
    /// Whether outcomes depend on later requests. They are then known only at the departure.
    has_late_outcomes: bool,
    /// Numbers of requests that got a permit after a wait and have not continued yet.
    granted: Vec<u64>,
    /// Waiting requests, by their numbers.
    waiting: HashMap<u64, WaitingRequest<'a>, RandomState>,
    /// Outcomes that the caller has not taken yet, with the numbers of their requests.
    known: Vec<(u64, Option<Outcome>)>,
    now: Moment,
    /// Number of requests that need permits but have no time at the origin.
    ///
    /// `max_in_flight` and `in_flight` need permits. These requests held theirs for no time.
    pub untimed: u64,
}

/// Request that waits for the admission of its zones, for permits, or at a gate.
struct WaitingRequest<'a> {
    /// Outcome as far as it is known.
    outcome: Outcome,
    route: &'a Route,
    /// Share of the gate that the request uses: its key, with class and weight.
    share: Share<Rc<[u8]>>,
    /// Cost at the gate.
    cost: Cost,
    /// Time for which the request holds its permits.
    permit_time: Duration,
    /// State of the request in its zones.
    joined: ZonesJoined,
    /// Instant at which the request joined the gate. Before that, the instant of its arrival.
    joined_gate: Moment,
}

impl<'a> Simulator<'a> {
    /// Creates the zones and gates of `settings`, all empty.
    pub fn new(settings: &'a Settings) -> Self {
        let has_gate = |origin: &Origin| origin.gate_limits().is_some();
        let mut limits = settings.routes.iter().flat_map(|route| &route.limits);
        Self {
            requests: RequestKeys::new(settings),
            zones: ZoneQueues::new(settings),
            permits: SimulatedKeyPermits::default(),
            gates: OriginGates::new(settings),
            has_late_outcomes: settings.origins.iter().any(has_gate)
                || limits.any(|it| it.limit.in_flight.is_some()),
            granted: Vec::new(),
            waiting: HashMap::default(),
            known: Vec::new(),
            now: Moment::default(),
            untimed: 0,
        }
    }

    /// Returns the variables that keys need but no line contained.
    ///
    /// A request whose key was empty without such a variable was not limited.
    pub fn missing_variables(&self) -> &BTreeSet<String> {
        &self.requests.missing_variables
    }

    /// Adds the next request of the trace. `number` must differ from the numbers of all waiters.
    pub fn submit(&mut self, number: u64, line: &Line) {
        let now = self.now.max(line.time);
        self.run_until(now);
        self.now = now;
        let Some(route) = self.requests.route(line) else {
            return self.known.push((number, None));
        };
        let outcome = self.join(number, route, line);
        self.report(number, outcome);
    }

    /// Joins the zones and the gate of a route. Returns the outcome if it is known.
    fn join(&mut self, number: u64, route: &'a Route, line: &Line) -> Option<Outcome> {
        let share = self.share(route, line);
        if let Err(reason) = self.predict(route, &share, Duration::ZERO) {
            let outcome = Outcome::accepted(route.dry_run, &[], self.now);
            return Some(at_gate(outcome, self.now, self.now, Some(reason)));
        }
        let (outcome, joined) = self.join_zones(number, route, line);
        if outcome.status == LimitStatus::Rejected {
            return Some(outcome);
        }
        let request = WaitingRequest {
            outcome,
            route,
            share,
            // Without a cost in the trace, the usual cost of the route.
            cost: line.cost.unwrap_or(route.cost.cost_if_unknown()),
            permit_time: self.find_permit_time(route, line),
            joined,
            joined_gate: self.now,
        };
        if request.joined.pending_zones == 0 {
            let outcome = self.proceed(number, request);
            self.run_granted();
            return outcome;
        }
        self.zones.set_waiting(&request.joined.charges, true);
        self.waiting.insert(number, request);
        (!self.has_late_outcomes).then_some(outcome)
    }

    /// Reports the outcome of a request, if it is known.
    fn report(&mut self, number: u64, outcome: Option<Outcome>) {
        self.known
            .extend(outcome.map(|outcome| (number, Some(outcome))));
    }

    /// Ends the trace: all waiters depart.
    pub fn end(&mut self) {
        self.run_until(Moment::from_nanos(u64::MAX));
    }

    /// Takes the outcomes that have become known, with the numbers of their requests.
    ///
    /// The outcome is `None` if no route matches the request.
    pub fn take_known(&mut self) -> std::vec::Drain<'_, (u64, Option<Outcome>)> {
        self.known.drain(..)
    }

    /// Returns the request's share of the origin's gate. Its key is empty without `share`.
    fn share(&mut self, route: &Route, line: &Line) -> Share<Rc<[u8]>> {
        let zone = route.origin().and_then(|origin| self.gates.share(origin));
        let zone = zone.map(|zone| self.zones.zone(zone));
        let key = zone.map(|zone| self.requests.find_key(zone, route, line));
        let key = key.unwrap_or_default();
        let plan = zone.and_then(|zone| zone.plans.plan_of(&key));
        let class = plan.and_then(|plan| plan.class.as_ref());
        Share {
            class: Arc::clone(class.unwrap_or(&route.class)),
            weight: plan.map_or(1, |plan| plan.weight),
            key: key.into(),
            above_queue: 0,
        }
    }

    /// Returns the time for which a request will hold its permits, from the time at its origin.
    fn find_permit_time(&mut self, route: &Route, line: &Line) -> Duration {
        let mut limits = route.limits.iter();
        let is_bounded = limits.any(|limit| limit.limit.in_flight.is_some());
        let limits_in_flight = |origin| self.gates.limits_in_flight(origin);
        if !is_bounded && !route.origin().is_some_and(limits_in_flight) {
            return Duration::ZERO;
        }
        let recorded = line.recorded.as_ref();
        let at_origin = recorded.and_then(|recorded| recorded.at_origin);
        self.untimed += u64::from(at_origin.is_none());
        at_origin.unwrap_or_default()
    }

    /// Joins all zones of the route, or none.
    fn join_zones(&mut self, number: u64, route: &Route, line: &Line) -> (Outcome, ZonesJoined) {
        let now = self.now;
        let rejected = |excess| {
            let outcome = Outcome::rejected(route.dry_run, excess, now);
            (outcome, ZonesJoined::default())
        };
        let (mut joins, mut requested_permits) = (Vec::new(), Vec::new());
        let mut refused = None;
        for mut requested in route.limits.iter().map(|it| it.costing(line.cost)) {
            let zone = self.zones.zone(requested.zone);
            let Some(key) = self.requests.find_limited_key(zone, route, line) else {
                continue;
            };
            requested.limit = zone.limit_of(&key, requested.limit);
            if !self.zones.remember(requested.zone, &key, now) {
                return rejected(Excess::default());
            }
            let Some((verdict, queued)) = self.zones.predict(requested, &key, now) else {
                continue;
            };
            let (waits, excess) = match verdict {
                Verdict::Pass { excess } => (false, excess),
                Verdict::Delay { excess, .. } => (true, excess),
                Verdict::Reject(refusal) => {
                    // The first rejection in the order of the limits decides.
                    refused.get_or_insert(refusal.excess);
                    (true, refusal.excess)
                }
            };
            let key = Rc::from(key);
            // A dry run takes no permits: see the documentation of `simulate`.
            let permit = PermitRequest::of(requested.zone, &key, requested.limit);
            if let Some(permit) = permit.filter(|_| !route.dry_run) {
                let permits = &self.permits;
                if permits.refuses(&permit, requested.limit, waits, queued) {
                    refused.get_or_insert(excess);
                }
                requested_permits.push(permit);
            }
            joins.push((requested, key));
        }
        // All zones accept, or none is charged.
        if let Some(excess) = refused {
            return rejected(excess);
        }
        let (mut verdicts, mut charges) = (Vec::new(), Vec::new());
        for (requested, key) in &joins {
            let joined = self.zones.join(*requested, key, number, route.dry_run, now);
            if let Some((verdict, charged)) = joined {
                verdicts.push(verdict);
                charges.push(charged);
            }
        }
        let waits = |verdict: &&Verdict| matches!(verdict, Verdict::Delay { .. });
        let pending_zones = verdicts.iter().filter(waits).count();
        let name = |permit: &PermitRequest| self.zones.zone(permit.zone_key.0).name.as_str();
        // Permits are taken from the end, so in the order of the zones' names, as in the gateway.
        requested_permits.sort_by(|one, other| name(other).cmp(name(one)));
        let joined = ZonesJoined {
            charges,
            pending_zones: if route.dry_run { 0 } else { pending_zones },
            requested_permits,
        };
        (Outcome::accepted(route.dry_run, &verdicts, now), joined)
    }

    /// Runs all events that are due by `until`, in order of time.
    ///
    /// At the same instant, the order is: permits become free, requests pass gates, expired waiters
    /// are rejected, zones admit requests.
    fn run_until(&mut self, until: Moment) {
        loop {
            let due = [self.permits.due(), self.gates.due(), self.zones.due()];
            let next = due.into_iter().flatten().min();
            let Some(next) = next.filter(|next| *next <= until) else {
                return;
            };
            self.now = self.now.max(next);
            let now = self.now;
            self.granted.extend(self.permits.take_ended(now));
            self.run_granted();
            while let Some(number) = self.gates.take(now) {
                if let Some(request) = self.waiting.remove(&number) {
                    self.permits.end_at(number, now + request.permit_time);
                    let outcome = at_gate(request.outcome, request.joined_gate, now, None);
                    self.report(number, Some(outcome));
                }
            }
            while let Some(number) = self.gates.take_timeout(now) {
                if let Some(request) = self.waiting.remove(&number) {
                    let outcome = self.reject(number, &request, GateRejected::Timeout);
                    self.report(number, Some(outcome));
                }
            }
            while let Some(number) = self.permits.take_expired(now) {
                if let Some(request) = self.waiting.remove(&number) {
                    self.give_back(number, &request);
                    let Outcome { time, excess, .. } = request.outcome;
                    let outcome = Outcome::rejected(request.route.dry_run, excess, time);
                    self.report(number, Some(outcome));
                }
            }
            for number in self.zones.take_due(now) {
                self.count_admission(number);
            }
            self.run_granted();
        }
    }
}

/// State of a request in its zones: its charges, and its remaining waits.
#[derive(Default)]
struct ZonesJoined {
    charges: Vec<Charged>,
    /// Number of zones that have not admitted the request yet.
    pending_zones: usize,
    /// Permits that the request still needs. It waits for the last one.
    requested_permits: Vec<PermitRequest>,
}
