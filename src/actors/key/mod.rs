#[cfg(test)]
mod crash;
mod queue;
mod settle;
mod store_reply;

use std::rc::Rc;

use actix::{Actor, ActorContext, Context, Handler, StreamHandler, Supervised};
use tokio::sync::oneshot;

use super::answer::{Answer, Charge, Grant, Key, Outlook, Rejection};
use super::messages::{End, ForgetKey, Join, Leave, Probe, Refund, RejectAll, RetuneKey, Waiters};
use super::restart::Restart;
use super::snapshot::{Shard, Snapshot};
use crate::limit::{
    Account, Delay, Departure, Excess, Limit, Moment, Queue, Rate, Refusal, Verdict,
};
use crate::observe::metrics::{ActorKind, Rejected};
use crate::time::pacer::Alarm;
#[cfg(test)]
pub(super) use crash::CrashKey;
use queue::{KeyQueue, SharedQueue, Waiter};

/// Owns one key's bucket and queue, and releases its waiters one by one, each when it is due.
pub(super) struct KeyActor {
    queue: KeyQueue,
    shard: Rc<Shard>,
    snapshot: Rc<Snapshot>,
    /// Created when the first request waits. Most keys never have a waiter.
    alarm: Option<Alarm>,
    /// Whether the gateway stops: no request may wait any more.
    rejects_all: bool,
}

impl KeyActor {
    pub(super) fn new(rate: Rate, shard: Rc<Shard>, snapshot: Rc<Snapshot>) -> Self {
        let bucket = snapshot.bucket.get();
        let queue = match shard.sharing() {
            Some(zone) => {
                let key = Key::clone(&snapshot.key);
                KeyQueue::Shared(SharedQueue::new(zone, key, rate, bucket))
            }
            None => KeyQueue::Own(Queue::new(rate, bucket, shard.pacer.now())),
        };
        Self {
            queue,
            shard,
            snapshot,
            alarm: None,
            rejects_all: false,
        }
    }

    fn join(&mut self, join: Join, now: Moment, ctx: &mut Context<Self>) {
        let queue = match &mut self.queue {
            KeyQueue::Own(queue) => queue,
            KeyQueue::Shared(queue) => {
                let zone = Rc::clone(queue.zone());
                return self.ask(&zone, join, ctx);
            }
        };
        let Join {
            limit,
            dry_run,
            ticket,
            reply,
            ..
        } = join;
        let (verdict, charge) = queue.charge(limit, now);
        match (verdict, charge, limit.delay) {
            (Verdict::Delay { excess, .. }, Some(charge), Delay::Above(delay)) if !dry_run => {
                let waiter = Waiter {
                    since: now,
                    limit,
                    excess,
                    reply,
                };
                queue.seat(charge, delay, ticket, waiter);
                self.ensure_alarm(ctx);
            }
            (Verdict::Pass { excess }, Some(charge), _) => {
                self.grant(reply, limit, Charge::Own(charge), excess, None, now);
            }
            (Verdict::Delay { excess, until }, Some(charge), _) => {
                self.grant(reply, limit, Charge::Own(charge), excess, Some(until), now);
            }
            (Verdict::Reject(refusal), ..) => answer_rejected(reply, refusal.into_rejection(now)),
            // Every request that is not rejected is charged.
            (_, None, _) => {}
        }
    }

    /// Has an alarm from now on.
    fn ensure_alarm(&mut self, ctx: &mut Context<Self>) {
        if self.alarm.is_none() {
            let (alarm, bell) = self.shard.pacer.alarm();
            self.alarm = Some(alarm);
            Self::add_stream(bell, ctx);
        }
    }

    /// Releases all waiters that are due.
    fn drain(&mut self, now: Moment) {
        while let Some(Departure {
            due,
            charge,
            waiter,
        }) = self.queue.take_due(now)
        {
            let Waiter {
                since,
                limit,
                excess,
                reply,
            } = waiter;
            self.shard.metrics.waited(now.since(since));
            self.shard.metrics.lateness.record(now.since(due));
            self.grant(reply, limit, charge, excess, Some(due), now);
        }
    }

    /// Grants a turn. If the receiver has gone, gives the charge back.
    fn grant(
        &mut self,
        reply: oneshot::Sender<Answer>,
        limit: Limit,
        charge: Charge,
        excess: Excess,
        due: Option<Moment>,
        now: Moment,
    ) {
        let account = Account::Bucket(self.queue.bucket());
        let outlook = Outlook::of(&account, self.queue.rate(), limit, now);
        if reply
            .send(Answer::Turn(Grant {
                charge,
                due,
                excess,
                outlook,
            }))
            .is_err()
        {
            self.queue.refund(charge, now);
        }
    }

    /// Handles an event at the present moment.
    ///
    /// Waiters that are due leave first, so neither a late wake-up nor a flood of messages delays
    /// them. Then `event` runs. Then it publishes the new state to the supervisor.
    fn at_now(&mut self, event: impl FnOnce(&mut Self, Moment)) {
        let now = self.shard.pacer.now();
        self.drain(now);
        event(self, now);
        self.drain(now);
        if let Some(alarm) = &self.alarm {
            alarm.set(self.queue.due());
        }
        self.publish(now);
    }

