//! Permits of a key that all gateways share: `in_flight` in a zone that is kept in a store.

use std::num::NonZeroU32;
use std::rc::Rc;
use std::time::Duration;

use actix::{AsyncContext, Context, WeakAddr};
use config::OnStoreFailure;
use limit::{
    KeyPlaces, KeyPlacesReply, Limit, Moment, Places, PlacesWanted, Reason, Refusal, Ticket,
    Verdict,
};

use super::super::answer::{Charge, RETRY_SOON};
use super::super::stats::PlacesElsewhere;
use super::super::store_link::{NoReply, StoreLink};
use super::KeyActor;
use super::places::most;
use super::queue::KeyQueue;
use super::waiter::{DueWaiter, Waiter, WaitsFor};
use crate::time::pacer::Pacer;
use crate::zone::Rejection;

/// Lead time: a permit is requested this long before the request's slot.
const AHEAD: Duration = Duration::from_millis(10);
/// Tolerance: a request that the local bucket would reject even this much later needs no permit.
const CLEARLY: Duration = Duration::from_millis(50);

/// State of a key's permits at all gateways, as the key's actor knows it.
pub(super) struct SharedPlaces {
    places: KeyPlaces,
    /// Receives the replies of the store.
    actor: WeakAddr<KeyActor>,
    /// Requests that the store is deciding on and that may run at once, with their `in_flight`.
    coming: Vec<(Ticket, NonZeroU32)>,
    /// Requests that may not wait, with the call whose reply says whether a permit is free.
    ///
    /// The call is `None` until it is made.
    unjudged: Vec<(Ticket, Option<u64>)>,
    /// Number of the last call.
    called: u64,
    /// Number of the last call that was answered or failed.
    heard: u64,
    /// Number of calls made. Lanes with different `in_flight` take turns by it.
    turns: usize,
}

impl KeyActor {
    /// Returns whether a permit under this `in_flight` is free now.
    pub(super) fn has_place(&self, in_flight: NonZeroU32) -> bool {
        let (running, pacer) = (self.places.running(), &self.shard.pacer);
        let shared = self.shared_places.as_deref();
        has_place(&self.queue, shared, in_flight, running, pacer)
    }

    /// Takes the next waiter for which a permit is free.
    pub(super) fn next_with_place(&mut self) -> Option<DueWaiter> {
        let (running, pacer) = (self.places.running(), &self.shard.pacer);
        let (queue, shared) = (&self.queue, self.shared_places.as_deref());
        self.places
            .take_next_where(|in_flight| has_place(queue, shared, in_flight, running, pacer))
    }

    /// Notes a request that the store is deciding on, and that may need a permit right after.
    pub(super) fn expect_place(
        &mut self,
        ticket: Ticket,
        limit: Limit,
        now: Moment,
        ctx: &mut Context<Self>,
    ) {
        let Some(in_flight) = limit.in_flight else {
            return;
        };
        let mut bucket = self.queue.bucket();
        let verdict = bucket.decide(self.queue.rate(), limit, now + CLEARLY);
        let shared = self.share_places(in_flight, ctx);
        if !matches!(verdict, Verdict::Reject(_)) {
            shared.coming.push((ticket, in_flight));
        }
    }

    /// Returns the shared state of the permits; creates it with this maximum if there is none yet.
    fn share_places(
        &mut self,
        in_flight: NonZeroU32,
        ctx: &mut Context<Self>,
    ) -> &mut SharedPlaces {
        self.ensure_alarm(ctx);
        self.shared_places.get_or_insert_with(|| {
            Box::new(SharedPlaces {
                places: KeyPlaces::new(in_flight),
                actor: ctx.address().downgrade(),
                coming: Vec::new(),
                unjudged: Vec::new(),
                called: 0,
                heard: 0,
                turns: 0,
            })
        })
    }

    /// Asks the store for a permit for an admitted request. If none is free, the request waits.
    ///
    /// It does not wait if it wants an answer at once, or if the maximum of waiters is reached.
    pub(super) fn ask_shared_place(
        &mut self,
        in_flight: NonZeroU32,
        waiter: Waiter,
        now: Moment,
        ctx: &mut Context<Self>,
    ) {
        let shared = self.share_places(in_flight, ctx);
        if let WaitsFor::Place { at_once: true, .. } = waiter.waits_for {
            shared.unjudged.push((waiter.ticket, None));
            self.pass(waiter.charged(Charge::Nothing), None, now);
        } else {
            self.pass_or_judge(waiter.charged(Charge::Nothing), None, now);
        }
    }

