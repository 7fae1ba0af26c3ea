//! Replays requests through zones, the places of their keys, and the gates in front of origins,
//! event by event.
//!
//! Where there are gates or places, the departures of all requests depend on each other, and so on
//! those that come later. A request's outcome is then known only when it has left.

mod key_places;
mod onward;
mod origin_gates;
mod zone_queues;

#[cfg(test)]
mod properties;

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use config::{Origin, Route, Settings};
use foldhash::fast::RandomState;
use limit::{Cost, Excess, Moment, Share, Verdict};

use self::key_places::{KeyPlaces, PlaceRequest};
use self::onward::{rejected, released};
use self::origin_gates::OriginGates;
use self::zone_queues::{Charged, ZoneQueues};
use super::line::Line;
use super::outcome::Outcome;
use super::request_keys::RequestKeys;
use crate::observe::metrics::{GateRejected, LimitStatus};

/// The gateway's zones and its origins' gates, deciding on one request after the other.
pub struct Simulator<'a> {
    requests: RequestKeys<'a>,
    zones: ZoneQueues<'a>,
    places: KeyPlaces,
    gates: OriginGates<'a>,
    /// Whether outcomes depend on requests that come later, so that they are known only in the end.
    is_eventual: bool,
    /// The requests that were given a place for which they waited, and have not gone on yet.
    granted: Vec<u64>,
    /// The requests that wait, by their numbers.
    waiting: HashMap<u64, Waiting<'a>, RandomState>,
    /// Outcomes that nobody has taken yet.
    known: Vec<(u64, Outcome)>,
    now: Moment,
    untimed: u64,
}

/// What is known of a request at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ReplayAdmission {
    /// No route takes it.
    Unrouted,
    /// Its outcome.
    Known(Outcome),
    /// It waits. Its outcome comes later, by its number.
    Waits,
}

impl ReplayAdmission {
    /// The outcome if it is known and a route takes the request.
    pub fn outcome(self) -> Option<Outcome> {
        match self {
            Self::Known(outcome) => Some(outcome),
            Self::Unrouted | Self::Waits => None,
        }
    }
}

/// A request that has passed its zones or waits for them.
struct Waiting<'a> {
    outcome: Outcome,
    route: &'a Route,
    /// Its share of the gate, and what it costs there.
    share: Share<Rc<[u8]>>,
    cost: Cost,
    /// How long it holds a place at the origin.
    holds: Duration,
    joined: ZonesJoined,
    /// When it came to the gate. Before that, when it came at all.
    since: Moment,
}

impl<'a> Simulator<'a> {
    /// Creates the zones and gates of `settings`, all empty.
    pub fn new(settings: &'a Settings) -> Self {
        let has_gate = |origin: &Origin| origin.gate_limits().is_some();
        let mut limits = settings.routes.iter().flat_map(|route| &route.limits);
        Self {
            requests: RequestKeys::new(settings),
            zones: ZoneQueues::new(settings),
            places: KeyPlaces::default(),
            gates: OriginGates::new(settings),
            is_eventual: settings.origins.iter().any(has_gate)
                || limits.any(|it| it.limit.in_flight.is_some()),
            granted: Vec::new(),
            waiting: HashMap::default(),
            known: Vec::new(),
            now: Moment::default(),
            untimed: 0,
        }
    }

    /// The variables that keys need and no line contained.
    ///
    /// A request whose key was otherwise empty was not limited.
    pub fn untold(&self) -> impl Iterator<Item = &str> {
        self.requests.untold()
    }

    /// How many requests came to `max_in_flight` or `in_flight` without a time at the origin.
    ///
    /// They held no place.
    pub fn untimed(&self) -> u64 {
        self.untimed
    }

    /// The next request comes. `number` must not be that of another one that waits.
    pub fn judge(&mut self, number: u64, line: &Line) -> ReplayAdmission {
        let now = self.now.max(line.time);
        self.run_until(now);
        self.now = now;
        let Some(route) = self.requests.route(line) else {
            return ReplayAdmission::Unrouted;
        };
        let share = self.share(route, line);
        if let Err(reason) = self.predict(route, &share, Duration::ZERO) {
            let outcome = Outcome::accepted(route.dry_run, &[], self.now);
            return ReplayAdmission::Known(rejected(outcome, self.now, reason, self.now));
        }
        let (outcome, joined) = self.join_zones(number, route, line);
        if outcome.status == LimitStatus::Rejected {
            return ReplayAdmission::Known(outcome);
        }
        let request = Waiting {
            outcome,
            route,
            share,
            cost: line.cost.unwrap_or(route.cost.usual()),
            holds: self.holds(route, line),
            joined,
            since: self.now,
        };
        if request.joined.turns == 0 {
            let outcome = self.go_on(number, request);
            self.run_granted();
            return outcome.map_or(ReplayAdmission::Waits, ReplayAdmission::Known);
        }
        self.zones.begin(&request.joined.charges);
        self.waiting.insert(number, request);
        if self.is_eventual {
            ReplayAdmission::Waits
        } else {
            ReplayAdmission::Known(outcome)
        }
    }

    /// The trace has ended: everybody who waits leaves.
    pub fn end(&mut self) {
        self.run_until(Moment::from_nanos(u64::MAX));
    }