    fn message_handled(&self) {
        self.snapshot
            .pending
            .set(self.snapshot.pending.get().saturating_sub(1));
    }

    /// Notes that one more message is on its way, from elsewhere than the supervisor.
    fn add_pending(&self) {
        self.snapshot.pending.set(self.snapshot.pending.get() + 1);
    }

    fn publish(&self, now: Moment) {
        self.snapshot.bucket.set(self.queue.bucket_of_file(now));
        self.snapshot.oldest.set(self.queue.oldest());
        self.snapshot.costs.set(self.queue.costs());
        self.shard.count_waiters(&self.snapshot, self.queue.depth());
    }

    /// Rejects these waiters. Returns how many of them were still there.
    fn reject_waiters(&self, waiters: Vec<Waiter>, now: Moment) -> usize {
        let (bucket, rate) = (self.queue.bucket(), self.queue.rate());
        let rejected = waiters.into_iter().filter_map(|waiter| {
            let retry_at = bucket.accepts_at(rate, waiter.limit, 0, now);
            let rejection = Rejection {
                reason: Rejected::Stopping,
                excess: waiter.excess,
                retry_after: retry_at.since(now),
            };
            waiter.reply.send(Answer::Rejected(rejection)).ok()
        });
        rejected.count()
    }
}

impl Actor for KeyActor {
    type Context = Context<Self>;
}

impl Supervised for KeyActor {
    /// Continues from the last published bucket, as if all waiters had left.
    ///
    /// They are answered when the old queue is dropped.
    fn restarting(&mut self, _: &mut Self::Context) {
        let (rate, now) = (self.queue.rate_of_file(), self.shard.pacer.now());
        let mut bucket = self.snapshot.bucket.get();
        bucket.take_back(rate, self.snapshot.costs.get());
        self.snapshot.bucket.set(bucket);
        let (shard, snapshot) = (Rc::clone(&self.shard), Rc::clone(&self.snapshot));
        *self = Self {
            rejects_all: self.rejects_all,
            ..Self::new(rate, shard, snapshot)
        };
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

impl Handler<Join> for KeyActor {
    type Result = ();

    fn handle(&mut self, join: Join, ctx: &mut Context<Self>) {
        self.message_handled();
        self.at_now(|actor, now| actor.join(join, now, ctx));
    }
}

impl Handler<Probe> for KeyActor {
    type Result = ();

    fn handle(&mut self, probe: Probe, _: &mut Context<Self>) {
        self.message_handled();
        self.at_now(|actor, now| {
            let (bucket, rate) = (actor.queue.bucket(), actor.queue.rate());
            let refusal = bucket.refuses(rate, probe.limit, now);
            // The caller may have gone.
            let _gone = probe
                .reply
                .send(refusal.map(|refusal| refusal.into_rejection(now)));
        });
    }
}

impl Handler<Leave> for KeyActor {
    type Result = ();

    fn handle(&mut self, leave: Leave, _: &mut Context<Self>) {
        self.message_handled();
        self.at_now(|actor, _| {
            actor.queue.leave(leave.ticket);
        });
    }
}

impl Handler<Refund> for KeyActor {
    type Result = ();

    fn handle(&mut self, refund: Refund, _: &mut Context<Self>) {
        self.message_handled();
        self.at_now(|actor, now| actor.queue.refund(refund.charge, now));
    }
}

impl Handler<RetuneKey> for KeyActor {
    type Result = ();

    fn handle(&mut self, RetuneKey(rate): RetuneKey, ctx: &mut Context<Self>) {
        self.message_handled();
        self.at_now(|actor, now| match &mut actor.queue {
            KeyQueue::Own(queue) => queue.retune(rate, now),
            KeyQueue::Shared(_) => actor.adopt_settings(rate, now, ctx),
        });
    }
}

impl Handler<RejectAll> for KeyActor {
    type Result = ();

    fn handle(&mut self, _: RejectAll, _: &mut Context<Self>) {
        self.message_handled();
        self.rejects_all = true;
        self.at_now(|actor, now| {
            let waiters = actor.queue.reject_all();
            actor.reject_waiters(waiters, now);
        });
    }
}

impl Handler<ForgetKey> for KeyActor {
    type Result = ();

    fn handle(&mut self, forget: ForgetKey, _: &mut Context<Self>) {
        self.message_handled();
        self.at_now(|actor, now| {
            let waiters = match forget.waiters {
                Waiters::Stay => Vec::new(),
                Waiters::Rejected => actor.queue.reject_all(),
            };
            actor.queue.forget(now);
            let rejected = actor.reject_waiters(waiters, now);
            // The caller may have gone.
            let _gone = forget.reply.send(Some(rejected));
        });
    }
}

impl Handler<End> for KeyActor {
    type Result = ();

    fn handle(&mut self, _: End, ctx: &mut Context<Self>) {
        ctx.stop();
    }
}

impl Refusal {
    pub(super) fn into_rejection(self, now: Moment) -> Rejection {
        Rejection {
            reason: self.reason.into(),
            excess: self.excess,
            retry_after: self.retry_at.since(now),
        }
    }
}

pub(super) fn answer_rejected(reply: oneshot::Sender<Answer>, rejection: Rejection) {
    // The caller may have gone. Nothing was charged, so there is nothing to give back.
    let _gone = reply.send(Answer::Rejected(rejection));
}
