//! Actor of one key: its bucket, its queue, its permits and its pause.
//!
//! `handlers` are its messages. `queue` keeps the waiters, `shared_queue` those of a key in the
//! store. `permits` bounds the requests in flight, `shared_permits` those at all gateways.

mod handlers;
mod pause;
mod permits;
mod queue;
mod shared_permits;
mod shared_queue;
mod store_reply;
mod waiter;

use std::rc::Rc;

use actix::{Actor, Context, StreamHandler, Supervised};
use limit::{Delay, Departure, Moment, Permits, Queue, Rate, Verdict};
use tokio::sync::oneshot;

use super::answer::{Answer, Charge, Grant, Rejection};
use super::join::Key;
use super::pending::PendingJoin;
use super::restart::Restart;
use super::snapshot::{Shard, Snapshot};
use crate::observe::metrics::{ActorKind, Rejected};
use crate::time::pacer::Alarm;
pub(super) use handlers::{End, KeyCall};
use pause::Pause;
use queue::KeyQueue;
use shared_permits::SharedPermits;
use shared_queue::SharedQueue;
use waiter::{Waiter, WaitsFor};

/// Owns one key's bucket and queue, and releases each waiter when it is due.
pub(super) struct KeyActor {
    queue: KeyQueue,
    /// Permits in use, and waiters that are due but need a permit.
    permits: Permits<(Waiter, Charge)>,
    /// Set while the store may count permits of this key for this gateway.
    shared_permits: Option<Box<SharedPermits>>,
    pause: Pause,
    shard: Rc<Shard>,
    snapshot: Rc<Snapshot>,
    /// Created when the first request waits. Most keys never have a waiter.
    alarm: Option<Alarm>,
    /// Whether the gateway stops: no request may wait any more.
    rejects_all: bool,
}

impl KeyActor {
    /// `used`: last use of the key. `paused_until`: end of the key's pause, if it is paused.
    pub(super) fn new(
        rate: Rate,
        used: Moment,
        paused_until: Option<Moment>,
        shard: Rc<Shard>,
        snapshot: Rc<Snapshot>,
    ) -> Self {
        let (bucket, now) = (snapshot.bucket.get(), shard.pacer.now());
        let queue = match shard.sharing() {
            Some(zone) => {
                let key = Key::clone(&snapshot.key);
                KeyQueue::Shared(SharedQueue::new(zone, key, rate, bucket))
            }
            None => KeyQueue::Own(Queue::resumed(rate, bucket, used, now)),
        };
        let mut pause = Pause::default();
        pause.set(paused_until, now);
        Self {
            queue,
            permits: Permits::default(),
            shared_permits: None,
            pause,
            shard,
            snapshot,
            alarm: None,
            rejects_all: false,
        }
    }

    /// Admits a request, lets it wait or rejects it.
    pub(super) fn join(&mut self, mut pending: PendingJoin, now: Moment, ctx: &mut Context<Self>) {
        let (ticket, dry_run) = (pending.join.ticket, pending.join.dry_run);
        if let Some(rejection) = self.refuses_in_pause(pending.join.limit, dry_run) {
            return self.reject(pending.reply, rejection, dry_run);
        }
        if let Some(refusal) = self.refuses_permit(pending.join.limit, dry_run, now) {
            return self.reject(pending.reply, Rejection::of(refusal, now), dry_run);
        }
        if pending.join.takes_permits_later {
            pending.join.limit.in_flight = None;
        }
        let (limit, since) = (pending.join.limit, self.real(now));
        let queue = match &mut self.queue {
            KeyQueue::Own(queue) => queue,
            KeyQueue::Shared(queue) => {
                let zone = Rc::clone(&queue.zone);
                self.expect_permit(ticket, limit, now, ctx);
                return self.ask(&zone, pending, since, ctx);
            }
        };
        let (verdict, charge) = queue.charge(limit, now);
        let (until, excess, charge) = match (verdict, charge) {
            (Verdict::Pass { excess }, Some(charge)) => (None, excess, charge),
            (Verdict::Delay { until, excess }, Some(charge)) => (Some(until), excess, charge),
            (Verdict::Reject(refusal), _) => {
                return self.reject(pending.reply, Rejection::of(refusal, now), dry_run);
            }
            // Not reached: every request that is not rejected is charged.
            (_, None) => return,
        };
        let waiter = Waiter::new(pending, excess, since);
        match (until, limit.delay) {
            (Some(_), Delay::Above(delay)) if !dry_run => {
                queue.seat(charge, delay, ticket, waiter);
                self.ensure_alarm(ctx);
            }
            _ if dry_run => {
                let waits = until.or_else(|| self.lacks_permit(limit).then_some(now));
                self.grant(waiter, Charge::Own(charge), waits, now);
            }
            _ => {
                self.pass(waiter, Charge::Own(charge), until, now);
                self.ensure_alarm_for_permits(ctx);
            }
        }
    }