    /// Takes the outcomes that have become known, with the numbers of their requests.
    pub fn take_known(&mut self) -> std::vec::Drain<'_, (u64, Outcome)> {
        self.known.drain(..)
    }

    /// The share of the gate of the route's origin. Its key is empty if the origin has no `share`.
    fn share(&mut self, route: &Route, line: &Line) -> Share<Rc<[u8]>> {
        let zone = route.origin().and_then(|origin| self.gates.share(origin));
        let zone = zone.map(|zone| self.zones.zone(zone));
        let key = zone.map(|zone| self.requests.of(zone, route, line));
        let key = key.unwrap_or_default();
        let plan = zone.and_then(|zone| zone.plans.of(&key));
        let class = plan.and_then(|plan| plan.class.as_ref());
        Share {
            class: Arc::clone(class.unwrap_or(&route.class)),
            weight: plan.map_or(1, |plan| plan.weight),
            key: key.into(),
            above_queue: 0,
        }
    }

    /// How long a request will hold a place at its origin.
    fn holds(&mut self, route: &Route, line: &Line) -> Duration {
        let mut limits = route.limits.iter();
        let is_bounded = limits.any(|limit| limit.limit.in_flight.is_some());
        let has_places = |origin| self.gates.has_places(origin);
        if !is_bounded && !route.origin().is_some_and(has_places) {
            return Duration::ZERO;
        }
        let recorded = line.recorded.as_ref();
        let holds = recorded.and_then(|recorded| recorded.at_origin);
        self.untimed += u64::from(holds.is_none());
        holds.unwrap_or_default()
    }

    /// Joins all zones of the route, or none.
    fn join_zones(&mut self, number: u64, route: &Route, line: &Line) -> (Outcome, ZonesJoined) {
        let now = self.now;
        let rejected = |excess| {
            let outcome = Outcome::rejected(route.dry_run, excess, now);
            (outcome, ZonesJoined::default())
        };
        let (mut asked, mut places) = (Vec::with_capacity(route.limits.len()), Vec::new());
        let mut refused = None;
        for mut wanted in route.limits.iter().map(|it| it.costing(line.cost)) {
            let zone = self.zones.zone(wanted.zone);
            let Some(key) = self.requests.limited(zone, route, line) else {
                continue;
            };
            wanted.limit = zone.limit_of(&key, wanted.limit);
            if !self.zones.remember(wanted.zone, &key, now) {
                return rejected(Excess::default());
            }
            let refusal = self.zones.refuses(wanted, &key, now);
            refused = refused.or(refusal);
            let key = Rc::from(key);
            // A dry run takes no places: see the documentation of `simulate`.
            let place =
                PlaceRequest::of(wanted.zone, &key, wanted.limit).filter(|_| !route.dry_run);
            if let Some(place) = place {
                let (waits, queued, excess) = self.zones.outlook(wanted, &key, now);
                let is_refused = self.places.refuses(&place, wanted.limit, waits, queued);
                refused = refused.or(is_refused.then_some(excess));
                places.push(place);
            }
            asked.push((wanted, key));
        }
        if let Some(excess) = refused {
            return rejected(excess);
        }
        let (mut verdicts, mut charges) = (Vec::new(), Vec::new());
        for (wanted, key) in &asked {
            let joined = self.zones.join(*wanted, key, number, route.dry_run, now);
            if let Some((verdict, charged)) = joined {
                verdicts.push(verdict);
                charges.push(charged);
            }
        }
        let waits = |verdict: &&Verdict| matches!(verdict, Verdict::Delay { .. });
        let turns = verdicts.iter().filter(waits).count();
        let name = |place: &PlaceRequest| self.zones.zone(place.owner.0).name.as_str();
        places.sort_by(|one, other| name(other).cmp(name(one)));
        let joined = ZonesJoined {
            charges,
            turns: if route.dry_run { 0 } else { turns },
            wanted: places,
        };
        (Outcome::accepted(route.dry_run, &verdicts, now), joined)
    }

    /// Everything happens that is due by `until`, in order of time.
    ///
    /// At one moment places come free first. Then requests leave gates, then those who have waited
    /// too long are rejected, then zones give turns.
    fn run_until(&mut self, until: Moment) {
        loop {
            let next = [self.places.due(), self.gates.due(), self.zones.due()];
            let next = next.into_iter().flatten();
            let Some(next) = next.min().filter(|next| *next <= until) else {
                return;
            };
            self.now = self.now.max(next);
            let now = self.now;
            self.granted.extend(self.places.take_ended(now));
            self.run_granted();
            while let Some(number) = self.gates.take(now) {
                if let Some(request) = self.waiting.remove(&number) {
                    self.places.end_at(number, now + request.holds);
                    self.known.push((number, released(&request, now)));
                }
            }
            while let Some(number) = self.gates.take_timeout(now) {
                if let Some(request) = self.waiting.remove(&number) {
                    let outcome = self.reject(number, &request, GateRejected::Timeout);
                    self.known.push((number, outcome));
                }
            }
            while let Some(number) = self.places.take_expired(now) {
                if let Some(request) = self.waiting.remove(&number) {
                    self.give_back(number, &request);
                    let Outcome { time, excess, .. } = request.outcome;
                    let outcome = Outcome::rejected(request.route.dry_run, excess, time);
                    self.known.push((number, outcome));
                }
            }
            for number in self.zones.take_due(now) {
                self.turn(number);
            }
            self.run_granted();
        }
    }
}

/// What a request has of its zones, and what it still needs there.
#[derive(Default)]
struct ZonesJoined {
    charges: Vec<Charged>,
    /// The turns that it still waits for.
    turns: usize,
    /// The places that it still needs then. It waits for the last one.
    wanted: Vec<PlaceRequest>,
}
