//! Actor of one key: its bucket, its queue, its permits and its pause.
//!
//! A *slot* is a departure time on the queue's schedule. A *permit* is the right to run one
//! request, under a limit with `in_flight`.
//!
//! `handlers` handles its messages. `queue` keeps the waiters; for a key in the store,
//! `shared_queue` keeps them and `store_reply` handles the replies. `permits` bounds the requests
//! in flight here, `shared_permits` the requests in flight at all gateways.

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
use limit::{Delay, Moment, Permits, Queue, Rate, Verdict};
use tokio::sync::oneshot;

use super::answer::{Answer, Charge, Grant, Rejection};
use super::join::Key;
use super::pending::PendingJoin;
use super::restart::Restart;
use super::shard::Shard;
use super::snapshot::Snapshot;
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
    /// State of the permits in the store; `Some` while it may count permits for this gateway.
    shared_permits: Option<Box<SharedPermits>>,
    pause: Pause,
    shard: Rc<Shard>,
    snapshot: Rc<Snapshot>,
    /// Alarm of the next departure. Created when the first request waits: most keys have no waiter.
    alarm: Option<Alarm>,
    /// Whether no request may wait any more, because the gateway stops.
    rejects_all: bool,
}

impl KeyActor {
    /// Creates the actor of a key whose bucket is in `snapshot`.
    ///
    /// `used`: last use of the key. `paused_until`: end of the key's pause, if it is paused.
    pub(super) fn new(
        rate: Rate,
        used: Moment,
        paused_until: Option<Moment>,
        shard: Rc<Shard>,
        snapshot: Rc<Snapshot>,
    ) -> Self {
        let (bucket, now) = (snapshot.bucket.get(), shard.pacer.now());
        let queue = match shard.store_link() {
            Some(link) => {
                let key = Key::clone(&snapshot.key);
                KeyQueue::Shared(SharedQueue::new(link, key, rate, bucket))
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
        let (limit, dry_run) = (pending.join.limit, pending.join.dry_run);
        let in_pause = self.rejection_in_pause(limit, dry_run);
        let rejection = in_pause.or_else(|| self.rejection_without_permit(limit, dry_run, now));
        if let Some(rejection) = rejection {
            return self.reject(pending.reply, rejection, dry_run);
        }
        if pending.join.takes_permits_later {
            // The request waits for its slot only. Its permit is requested later.
            pending.join.limit.in_flight = None;
        }
        let (limit, ticket) = (pending.join.limit, pending.join.ticket);
        let since = self.real_time(now);
        let queue = match &mut self.queue {
            KeyQueue::Own(queue) => queue,
            KeyQueue::Shared(queue) => {
                let link = Rc::clone(&queue.link);
                self.expect_permit(ticket, limit, now, ctx);
                return self.ask_store(&link, pending, since, ctx);
            }
        };
        let (verdict, charge) = queue.charge(limit, now);
        let (due, excess, charge) = match (verdict, charge) {
            (Verdict::Pass { excess }, Some(charge)) => (None, excess, charge),
            (Verdict::Delay { until, excess }, Some(charge)) => (Some(until), excess, charge),
            (Verdict::Reject(refusal), _) => {
                return self.reject(pending.reply, Rejection::of(refusal, now), dry_run);
            }
            // Not reached: every request that is not rejected is charged.
            (_, None) => return,
        };
        let waiter = Waiter::new(pending, excess, since);
        match (due, limit.delay) {
            // With `nodelay` (`Delay::Never`), no request waits for its slot.
            (Some(_), Delay::Above(delay_level)) if !dry_run => {
                queue.seat(charge, delay_level, ticket, waiter);
                self.ensure_alarm(ctx);
            }
            _ if dry_run => {
                let due = due.or_else(|| self.lacks_permit(limit).then_some(now));
                self.grant(waiter, Charge::Own(charge), due, now);
            }
            _ => {
                self.pass(waiter, Charge::Own(charge), due, now);
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
        while let Some(departure) = self.queue.take_due(now) {
            self.shard.metrics.lateness.record(now.since(departure.due));
            self.pass(departure.waiter, departure.charge, Some(departure.due), now);
        }
        self.release_paused(now);
        self.drain_permit_waiters(now);
    }

    /// Admits a request, with a permit if the limit has `in_flight`.
    ///
    /// `due`: its slot, if it waited. If the client has disconnected, refunds the charge and frees
    /// the permit.
    fn grant(&mut self, waiter: Waiter, charge: Charge, due: Option<Moment>, now: Moment) {
        let (limit, ticket) = (waiter.limit, waiter.ticket);
        let mut permit = limit.in_flight.map(|_| ticket);
        if waiter.waits_for == WaitsFor::Slot {
            // The request will request its permit later, by this ticket. Until then it *sleeps*.
            permit = Some(ticket);
            self.permits.sleep(ticket);
        } else if permit.is_some() {
            self.permits.take(ticket);
        }
        let grant = Grant {
            charge,
            due,
            at: self.real_time(now),
            excess: waiter.excess,
            prediction: self.prediction(limit, now),
            permit,
        };
        if waiter.reply.send(Answer::ZoneAdmission(grant)).is_err() {
            self.queue.refund(charge, now);
            self.permits.wake(ticket);
            self.free_permit(ticket);
        }
    }

    /// Handles an event at the present instant of the key's clock, which a pause stops.
    ///
    /// Waiters that are due leave first, so that neither a late wake-up nor many messages delay
    /// them. Then `event` runs. Then the new state is published to the supervisor.
    fn handle_event(&mut self, event: impl FnOnce(&mut Self, Moment)) {
        let now = self.pause.clock.at(self.shard.pacer.now());
        self.drain(now);
        event(self, now);
        self.drain(now);
        let next_call = self.request_permits(now);
        // Read again: the event may have stopped or started the clock.
        let clock = self.pause.clock;
        if let Some(alarm) = &self.alarm {
            let by_clock = self.queue.due().into_iter().chain(self.permits.expires());
            let next = by_clock.min().and_then(|next| clock.real(next));
            alarm.set(next.into_iter().chain(next_call).min());
        }
        self.publish(now);
    }

    /// Returns the real time at which the key's clock shows `now`.
    ///
    /// While a pause stops that clock, this is the present real time.
    fn real_time(&self, now: Moment) -> Moment {
        let real = self.pause.clock.real(now);
        real.unwrap_or_else(|| self.shard.pacer.now())
    }

    /// Rejects a request of this key. In a pause, `retry_after` includes the rest of the pause.
    fn reject(&self, reply: oneshot::Sender<Answer>, mut rejection: Rejection, dry_run: bool) {
        let real = self.shard.pacer.now();
        rejection.retry_after += self.pause.time_left(real);
        let key = &self.snapshot.key;
        self.shard.reject(key, reply, rejection, dry_run, real);
    }

    /// Records the wait of a request that began at `since`.
    fn record_wait(&self, since: Moment) {
        let real = self.shard.pacer.now();
        let wait = real.since(since);
        self.shard.record_wait(&self.snapshot.key, wait, real);
    }

    /// Publishes the present state to the supervisor.
    fn publish(&self, now: Moment) {
        let bucket = self.queue.bucket_at_file_rate(now);
        // The supervisor reads the bucket by the real clock.
        let lag = self.real_time(now).since(now);
        let bucket = bucket.later(self.queue.file_rate(), lag);
        self.snapshot.bucket.set(bucket);
        let permit_waiters = self.permits.first_waiters();
        let oldest_joins = permit_waiters.map(|(waiter, _)| waiter.since);
        let oldest_joins = oldest_joins.chain(self.queue.oldest());
        let oldest_joins = oldest_joins.chain(self.pause.oldest());
        self.snapshot.oldest.set(oldest_joins.min());
        self.snapshot.costs.set(self.queue.costs());
        let (waiters, in_flight) = (self.depth(), self.permits.running());
        self.shard.update_counts(&self.snapshot, waiters, in_flight);
    }

    /// Returns the number of waiters: for their slot, for a permit or for the end of a pause.
    fn depth(&self) -> usize {
        let for_permits = self.permits.depth() + self.permits.asleep();
        self.queue.depth() + for_permits + self.pause.depth()
    }

    /// Removes and returns all waiters. Charges stay, but a shared queue refunds its waiters.
    fn take_waiters(&mut self) -> Vec<Waiter> {
        let mut waiters = self.queue.reject_all();
        waiters.extend(self.pause.take_all());
        let for_permits = self.permits.reject_all().into_iter();
        waiters.extend(for_permits.map(|(waiter, _)| waiter));
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
        let (rate, now) = (self.queue.file_rate(), self.shard.pacer.now());
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
        self.handle_event(|actor, _| actor.reschedule_waiters(ctx));
    }
}
