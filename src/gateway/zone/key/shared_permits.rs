//! Permits of a key that all gateways share: `in_flight` in a zone that is kept in the store.
//!
//! The key's actor calls the store for permits when `limit::KeyPermits` demands it. `permits`
//! handles the waiters, of zones in memory, too. Requests of one key may have limits with different
//! values of `in_flight`: those with the same value are one *lane*. The lanes take turns to request
//! permits.

use std::num::NonZeroU32;
use std::time::Duration;

use actix::{AsyncContext, Context, WeakAddr};
use config::OnStoreFailure;
use limit::{KeyPermitNeeds, KeyPermits, KeyPermitsReply, Limit, Moment, Permits, Ticket, Verdict};

use super::KeyActor;
use super::permits::to_usize;
use super::queue::KeyQueue;
use super::waiter::{Waiter, WaitsFor};
use crate::observe::metrics::Rejected;
use crate::time::pacer::Pacer;
use crate::zone::answer::{Charge, Rejection};
use crate::zone::stats::PermitsElsewhere;
use crate::zone::store_link::{NoReply, StoreLink};

/// Lead time: a permit is requested this long before the request's slot.
const LEAD_TIME: Duration = Duration::from_millis(10);
/// Tolerance: a request that the local bucket would reject even this much later needs no permit.
const REJECTION_TOLERANCE: Duration = Duration::from_millis(50);

/// State of a key's permits at all gateways, as the key's actor knows it.
pub(super) struct SharedPermits {
    permits: KeyPermits,
    /// Address of the key's actor, which receives the replies of the store.
    actor: WeakAddr<KeyActor>,
    /// Joins that the store is deciding and that may run at once, with their `in_flight`.
    coming: Vec<(Ticket, NonZeroU32)>,
    /// Requests that may not wait, with the number of the call whose reply decides on them.
    ///
    /// The number is `None` until the call is made.
    undecided: Vec<(Ticket, Option<u64>)>,
    /// Number of the last call.
    last_call: u64,
    /// Number of the last call that was answered or failed.
    last_answered: u64,
    /// Number of calls made. It selects the lane whose turn it is.
    call_count: usize,
}

impl KeyActor {
    /// Returns whether a permit under this `in_flight` is free now.
    pub(super) fn has_permit(&self, in_flight: NonZeroU32) -> bool {
        let (running, pacer) = (self.permits.running(), &self.shard.pacer);
        let shared = self.shared_permits.as_deref();
        has_permit(&self.queue, shared, in_flight, running, pacer)
    }

    /// Takes the next waiter for which a permit is free.
    pub(super) fn take_next_with_permit(&mut self) -> Option<(Waiter, Charge)> {
        let (running, pacer) = (self.permits.running(), &self.shard.pacer);
        let (queue, shared) = (&self.queue, self.shared_permits.as_deref());
        self.permits
            .take_next_where(|in_flight| has_permit(queue, shared, in_flight, running, pacer))
    }

    /// Notes a join that the store is deciding and that may need a permit right afterwards.
    pub(super) fn expect_permit(
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
        let verdict = bucket.decide(self.queue.rate(), limit, now + REJECTION_TOLERANCE);
        let shared = self.shared_permits_or_new(in_flight, ctx);
        if !matches!(verdict, Verdict::Reject(_)) {
            shared.coming.push((ticket, in_flight));
        }
    }

    /// Returns the shared state of the permits; creates it with this maximum if there is none yet.
    pub(super) fn shared_permits_or_new(
        &mut self,
        in_flight: NonZeroU32,
        ctx: &mut Context<Self>,
    ) -> &mut SharedPermits {
        self.ensure_alarm(ctx);
        self.shared_permits.get_or_insert_with(|| {
            Box::new(SharedPermits {
                permits: KeyPermits::new(in_flight),
                actor: ctx.address().downgrade(),
                coming: Vec::new(),
                undecided: Vec::new(),
                last_call: 0,
                last_answered: 0,
                call_count: 0,
            })
        })
    }

    /// Returns the rejection of a request if so many requests wait that it may not wait, too.
    ///
    /// `None` as long as no earlier request waits: then the store decides whether a permit is free.
    pub(super) fn rejection_without_shared_permit(
        &self,
        limit: Limit,
        dry_run: bool,
        now: Moment,
    ) -> Option<Rejection> {
        let shared = self.shared_permits.as_ref();
        let undecided = shared.map_or(0, |shared| shared.undecided.len());
        let depth = self.depth().saturating_sub(undecided);
        let is_full = self.permits.depth() > undecided && depth >= self.max_waiters(limit);
        if dry_run || !is_full {
            return None;
        }
        let mut bucket = self.queue.bucket();
        let excess = match bucket.decide(self.queue.rate(), limit, now) {
            Verdict::Pass { excess } | Verdict::Delay { excess, .. } => excess,
            Verdict::Reject(refusal) => refusal.excess,
        };
        Some(Rejection::soon_at_level(Rejected::InFlight, excess))
    }

