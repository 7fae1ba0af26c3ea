//! What a key's actor does when it is told to, at its present moment.

use std::num::NonZeroU32;
use std::rc::Rc;

use actix::{ActorContext, AsyncContext, Context, Handler, Message};
use limit::{Cost, Moment, Rate, Ticket, ToCome};
use tokio::sync::{mpsc, oneshot};

use super::KeyActor;
use super::queue::KeyQueue;
use super::queue::Waiter;
use crate::zone::answer::{Answer, Charge};
use crate::zone::join::TurnToCome;
use crate::zone::join::{Join, Waiters};
use crate::zone::store_link::{Bill, Decision, NoReply};

/// A message to a key's actor: what it does at its present moment.
///
/// Whoever sends it has counted it as [pending](crate::zone::snapshot::Snapshot::pending).
#[derive(Message)]
#[rtype(result = "()")]
pub(in crate::zone) struct KeyCall<F>(pub(in crate::zone) F);

impl<F> Handler<KeyCall<F>> for KeyActor
where
    F: FnOnce(&mut Self, Moment, &mut Context<Self>) + Send + 'static,
{
    type Result = ();

    fn handle(&mut self, KeyCall(call): KeyCall<F>, ctx: &mut Context<Self>) {
        let pending = &self.snapshot.pending;
        pending.set(pending.get().saturating_sub(1));
        self.at_now(|actor, now| call(actor, now, ctx));
    }
}

/// The supervisor has taken the actor's bucket back: it ends.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub(in crate::zone) struct End;

impl Handler<End> for KeyActor {
    type Result = ();

    fn handle(&mut self, _: End, ctx: &mut Context<Self>) {
        ctx.stop();
    }
}

impl KeyActor {
    /// Answers whether a join would be accepted.
    pub(in crate::zone) fn probe(
        &self,
        join: &Join,
        reply: oneshot::Sender<Option<Answer>>,
        now: Moment,
    ) {
        let (bucket, rate) = (self.queue.bucket(), self.queue.rate());
        let refusal = bucket.refuses(rate, join.limit, now);
        self.shard.answer_probe(join, reply, refusal, now);
    }

    /// Removes a request that leaves, wherever it waits, and gives its charge back.
    pub(in crate::zone) fn leave(&mut self, ticket: Ticket, now: Moment) {
        self.queue.leave(ticket);
        if let Some(charge) = self.pause.leave(ticket) {
            self.queue.refund(charge, now);
        }
        if let Some(due) = self.places.leave(ticket) {
            self.queue.refund(due.charge, now);
        }
    }

    /// Gives back the charge of a turn.
    pub(in crate::zone) fn refund(&mut self, charge: Charge, now: Moment) {
        self.queue.refund(charge, now);
    }

    /// Changes what a used turn was charged to what its request turned out to cost.
    pub(in crate::zone) fn settle(
        &mut self,
        charge: Charge,
        cost: Cost,
        now: Moment,
        ctx: &mut Context<Self>,
    ) {
        let queue = match (&mut self.queue, charge) {
            (KeyQueue::Own(queue), Charge::Own(charge)) => return queue.settle(charge, cost, now),
            (KeyQueue::Shared(queue), Charge::Store(_) | Charge::Alone(_)) => queue,
            // Nothing was charged, or a zone that has moved to another store has other actors.
            _ => return,
        };
        if let Some(less) = charge.too_much(cost) {
            queue.give_back(less, now);
        }
        if let Some(more) = cost.above(charge.cost()) {
            let delay = queue.next_delay();
            let bill = Bill {
                charge,
                more,
                delay,
            };
            let zone = Rc::clone(queue.zone());
            let reply = self.reply(ctx.address(), move |actor, decision, now, _| {
                actor.billed(bill, decision, now);
            });
            zone.charge(&self.snapshot.key, bill.limit(), Some(reply));
        }
    }

    /// The store has charged what a used turn cost more, or has not.
    fn billed(&mut self, bill: Bill, decision: Result<Decision, NoReply>, now: Moment) {
        let KeyQueue::Shared(queue) = &mut self.queue else {
            return;
        };
        if let Ok(decision) = decision {
            queue.learn(&decision, now);
            queue.move_back(bill, &decision, now);
        } else {
            // Without the store this gateway's level alone counts, and nobody moves.
            queue.decide(bill.limit(), now);
        }
    }

    /// Adopts a new rate, and the present settings of a shared zone.
    pub(in crate::zone) fn retune(&mut self, rate: Rate, now: Moment, ctx: &mut Context<Self>) {
        match &mut self.queue {
            KeyQueue::Own(queue) => queue.retune(rate, now),
            KeyQueue::Shared(_) => self.adopt_settings(rate, now, ctx),
        }
    }

    /// Waiters that wait until fewer run than the first number of a pair wait for the second one.
    pub(in crate::zone) fn change_in_flight(&mut self, changes: &[(NonZeroU32, NonZeroU32)]) {
        let change = |waiter: &mut Waiter| waiter.change_in_flight(changes);
        match &mut self.queue {
            KeyQueue::Own(queue) => queue.waiters_mut().for_each(change),
            KeyQueue::Shared(queue) => queue.waiters_mut().for_each(change),
        }
        self.places.change(changes);
    }

    /// The gateway stops: all waiters are rejected, and no request may wait any more.
    pub(in crate::zone) fn stop(&mut self, now: Moment) {
        self.rejects_all = true;
        let waiters = self.take_waiters();
        self.reject_waiters(waiters, now);
    }

    /// Forgets what was charged. `reply` is told the number of rejected waiters.
    pub(in crate::zone) fn forget(
        &mut self,
        waiters: Waiters,
        reply: oneshot::Sender<Option<usize>>,
        now: Moment,
    ) {
        let waiters = match waiters {
            Waiters::Stay => Vec::new(),
            Waiters::Rejected => self.take_waiters(),
        };
        self.queue.forget(now);
        let rejected = self.reject_waiters(waiters, now);
        // The caller may have gone.
        let _gone = reply.send(Some(rejected));
    }

    /// Sends those that wait and go on to where that matters, if there are any.
    ///
    /// While the key is paused, they are due when the pause ends.
    pub(in crate::zone) fn list_turns_to_come(&self, to: &mpsc::UnboundedSender<Vec<TurnToCome>>) {
        let turn = |due: Moment, waiter: &Waiter| {
            let to_come = ToCome {
                due: self.pause.real(due, self.shard.pacer.now()),
                cost: waiter.limit.cost,
            };
            Some(TurnToCome {
                ticket: waiter.ticket,
                onward: waiter.onward?,
                to_come,
            })
        };
        let schedule = self.queue.schedule().into_iter();
        let turns: Vec<_> = schedule
            .chain(self.pause.paused())
            .filter(|(_, waiter)| !waiter.reply.is_closed())
            .filter_map(|(due, waiter)| turn(due, waiter))
            .collect();
        if !turns.is_empty() {
            // The caller may have gone.
            let _gone = to.send(turns);
        }
    }
}
