//! A request's way through the gate of its origin.

use std::cell::OnceCell;
use std::sync::Arc;
use std::time::Duration;

use config::{Origin, Plans, Route};
use limit::{Cost, Moment, Share, WaitLimits, stable_hash};

use super::key;
use super::limits::{LimitOutcome, Turns};
use super::onward::Destination;
use super::request_info::RequestInfo;
use super::worker::Worker;
use crate::gate::{Admission, GateRejection, KeyAtGate, NoTurn, OriginGate, Place, Waiting};
use crate::http::gateway::Gateway;
use crate::observe::events::RejectionAtGate;
use crate::observe::key_names::KeyNames;
use crate::observe::metrics::GateRejected;
use crate::time::clock;
use crate::zone::{Key, NEW_KEYS};

/// What became of a request at the gate of its origin.
pub(super) enum AtGate {
    /// It waits there since this moment. If its client leaves, this is what remains.
    Waiting(Moment),
    /// It passed after this time.
    Passed(Duration),
    /// It was rejected after this time.
    ///
    /// Boxed as most requests are not: each that waits has room for the largest of these.
    Rejected(Box<(GateRejection, Duration)>),
    /// It passed, could not be sent, and waits again. It has waited since this moment, less the
    /// time at the origin.
    Held(Moment),
    /// It waited this time for an origin that could not be reached. Its turns stay used.
    InVain(Box<(GateRejected, Duration)>),
}

impl AtGate {
    /// How long the request has waited, until `now` if it still does.
    pub(super) fn waited(&self, now: impl FnOnce() -> Moment) -> Duration {
        match self {
            Self::Waiting(since) | Self::Held(since) => now().since(*since),
            Self::Passed(span) => *span,
            Self::Rejected(rejected) => rejected.1,
            Self::InVain(rejected) => rejected.1,
        }
    }

    /// Why the request goes no further, if so.
    pub(super) fn rejected(&self) -> Option<GateRejected> {
        match self {
            Self::Rejected(rejected) => Some(rejected.0.reason),
            Self::InVain(rejected) => Some(rejected.0),
            Self::Waiting(_) | Self::Passed(_) | Self::Held(_) => None,
        }
    }
}

/// A request before the gate of its origin.
pub(super) struct GateRequest<'a> {
    gate: &'a Arc<OriginGate>,
    gateway: &'a Gateway,
    to: Destination<'a>,
    info: &'a RequestInfo<'a>,
    /// What the request counts for.
    cost: Cost,
    /// Whether it has a turn in a zone.
    has_turn: bool,
    /// How many milliseconds it waited before for the answer of another request.
    followed: u32,
    /// Whether that other one never passed the gate meanwhile.
    followed_in_queue: bool,
    /// Whose share of the gate it takes, once that matters.
    sharer: OnceCell<Sharer>,
}

/// Whose share of a gate a request takes.
struct Sharer {
    /// Empty if the origin names no zone.
    key: Key,
    /// Index of the plan of the key in that zone, if it has one.
    plan: Option<usize>,
}

/// A key that has a plan in the zone that shares a gate.
#[derive(Debug)]
pub(super) struct Planned {
    pub(super) key: Key,
    /// Index of the plan.
    pub(super) plan: usize,
}

impl<'a> GateRequest<'a> {
    /// Returns `None` if the origin has no gate.
    pub(super) fn new(
        gateway: &'a Gateway,
        info: &'a RequestInfo<'a>,
        to: Destination<'a>,
        cost: Cost,
    ) -> Option<Self> {
        let gate = gateway.origin(to.origin).gate()?;
        Some(Self {
            gate,
            gateway,
            to,
            info,
            cost,
            has_turn: false,
            followed: 0,
            followed_in_queue: false,
            sharer: OnceCell::new(),
        })
    }

