mod book;
mod told;

use std::rc::Rc;

use actix::{Actor, ActorContext, Context, Handler, StreamHandler};
use tokio::sync::oneshot;

use super::messages::{
    Answer, Charge, Dismiss, End, ForgetKey, Grant, Join, Key, Leave, Outlook, Probe, Refund,
    Rejection, RetuneKey, Waiters,
};
use super::published::{Published, Shard};
use crate::limit::{
    Account, Delay, Departure, Excess, Limit, Moment, Queue, Rate, Refusal, Verdict,
};
use crate::observe::metrics::Rejected;
use crate::time::pacer::Alarm;
use book::{Book, SharedBook, Waiter};

/// Owns one key's bucket and queue, and releases its waiters one by one, each when it is due.
pub(super) struct KeyActor {
    book: Book,
    shard: Rc<Shard>,
    published: Rc<Published>,
    /// Created when the first request waits. Most keys never have a waiter.
    alarm: Option<Alarm>,
    /// Whether the gateway stops: no request may wait any more.
    dismissed: bool,
}

impl KeyActor {
    pub(super) fn new(rate: Rate, shard: Rc<Shard>, published: Rc<Published>) -> Self {
        let bucket = published.bucket.get();
        let book = match shard.sharing() {
            Some(zone) => {
                let key = Key::clone(&published.key);
                Book::Shared(SharedBook::new(zone, key, rate, bucket))
            }
            None => Book::Own(Queue::new(rate, bucket, shard.pacer.now())),
        };
        Self {
            book,
            shard,
            published,
            alarm: None,
            dismissed: false,
        }
    }

    fn join(&mut self, join: Join, now: Moment, ctx: &mut Context<Self>) {
        let queue = match &mut self.book {
            Book::Own(queue) => queue,
            Book::Shared(book) => {
                let zone = Rc::clone(book.zone());
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
                self.listen(ctx);
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
    fn listen(&mut self, ctx: &mut Context<Self>) {
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
        }) = self.book.take_due(now)
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
        let account = Account::Bucket(self.book.bucket());
        let outlook = Outlook::of(&account, self.book.rate(), limit, now);
        if reply
            .send(Answer::Turn(Grant {
                charge,
                due,
                excess,
                outlook,
            }))
            .is_err()
        {
            self.book.refund(charge, now);
        }
    }

    /// Handles an event at the present moment.
    ///
    /// Waiters that are due leave first, so neither a late wake-up nor a flood of messages delays
    /// them. Then `event` runs. Then the new state is published to the supervisor.
    fn at_now(&mut self, event: impl FnOnce(&mut Self, Moment)) {
        let now = self.shard.pacer.now();
        self.drain(now);
        event(self, now);
        self.drain(now);
        if let Some(alarm) = &self.alarm {
            alarm.set(self.book.due());
        }
        self.publish(now);
    }

    fn handled(&self) {
        self.published
            .pending
            .set(self.published.pending.get().saturating_sub(1));
    }

    /// Notes that one more message is on its way, from elsewhere than the supervisor.
    fn expect_one_more(&self) {
        self.published.pending.set(self.published.pending.get() + 1);
    }

    fn publish(&self, now: Moment) {
        self.published.bucket.set(self.book.bucket_of_file(now));
        self.published.oldest.set(self.book.oldest());
        self.shard.count_waiters(&self.published, self.book.depth());
    }

    /// Rejects these waiters. Returns how many of them were still there.
    fn send_away(&self, waiters: Vec<Waiter>, now: Moment) -> usize {
        let (bucket, rate) = (self.book.bucket(), self.book.rate());
        let told = waiters.into_iter().filter_map(|waiter| {
            let retry_at = bucket.accepts_at(rate, waiter.limit, 0, now);
            let rejection = Rejection {
                reason: Rejected::Stopping,
                excess: waiter.excess,
                retry_after: retry_at.since(now),
            };
            waiter.reply.send(Answer::Rejected(rejection)).ok()
        });
        told.count()
    }
}

impl Actor for KeyActor {
    type Context = Context<Self>;
}

impl StreamHandler<()> for KeyActor {
    fn handle(&mut self, (): (), ctx: &mut Context<Self>) {
        self.at_now(|actor, _| actor.return_to_store(ctx));
    }
}

impl Handler<Join> for KeyActor {
    type Result = ();

    fn handle(&mut self, join: Join, ctx: &mut Context<Self>) {
        self.handled();
        self.at_now(|actor, now| actor.join(join, now, ctx));
    }
}

impl Handler<Probe> for KeyActor {
    type Result = ();

    fn handle(&mut self, probe: Probe, _: &mut Context<Self>) {
        self.handled();
        self.at_now(|actor, now| {
            let (bucket, rate) = (actor.book.bucket(), actor.book.rate());
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
        self.handled();
        self.at_now(|actor, _| {
            actor.book.leave(leave.ticket);
        });
    }
}

impl Handler<Refund> for KeyActor {
    type Result = ();

    fn handle(&mut self, refund: Refund, _: &mut Context<Self>) {
        self.handled();
        self.at_now(|actor, now| actor.book.refund(refund.charge, now));
    }
}

impl Handler<RetuneKey> for KeyActor {
    type Result = ();

    fn handle(&mut self, RetuneKey(rate): RetuneKey, ctx: &mut Context<Self>) {
        self.handled();
        self.at_now(|actor, now| match &mut actor.book {
            Book::Own(queue) => queue.retune(rate, now),
            Book::Shared(_) => actor.adopt_settings(now, ctx),
        });
    }
}

impl Handler<Dismiss> for KeyActor {
    type Result = ();

    fn handle(&mut self, _: Dismiss, _: &mut Context<Self>) {
        self.handled();
        self.dismissed = true;
        self.at_now(|actor, now| {
            let waiters = actor.book.dismiss();
            actor.send_away(waiters, now);
        });
    }
}

impl Handler<ForgetKey> for KeyActor {
    type Result = ();

    fn handle(&mut self, forget: ForgetKey, _: &mut Context<Self>) {
        self.handled();
        self.at_now(|actor, now| {
            let waiters = match forget.waiters {
                Waiters::Stay => Vec::new(),
                Waiters::Dismissed => actor.book.dismiss(),
            };
            actor.book.forget(now);
            let sent_away = actor.send_away(waiters, now);
            // The caller may have gone.
            let _gone = forget.reply.send(Some(sent_away));
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