    /// Removes the note of a join, after the store has decided on it or has not answered.
    pub(super) fn forget_expected_permit(&mut self, ticket: Ticket) {
        if let Some(shared) = &mut self.shared_permits {
            shared.coming.retain(|(other, _)| *other != ticket);
        }
    }

    /// Admits a request that is due, or lets it wait for a permit.
    ///
    /// A request may not wait if it asked not to, or if the maximum of waiters is reached. It is
    /// then undecided until the store has replied.
    pub(super) fn pass_or_await_reply(
        &mut self,
        waiter: Waiter,
        charge: Charge,
        due: Option<Moment>,
        now: Moment,
    ) {
        let (limit, ticket) = (waiter.limit, waiter.ticket);
        let is_full = || self.lacks_permit(limit) && self.depth() >= self.max_waiters(limit);
        let may_not_wait = matches!(waiter.waits_for, WaitsFor::Permit { is_try: true, .. })
            || !self.pause.clock.is_stopped() && is_full();
        if may_not_wait && let Some(shared) = &mut self.shared_permits {
            shared.undecided.push((ticket, None));
        }
        self.pass(waiter, charge, due, now);
    }

    /// Admits a request in a dry run, and counts what would have happened to it.
    pub(super) fn pass_in_dry_run(
        &mut self,
        waiter: Waiter,
        charge: Charge,
        due: Option<Moment>,
        now: Moment,
    ) {
        let (limit, lacks_permit) = (waiter.limit, self.lacks_permit(waiter.limit));
        let max_running = limit.in_flight.map_or(usize::MAX, to_usize);
        let running = self.permits.running() + self.running_elsewhere();
        // Requests in flight without a permit count as waiters.
        let would_wait = running.saturating_sub(max_running);
        if lacks_permit && would_wait >= self.max_waiters(limit) {
            return self.refuse_permit(waiter, charge, true, now);
        }
        self.grant(waiter, charge, due.or(lacks_permit.then_some(now)), now);
    }

    /// Decides on the undecided requests, once the store has replied that no permit is free.
    ///
    /// By now, fewer may wait than when they came: then such a request waits, too.
    fn decide_undecided(&mut self, now: Moment) {
        let Some(shared) = &mut self.shared_permits else {
            return;
        };
        let last_answered = shared.last_answered;
        let is_answered = |call: Option<u64>| call.is_some_and(|call| call <= last_answered);
        let undecided = &mut shared.undecided;
        let decided = undecided.extract_if(.., |(_, call)| is_answered(*call));
        let decided: Vec<Ticket> = decided.map(|(ticket, _)| ticket).collect();
        // Handle the latest first, so that the earliest requests keep their position in the queue.
        for ticket in decided.into_iter().rev() {
            let Some((waiter, charge)) = self.permits.leave(ticket) else {
                continue;
            };
            if let WaitsFor::Permit { is_try: true, .. } = waiter.waits_for {
                self.report_no_permit(waiter);
            } else if self.depth() >= self.max_waiters(waiter.limit) {
                self.refuse_permit(waiter, charge, false, now);
            } else {
                self.pass(waiter, charge, None, now);
            }
        }
    }

    /// Rejects a request for which no permit is free, and refunds its charge.
    pub(super) fn refuse_permit(
        &mut self,
        waiter: Waiter,
        charge: Charge,
        dry_run: bool,
        now: Moment,
    ) {
        self.queue.refund(charge, now);
        let rejection = Rejection::soon_at_level(Rejected::InFlight, waiter.excess);
        self.reject(waiter.reply, rejection, dry_run);
    }

    /// Frees the permit of a request that ended or never used it.
    pub(super) fn free_permit(&mut self, ticket: Ticket) {
        let before = self.permits.running();
        self.permits.free(ticket);
        let running = self.permits.running();
        if let Some(shared) = &mut self.shared_permits
            && running < before
        {
            shared.permits.freed(running);
        }
    }

    /// Returns how many requests of the key run at other gateways, as of the store's last reply.
    pub(super) fn running_elsewhere(&self) -> usize {
        let shared = self.shared_permits.as_deref();
        shared.map_or(0, |shared| shared.permits.elsewhere())
    }

    /// Makes the call for permits if it is due. Returns the real time of the next one.
    pub(super) fn request_permits(&mut self, now: Moment) -> Option<Moment> {
        self.shared_permits.as_ref()?;
        self.call_for_permits();
        self.decide_undecided(now);
        // Call again, because the need may have changed: a rejected request needs no permit.
        self.call_for_permits();
        let KeyQueue::Shared(queue) = &self.queue else {
            return None;
        };
        let shared = self.shared_permits.as_deref()?;
        let real = self.shard.pacer.now();
        let is_over = shared.permits.is_settled(real)
            && shared.coming.is_empty()
            && self.permits.running() + self.depth() == 0;
        let elsewhere = elsewhere(&shared.permits);
        self.snapshot.elsewhere.set((!is_over).then_some(elsewhere));
        if is_over {
            self.shard
                .note_elsewhere(&self.snapshot.key, elsewhere, real);
            self.shared_permits = None;
            return None;
        }
        let needs = self.needs(shared, queue.due_by(real + LEAD_TIME));
        let next_call = shared.permits.calls_at(needs);
        let next_due = queue.waiters.due();
        let request_for_next = next_due.map(|due| due.before(LEAD_TIME));
        let request_for_next = request_for_next.filter(|time| *time > real);
        next_call.into_iter().chain(request_for_next).min()
    }