    /// Returns why a request may not wait for a permit, if earlier requests wait.
    ///
    /// Without earlier waiters the store is asked.
    pub(super) fn refuses_shared_place(
        &self,
        limit: Limit,
        dry_run: bool,
        now: Moment,
    ) -> Option<Refusal> {
        let unjudged = self
            .shared_places
            .as_ref()
            .map_or(0, |it| it.unjudged.len());
        let depth = self.depth().saturating_sub(unjudged);
        let is_full = self.places.depth() > unjudged && depth >= self.ceiling(limit);
        (is_full && !dry_run).then(|| {
            let mut bucket = self.queue.bucket();
            let excess = match bucket.decide(self.queue.rate(), limit, now) {
                Verdict::Pass { excess } | Verdict::Delay { excess, .. } => excess,
                Verdict::Reject(refusal) => refusal.excess,
            };
            Refusal {
                reason: Reason::InFlight,
                excess,
                retry_at: now + RETRY_SOON,
            }
        })
    }

    /// Removes the note of a request, after the store has decided on it or failed to.
    pub(super) fn place_is_decided(&mut self, ticket: Ticket) {
        if let Some(shared) = &mut self.shared_places {
            shared.coming.retain(|(other, _)| *other != ticket);
        }
    }

    /// Admits a request that is due, or lets it wait for a permit.
    pub(super) fn pass_or_judge(&mut self, request: DueWaiter, due: Option<Moment>, now: Moment) {
        let (limit, ticket) = (request.waiter.limit, request.waiter.ticket);
        let is_full = self.depth() >= self.ceiling(limit);
        if self.lacks_place(limit)
            && is_full
            && !self.pause.clock.is_stopped()
            && let Some(shared) = &mut self.shared_places
        {
            shared.unjudged.push((ticket, None));
        }
        self.pass(request, due, now);
    }

    /// Admits a request in a dry run, and counts what would have happened to it.
    pub(super) fn pass_in_dry_run(&mut self, request: DueWaiter, due: Option<Moment>, now: Moment) {
        let DueWaiter { waiter, charge } = request;
        let (limit, lacks) = (waiter.limit, self.lacks_place(waiter.limit));
        let in_flight = limit.in_flight.map_or(usize::MAX, most);
        let running = self.places.running() + self.running_elsewhere();
        if lacks && running.saturating_sub(in_flight) >= self.ceiling(limit) {
            return self.refuse_place(waiter, charge, true, now);
        }
        self.grant(waiter, charge, due.or(lacks.then_some(now)), now);
    }

    /// Returns the maximum number of waiters under this limit.
    fn ceiling(&self, limit: Limit) -> usize {
        most(limit.ceiling(self.queue.rate()))
    }

    /// Rejects requests that may not wait, once the store has replied that no permit is free.
    fn judge(&mut self, now: Moment) {
        let Some(shared) = &mut self.shared_places else {
            return;
        };
        let heard = shared.heard;
        let is_known = |it: &&mut (Ticket, Option<u64>)| it.1.is_some_and(|number| number <= heard);
        let known = shared.unjudged.iter_mut().filter(is_known);
        let known: Vec<Ticket> = known.map(|(ticket, _)| *ticket).collect();
        shared
            .unjudged
            .retain(|(ticket, _)| !known.contains(ticket));
        // Handle the latest first, so that the earliest requests keep their position.
        for ticket in known.into_iter().rev() {
            let Some(DueWaiter { waiter, charge }) = self.places.leave(ticket) else {
                continue;
            };
            if let WaitsFor::Place { at_once: true, .. } = waiter.waits_for {
                self.has_no_place(waiter);
            } else if self.depth() >= self.ceiling(waiter.limit) {
                self.refuse_place(waiter, charge, false, now);
            } else {
                self.pass(waiter.charged(charge), None, now);
            }
        }
    }

    /// Rejects a request for which no permit is free, and refunds its charge.
    pub(super) fn refuse_place(
        &mut self,
        waiter: Waiter,
        charge: Charge,
        dry_run: bool,
        now: Moment,
    ) {
        self.queue.refund(charge, now);
        let refusal = Refusal {
            reason: Reason::InFlight,
            excess: waiter.excess,
            retry_at: now + RETRY_SOON,
        };
        self.reject(waiter.reply, Rejection::of(refusal, now), dry_run);
    }

    /// Frees the permit of a request that ended or never used it.
    pub(super) fn free_place(&mut self, ticket: Ticket) {
        let before = self.places.running();
        self.places.free(ticket);
        let running = self.places.running();
        if let Some(shared) = &mut self.shared_places
            && running < before
        {
            shared.places.freed(running);
        }
    }

    /// Returns how many requests of the key run at other gateways, as of the store's last reply.
    pub(super) fn running_elsewhere(&self) -> usize {
        let shared = self.shared_places.as_deref();
        shared.map_or(0, |shared| shared.places.elsewhere())
    }