    fn route(&self) -> &'a Route {
        self.to.route
    }

    /// The settings of the origin.
    fn settings(&self) -> &'a Origin {
        self.gateway.origin(self.to.origin).settings()
    }

    /// The key of the request here, if it has a plan and the log has to tell.
    pub(super) fn planned(&self) -> Option<Planned> {
        let has_plans = self.plans().is_some_and(|plans| !plans.is_empty());
        if !has_plans || self.gateway.access_log().is_none() {
            return None;
        }
        let Sharer { key, plan } = self.sharer();
        plan.map(|plan| Planned {
            key: Key::clone(key),
            plan,
        })
    }

    /// Returns why the gate would reject the request now, if it would.
    ///
    /// This is asked before any zone is joined, so a hopeless request is charged nowhere.
    pub(super) fn foresee(&self) -> Option<GateRejection> {
        let limits = || self.wait_limits(self.most(Duration::ZERO));
        let rejection = self.gate.foresee(|| self.share(), limits)?;
        self.note_client();
        self.tell_rejection(rejection.reason);
        Some(rejection)
    }

    /// Notes whose request waits at the gate or is rejected there, if no key says so.
    fn note_client(&self) {
        if self.settings().share.is_none() {
            let networks = &self.gate.events().networks;
            networks.note(self.info.client.address, clock::now());
        }
    }

    /// Counts and logs that the gate rejects the request.
    fn tell_rejection(&self, reason: GateRejected) {
        self.gate.metrics().rejections.add(reason, 1);
        self.gate.events().rejected(|| RejectionAtGate {
            origin: self.settings().name.clone(),
            key: self.key_name(),
            reason: reason.label(),
            route: self.route().name(),
        });
    }

    /// The name of its key at a gate that keys share, for a text between quotes.
    fn key_name(&self) -> Option<String> {
        let share = self.gateway.zone(self.settings().share?).settings();
        Some(match &*self.sharer().key {
            // No flood shares a key here, so the empty key is one that is empty.
            [] => String::new(),
            key => KeyNames::of(share).short_quoted(key),
        })
    }

    /// Notes the turns that the request has, and what its zones said of its key.
    pub(super) fn after(mut self, turns: &Turns, outcome: Option<&LimitOutcome>) -> Self {
        self.has_turn = !turns.is_empty();
        let share = self.settings().share;
        let mut verdicts = outcome.iter().flat_map(|it| &it.verdicts);
        if verdicts.any(|it| it.is_flood && Some(it.limit.zone) == share) {
            // Those that share a bucket share one key here, too.
            let key = Key::from(NEW_KEYS);
            self.sharer = OnceCell::from(Sharer { key, plan: None });
        }
        self
    }

    /// Notes how long the request waited for the answer of another one. `in_queue`: that one never
    /// passed the gate meanwhile, so it waited in the queue as well.
    pub(super) fn note_followed(&mut self, span: Duration, in_queue: bool) {
        self.followed = u32::try_from(span.as_millis()).unwrap_or(u32::MAX);
        self.followed_in_queue = in_queue;
    }

    fn followed(&self) -> Duration {
        Duration::from_millis(self.followed.into())
    }

    /// How much of that counts as time in the queue.
    fn queued_before(&self) -> Duration {
        if self.followed_in_queue {
            self.followed()
        } else {
            Duration::ZERO
        }
    }

    /// Joins the gate. `waited` is how long the request has waited before.
    pub(super) fn join(&self, waited: Duration) -> Result<Admission, GateRejection> {
        self.gate.join(
            self.settings().charges_departures(),
            || self.share(),
            self.cost,
            &self.wait_limits(self.most(waited)),
            self.has_turn,
            self.followed(),
        )
    }

    /// How long the request may wait for the answer of another one that has not passed yet.
    ///
    /// `max_wait` needs no look: that one has it, too, and was let in with a longer way ahead.
    pub(super) fn follow_limit(&self) -> Duration {
        let origin = self.settings();
        origin.queue_timeout + origin.hold
    }

    /// Rejects the request, which waited `span` for the answer of another one.
    pub(super) fn give_up(&self, span: Duration) -> (GateRejection, AtGate) {
        let reason = GateRejected::Timeout;
        let retry_after = self.gate.predicted_wait(&self.share());
        let rejection = GateRejection {
            reason,
            retry_after,
        };
        self.tell_rejection(reason);
        (rejection, AtGate::Rejected(Box::new((rejection, span))))
    }

    /// Waits until the gate lets the request through. `waited` is how long it has waited before.
    ///
    /// `join`: how it joins the gate, given `waited`.
    pub(super) async fn pass(
        &self,
        worker: &Worker,
        waited: Duration,
        at_gate: &mut Option<AtGate>,
        join: impl FnOnce(&Self, Duration) -> Result<Admission, GateRejection>,
    ) -> Result<Place, NoTurn> {
        let joined = join(self, waited);
        if !matches!(joined, Ok(Admission::Passed(_))) {
            self.note_client();
        }
        let (passed, span) = match joined {
            Ok(Admission::Passed(place)) => (Ok(place), Duration::ZERO),
            Err(rejection) => (Err(NoTurn::Rejected(rejection)), Duration::ZERO),
            Ok(Admission::Waiting(waiting)) => {
                let began = worker.pacer.now();
                *at_gate = Some(AtGate::Waiting(began));
                let limits = self.wait_limits(self.most(waited));
                // Boxed: most requests need not wait, and their state should be small.
                let turn = Box::pin(waiting.turn(limits, &worker.pacer)).await;
                (turn, worker.pacer.now().since(began))
            }
        };
        if let Ok(place) = &passed {
            self.count_class();
            self.tell(place);
        }
        *at_gate = Some(self.told(&passed, span));
        passed
    }

    /// Waits again, after the request had passed and could not be sent.
    ///
    /// `waiting`: its new place in the queue, if it got one. `asked`: when the request came.
    pub(super) async fn pass_again(
        &self,
        worker: &Worker,
        waiting: Result<Waiting, GateRejection>,
        asked: Moment,
        at_gate: &mut Option<AtGate>,
    ) -> Result<Place, NoTurn> {
        let now = worker.pacer.now();
        let waited = at_gate.as_ref().map(|it| it.waited(|| now));
        let waited = waited.unwrap_or_default();
        let since = now.before(waited);
        *at_gate = Some(AtGate::Held(since));
        let passed = match waiting {
            Ok(waiting) => {
                let before = waiting.since().since(asked);
                let limits = self.wait_limits(self.most(before));
                waiting.turn(limits, &worker.pacer).await
            }
            Err(rejection) => Err(NoTurn::Rejected(rejection)),
        };
        if let Ok(place) = &passed {
            self.tell(place);
        }
        let span = worker.pacer.now().since(since);
        *at_gate = Some(match self.told(&passed, span) {
            AtGate::Rejected(rejected) => AtGate::InVain(Box::new((rejected.0.reason, rejected.1))),
            told => told,
        });
        passed
    }

    /// What became of the request after `span`. Counts and logs it if it goes no further.
    fn told(&self, passed: &Result<Place, NoTurn>, span: Duration) -> AtGate {
        let at_gate = match passed {
            Ok(_) => AtGate::Passed(span),
            Err(NoTurn::Rejected(rejection)) => AtGate::Rejected(Box::new((*rejection, span))),
            Err(NoTurn::Outage(_)) => AtGate::InVain(Box::new((GateRejected::Outage, span))),
        };
        if let Some(reason) = at_gate.rejected() {
            self.tell_rejection(reason);
        }
        at_gate
    }

    /// The longest waits of a request that may wait for `most` in all.
    fn wait_limits(&self, most: Option<Duration>) -> WaitLimits {
        let origin = self.settings();
        WaitLimits {
            queue_timeout: origin.queue_timeout.saturating_sub(self.queued_before()),
            hold: self.hold_left(),
            most,
        }
    }

    /// What is left of `hold` after the time in which the request followed another one.
    ///
    /// Not zero, which would mean that the origin has none.
    fn hold_left(&self) -> Duration {
        let hold = self.settings().hold;
        if hold.is_zero() {
            return hold;
        }
        hold.saturating_sub(self.followed())
            .max(Duration::from_millis(1))
    }

    /// The key of the request at the gate.
    pub(super) fn key(&self) -> KeyAtGate {
        let share = self.settings().share;
        KeyAtGate {
            zone: share.map(|zone| Arc::clone(self.gateway.zone(zone).name())),
            key: Key::clone(&self.sharer().key),
        }
    }

    /// The longest time that the request may wait here. In a dry run a route has no `max_wait`.
    fn most(&self, waited: Duration) -> Option<Duration> {
        let most = self.route().max_wait;
        let most = most.or_else(|| self.info.call_timeout());
        let most = most.filter(|_| !self.route().dry_run)?;
        Some(most.saturating_sub(waited + self.queued_before()))
    }

    /// Counts the request for its class, if the origin has classes.
    fn count_class(&self) {
        let origin = self.settings();
        if origin.classes.is_empty() {
            return;
        }
        let decides = self.plans().is_some_and(Plans::have_classes);
        let plan = decides.then(|| self.sharer().plan).flatten();
        let class = plan.and_then(|plan| self.plans()?.get(plan)?.class.as_ref());
        let class = class.unwrap_or(&self.route().class);
        self.gateway.count_class(self.to.origin, class);
    }

    /// Says whose request it is that has left.
    fn tell(&self, place: &Place) {
        let Some(share) = self.settings().share else {
            return;
        };
        place.tell_key(|| match self.sharer.get() {
            Some(sharer) => stable_hash(&sharer.key),
            None => key::shared_hash(self.gateway.zone(share).settings(), self.info, self.route()),
        });
    }

    /// The plans of the zone that shares the gate, if there is one.
    fn plans(&self) -> Option<&'a Plans> {
        let share = self.settings().share?;
        Some(&self.gateway.zone(share).settings().plans)
    }

    fn sharer(&self) -> &Sharer {
        self.sharer.get_or_init(|| {
            let share = self.settings().share;
            let zone = share.map(|zone| self.gateway.zone(zone).settings());
            let shared = |zone| key::shared(zone, self.info, self.route());
            let key = zone.map_or_else(Key::default, shared);
            let plan = zone.and_then(|zone| zone.plans.index_of(&key));
            Sharer { key, plan }
        })
    }

    /// The share of the gate that the request takes.
    fn share(&self) -> Share<KeyAtGate> {
        let plan = self.sharer().plan.and_then(|plan| self.plans()?.get(plan));
        let class = plan.and_then(|plan| plan.class.as_ref());
        Share {
            class: Arc::clone(class.unwrap_or(&self.route().class)),
            key: self.key(),
            weight: plan.map_or(1, |plan| plan.weight),
            above_queue: self.info.above_burst(&self.gateway.settings().server),
        }
    }
}