    /// Makes the call for permits if it is due.
    fn call_for_permits(&mut self) {
        let KeyQueue::Shared(queue) = &self.queue else {
            return;
        };
        let Some(mut shared) = self.shared_permits.take() else {
            return;
        };
        let (number, real) = (StoreLink::next_permits_call(), self.shard.pacer.now());
        let needs = self.needs(&shared, queue.due_by(real + LEAD_TIME));
        let lifetime = queue.link.permit_lifetime();
        if let Some(call) = shared.permits.call(needs, number, lifetime, real) {
            (shared.last_call, shared.call_count) = (number, shared.call_count + 1);
            if let Some(actor) = shared.actor.upgrade() {
                let reply = self.reply(actor, move |actor, reply, _, _| {
                    actor.handle_permits(number, reply);
                });
                let key = &self.snapshot.key;
                queue.link.call_for_permits(key, call, reply);
            }
        }
        if shared.permits.has_requested(needs) {
            for (_, call) in &mut shared.undecided {
                call.get_or_insert(shared.last_call);
            }
        }
        self.shared_permits = Some(shared);
    }

    /// Handles the reply to the call with this number, or its failure.
    fn handle_permits(&mut self, number: u64, reply: Result<KeyPermitsReply, NoReply>) {
        if let Some(shared) = &mut self.shared_permits {
            shared.last_answered = shared.last_answered.max(number);
            match reply {
                Ok(reply) => shared.permits.answer(number, reply),
                Err(NoReply) => shared.permits.fail(number),
            }
        }
    }

    /// Returns the key's demand for permits, for the lane whose turn it is.
    ///
    /// `due_soon`: `in_flight` of the requests that are due soon.
    fn needs(
        &self,
        shared: &SharedPermits,
        due_soon: impl Iterator<Item = NonZeroU32>,
    ) -> KeyPermitNeeds {
        let lane = next_lane(&self.permits, shared);
        let waiting = self.permits.waiting();
        let waiting = waiting.filter(|(in_flight, _)| *in_flight >= lane);
        let coming = shared.coming.iter();
        let coming = coming.filter(|(_, in_flight)| *in_flight >= lane);
        let due_soon = due_soon.filter(|in_flight| *in_flight >= lane);
        KeyPermitNeeds {
            running: self.permits.running(),
            waiting: waiting.map(|(_, count)| count).sum(),
            coming: coming.count() + due_soon.take(to_usize(lane)).count(),
            maximum: lane,
        }
    }
}

/// Returns the permits that other gateways hold, as of the store's last reply.
fn elsewhere(permits: &KeyPermits) -> PermitsElsewhere {
    let count = |permits: usize| u32::try_from(permits).unwrap_or(u32::MAX);
    PermitsElsewhere {
        permits: count(permits.elsewhere()),
        withheld: count(permits.withheld()),
    }
}

/// Returns the lane for which permits are requested next: its `in_flight`.
fn next_lane(permits: &Permits<(Waiter, Charge)>, shared: &SharedPermits) -> NonZeroU32 {
    let mut lanes: Vec<NonZeroU32> = permits.waiting().map(|(in_flight, _)| in_flight).collect();
    if lanes.is_empty() {
        lanes.extend(shared.coming.first().map(|(_, in_flight)| *in_flight));
    }
    lanes.sort_unstable();
    lanes.dedup();
    let turn = shared.call_count % lanes.len().max(1);
    let lane = lanes.get(turn).copied();
    lane.unwrap_or(shared.permits.maximum())
}

/// Returns whether a permit under `in_flight` is free, if `running` requests of the key run here.
///
/// Reads the clock only if gateways share the permits. Without the store, `on_store_failure`
/// decides.
fn has_permit(
    queue: &KeyQueue,
    shared: Option<&SharedPermits>,
    in_flight: NonZeroU32,
    running: usize,
    pacer: &Pacer,
) -> bool {
    let is_free_here = running < to_usize(in_flight);
    let KeyQueue::Shared(queue) = queue else {
        return is_free_here;
    };
    let is_lost = shared.is_some_and(|it| it.permits.is_lost());
    if queue.link.is_out() || is_lost {
        match queue.link.settings.on_store_failure {
            OnStoreFailure::Local => return is_free_here,
            OnStoreFailure::Open => return true,
            OnStoreFailure::Closed => {}
        }
    }
    shared.is_some_and(|it| it.permits.is_free(in_flight, running, pacer.now()))
}