    /// Creates the alarm unless it exists.
    fn ensure_alarm(&mut self, ctx: &mut Context<Self>) {
        if self.alarm.is_none() {
            let (alarm, bell) = self.shard.pacer.alarm();
            self.alarm = Some(alarm);
            Self::add_stream(bell, ctx);
        }
    }

    /// Releases all waiters that are due and get a permit.
    fn drain(&mut self, now: Moment) {
        while let Some(Departure {
            due,
            charge,
            waiter,
        }) = self.queue.take_due(now)
        {
            self.shard.metrics.lateness.record(now.since(due));
            self.pass(waiter, charge, Some(due), now);
        }
        self.release_paused(now);
        self.drain_permit_waiters(now);
    }

    /// Admits a request, with a permit if the limit has `in_flight`.
    ///
    /// Refunds the charge and frees the permit if the receiver has been dropped.
    fn grant(&mut self, waiter: Waiter, charge: Charge, due: Option<Moment>, now: Moment) {
        let Waiter {
            limit,
            excess,
            ticket,
            waits_for,
            reply,
            ..
        } = waiter;
        let mut permit = limit.in_flight.map(|_| ticket);
        if waits_for == WaitsFor::Slot {
            permit = Some(ticket);
            self.permits.sleep(ticket);
        } else if permit.is_some() {
            self.permits.take(ticket);
        }
        let grant = Grant {
            charge,
            due,
            at: self.real(now),
            excess,
            prediction: self.prediction(limit, now),
            permit,
        };
        if reply.send(Answer::ZoneAdmission(grant)).is_err() {
            self.queue.refund(charge, now);
            self.permits.wake(ticket);
            self.free_permit(ticket);
        }
    }

    /// Handles an event at the present instant.
    ///
    /// Waiters that are due leave first, so that neither a late wake-up nor many messages delay
    /// them. Then `event` runs. Then the new state is published to the supervisor.
    fn at_now(&mut self, event: impl FnOnce(&mut Self, Moment)) {
        let now = self.pause.clock.at(self.shard.pacer.now());
        self.drain(now);
        event(self, now);
        self.drain(now);
        let call_at = self.request_permits(now);
        // Read the clock again: the event may have stopped or started it.
        let clock = self.pause.clock;
        if let Some(alarm) = &self.alarm {
            let next = self.queue.due().into_iter().chain(self.permits.expires());
            let next = next.min().and_then(|next| clock.real(next));
            alarm.set(next.into_iter().chain(call_at).min());
        }
        self.publish(now);
    }

    /// Returns the real time at which the key's clock shows `now`.
    fn real(&self, now: Moment) -> Moment {
        let real = self.pause.clock.real(now);
        real.unwrap_or_else(|| self.shard.pacer.now())
    }

    /// Rejects a request of this key. In a pause, `retry_after` includes the rest of the pause.
    fn reject(&self, reply: oneshot::Sender<Answer>, rejection: Rejection, dry_run: bool) {
        let real = self.shard.pacer.now();
        let rejection = Rejection {
            retry_after: rejection.retry_after + self.pause.rest(real),
            ..rejection
        };
        let key = &self.snapshot.key;
        self.shard.reject(key, reply, rejection, dry_run, real);
    }

