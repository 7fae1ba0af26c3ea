//! What a key's actor does with each message.

use actix::{ActorContext, Context, Handler};

use super::KeyActor;
use super::queue::KeyQueue;
use crate::zone::messages::{
    ChangeInFlight, End, ForgetKey, FreePlace, Join, Leave, Probe, Refund, RejectAll, RetuneKey,
    Waiters,
};

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
            actor.shard.answer_probe(probe, refusal, now);
        });
    }
}

impl Handler<Leave> for KeyActor {
    type Result = ();

    fn handle(&mut self, leave: Leave, _: &mut Context<Self>) {
        self.message_handled();
        self.at_now(|actor, now| {
            actor.queue.leave(leave.ticket);
            if let Some(charge) = actor.pause.leave(leave.ticket) {
                actor.queue.refund(charge, now);
            }
            if let Some(due) = actor.places.leave(leave.ticket) {
                actor.queue.refund(due.charge, now);
            }
        });
    }
}

impl Handler<FreePlace> for KeyActor {
    type Result = ();

    fn handle(&mut self, free: FreePlace, _: &mut Context<Self>) {
        self.message_handled();
        self.at_now(|actor, _| {
            actor.free_place(free.ticket);
            if free.stays {
                actor.places.sleep(free.ticket);
            } else {
                actor.leave_places(free.ticket);
            }
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

impl Handler<ChangeInFlight> for KeyActor {
    type Result = ();

    fn handle(&mut self, ChangeInFlight(changes): ChangeInFlight, _: &mut Context<Self>) {
        self.message_handled();
        self.at_now(|actor, _| {
            match &mut actor.queue {
                KeyQueue::Own(queue) => queue
                    .waiters_mut()
                    .for_each(|it| it.change_in_flight(&changes)),
                KeyQueue::Shared(queue) => queue
                    .waiters_mut()
                    .for_each(|it| it.change_in_flight(&changes)),
            }
            actor.places.change(&changes);
        });
    }
}

impl Handler<RejectAll> for KeyActor {
    type Result = ();

    fn handle(&mut self, _: RejectAll, _: &mut Context<Self>) {
        self.message_handled();
        self.rejects_all = true;
        self.at_now(|actor, now| {
            let waiters = actor.take_waiters();
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
                Waiters::Rejected => actor.take_waiters(),
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