    /// Makes the call for permits if it is due. Returns when the next one is, by the real clock.
    pub(super) fn ask_for_places(&mut self, now: Moment) -> Option<Moment> {
        self.shared_places.as_ref()?;
        self.call_for_places();
        self.judge(now);
        // Requests that were just rejected need no permit.
        self.call_for_places();
        let KeyQueue::Shared(queue) = &self.queue else {
            return None;
        };
        let shared = self.shared_places.as_deref()?;
        let real = self.shard.pacer.now();
        let is_over = shared.places.is_settled(real)
            && shared.coming.is_empty()
            && self.places.running() + self.depth() == 0;
        self.snapshot.counts_in_store.set(!is_over);
        let elsewhere = elsewhere(&shared.places);
        self.snapshot.elsewhere.set(elsewhere);
        if is_over {
            self.shard
                .note_elsewhere(&self.snapshot.key, elsewhere, real);
            self.shared_places = None;
            return None;
        }
        let ahead = queue.line().due().map(|due| due.before(AHEAD));
        let at = shared
            .places
            .calls_at(self.needs(shared, queue.due_by(real + AHEAD)));
        at.into_iter().chain(ahead.filter(|at| *at > real)).min()
    }

    /// Makes the call for permits if it is due.
    fn call_for_places(&mut self) {
        let (KeyQueue::Shared(queue), Some(shared)) = (&self.queue, &self.shared_places) else {
            return;
        };
        let (zone, real) = (Rc::clone(queue.zone()), self.shard.pacer.now());
        let needs = self.needs(shared, queue.due_by(real + AHEAD));
        let Some(shared) = &mut self.shared_places else {
            return;
        };
        let (number, kept) = (StoreLink::next_places_call(), zone.places_kept());
        let call = shared.places.call(needs, number, kept, real);
        if let Some(call) = call {
            (shared.called, shared.turns) = (number, shared.turns + 1);
            if let Some(actor) = shared.actor.upgrade() {
                let reply = self.reply(actor, move |actor, reply, _, _| {
                    actor.places_answered(number, reply);
                });
                zone.call_for_places(&self.snapshot.key, call, reply);
            }
        }
        let Some(shared) = &mut self.shared_places else {
            return;
        };
        if shared.places.has_told(needs) {
            let called = shared.called;
            let unjudged = shared.unjudged.iter_mut();
            unjudged.for_each(|(_, number)| *number = number.or(Some(called)));
        }
    }

    /// Handles the reply to the call with this number, or its failure.
    fn places_answered(&mut self, number: u64, reply: Result<KeyPlacesReply, NoReply>) {
        if let Some(shared) = &mut self.shared_places {
            shared.heard = shared.heard.max(number);
            match reply {
                Ok(reply) => shared.places.answer(number, reply),
                Err(NoReply) => shared.places.fail(number),
            }
        }
    }

    /// Returns the demand for permits of the lane that is next. `soon`: requests that are due soon.
    ///
    /// `soon` yields their `in_flight`.
    fn needs(&self, shared: &SharedPlaces, soon: impl Iterator<Item = NonZeroU32>) -> PlacesWanted {
        let most = turn_of(&self.places, shared);
        let is_of = |in_flight: &NonZeroU32| *in_flight >= most;
        let waiting = self
            .places
            .waiting()
            .filter(|(in_flight, _)| is_of(in_flight));
        let coming = shared
            .coming
            .iter()
            .filter(|(_, in_flight)| is_of(in_flight));
        let soon = soon.filter(is_of).take(super::places::most(most));
        PlacesWanted {
            running: self.places.running(),
            waiting: waiting.map(|(_, count)| count).sum(),
            coming: coming.count() + soon.count(),
            most,
        }
    }
}

/// Returns the permits that other gateways hold.
fn elsewhere(places: &KeyPlaces) -> PlacesElsewhere {
    let count = |places: usize| u32::try_from(places).unwrap_or(u32::MAX);
    PlacesElsewhere {
        places: count(places.elsewhere()),
        withheld: count(places.withheld()),
    }
}

/// Returns the `in_flight` of the lane for which permits are requested next.
///
/// Lanes take turns.
fn turn_of(places: &Places<DueWaiter>, shared: &SharedPlaces) -> NonZeroU32 {
    let mut lanes: Vec<NonZeroU32> = places.waiting().map(|(in_flight, _)| in_flight).collect();
    if lanes.is_empty() {
        lanes.extend(shared.coming.first().map(|(_, in_flight)| *in_flight));
    }
    lanes.sort_unstable();
    lanes.dedup();
    let turn = shared.turns % lanes.len().max(1);
    let most = lanes.get(turn).copied();
    most.unwrap_or(shared.places.most())
}

/// Returns whether a permit under `in_flight` is free, if `running` requests of the key run here.
///
/// Reads the clock only if gateways share the permits.
fn has_place(
    queue: &KeyQueue,
    shared: Option<&SharedPlaces>,
    in_flight: NonZeroU32,
    running: usize,
    pacer: &Pacer,
) -> bool {
    let is_free_here = running < most(in_flight);
    let KeyQueue::Shared(queue) = queue else {
        return is_free_here;
    };
    let is_lost = shared.is_some_and(|it| it.places.is_lost());
    if queue.zone().is_out() || is_lost {
        match queue.zone().on_store_failure {
            OnStoreFailure::Local => return is_free_here,
            OnStoreFailure::Open => return true,
            OnStoreFailure::Closed => {}
        }
    }
    shared.is_some_and(|it| it.places.is_free(in_flight, running, pacer.now()))
}