    /// Records the waiting time of a request.
    fn waited(&self, since: Moment) {
        let real = self.shard.pacer.now();
        let span = real.since(since);
        self.shard.waited(&self.snapshot.key, span, real);
    }

    /// Publishes the present state to the supervisor.
    fn publish(&self, now: Moment) {
        let bucket = self.queue.bucket_of_file(now);
        let lag = self.real(now).since(now);
        let bucket = bucket.later(self.queue.rate_of_file(), lag);
        self.snapshot.bucket.set(bucket);
        let due = self.permits.first_waiters().map(|(waiter, _)| waiter.since);
        let oldest = self.queue.oldest().into_iter().chain(due);
        let oldest = oldest.chain(self.pause.oldest());
        self.snapshot.oldest.set(oldest.min());
        self.snapshot.costs.set(self.queue.costs());
        let (waiting, running) = (self.depth(), self.permits.running());
        self.shard.count(&self.snapshot, waiting, running);
    }

    /// Returns the number of requests that wait for their slot or for a permit.
    fn depth(&self) -> usize {
        let permits = self.permits.depth() + self.permits.asleep();
        self.queue.depth() + permits + self.pause.depth()
    }

    /// Removes and returns all waiters. Their charges stay.
    fn take_waiters(&mut self) -> Vec<Waiter> {
        let mut waiters = self.queue.reject_all();
        waiters.extend(self.pause.reject_all());
        let due = self.permits.reject_all().into_iter();
        waiters.extend(due.map(|(waiter, _)| waiter));
        waiters
    }

    /// Rejects these waiters. Returns how many of them were still connected.
    fn reject_waiters(&self, waiters: Vec<Waiter>, now: Moment) -> usize {
        let (bucket, rate) = (self.queue.bucket(), self.queue.rate());
        let rejected = waiters.into_iter().map(|waiter| {
            let retry_at = bucket.accepts_at(rate, waiter.limit, 0, now);
            let rejection = Rejection {
                reason: Rejected::Stopping,
                excess: waiter.excess,
                retry_after: retry_at.since(now),
                is_flood: false,
            };
            // In a dry run no request waits.
            let key = &self.snapshot.key;
            let real = self.shard.pacer.now();
            let is_connected = self.shard.reject(key, waiter.reply, rejection, false, real);
            usize::from(is_connected)
        });
        rejected.sum()
    }
}

impl Actor for KeyActor {
    type Context = Context<Self>;
}

impl Supervised for KeyActor {
    /// Continues from the last published bucket, as if all waiters had left.
    ///
    /// Waiters are answered when the old queue is dropped. Requests in flight keep their permits.
    fn restarting(&mut self, ctx: &mut Self::Context) {
        let (rate, now) = (self.queue.rate_of_file(), self.shard.pacer.now());
        let paused_until = self.pause.until();
        let mut bucket = self.snapshot.bucket.get();
        bucket.take_back(rate, self.snapshot.costs.get());
        self.snapshot.bucket.set(bucket);
        let (shard, snapshot) = (Rc::clone(&self.shard), Rc::clone(&self.snapshot));
        *self = Self {
            rejects_all: self.rejects_all,
            permits: std::mem::take(&mut self.permits).without_waiters(),
            shared_permits: self.shared_permits.take(),
            ..Self::new(rate, now, paused_until, shard, snapshot)
        };
        if self.shared_permits.is_some() {
            self.ensure_alarm(ctx);
        }
        self.publish(now);
    }
}

impl Restart for KeyActor {
    const KIND: ActorKind = ActorKind::Key;
}

impl StreamHandler<()> for KeyActor {
    fn handle(&mut self, (): (), ctx: &mut Context<Self>) {
        self.at_now(|actor, _| actor.return_to_store(ctx));
    }
}
