//! Messages to a key's actor and their handlers.
//!
//! A message is a call of one of these methods at the present instant of the key's clock. Joins are
//! in the module above, pauses in `pause`, requests for permits in `permits`.

use std::rc::Rc;

use actix::{ActorContext, AsyncContext, Context, Handler, Message};
use limit::{Cost, ExpectedRequest, Moment, Rate, Ticket};
use tokio::sync::oneshot;

use super::KeyActor;
use super::queue::KeyQueue;
use super::waiter::Waiter;
use crate::zone::answer::{Answer, Charge};
use crate::zone::join::{DepartureSender, ExpectedDeparture, InFlightChange, Join, Waiters};
use crate::zone::store_link::{Decision, ExtraCharge, NoReply};

/// Message to a key's actor: a function that the actor calls at its present instant.
///
/// The sender has counted it as [pending](crate::zone::snapshot::Snapshot::pending).
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
        self.handle_event(|actor, now| call(actor, now, ctx));
    }
}

/// Ends the actor, because the supervisor has taken back its bucket.
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

    /// Removes a request that left, wherever it waits, and refunds its charge.
    pub(in crate::zone) fn leave(&mut self, ticket: Ticket, now: Moment) {
        self.queue.leave(ticket);
        if let Some(charge) = self.pause.leave(ticket) {
            self.queue.refund(charge, now);
        }
        if let Some((_, charge)) = self.permits.leave(ticket) {
            self.queue.refund(charge, now);
        }
    }

    /// Refunds a charge.
    pub(in crate::zone) fn refund(&mut self, charge: Charge, now: Moment) {
        self.queue.refund(charge, now);
    }

    /// Corrects the charge of an admitted request to its real cost.
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
            // Either nothing was charged, or the zone has moved to another store since the charge.
            _ => return,
        };
        if let Some(surplus) = charge.surplus(cost) {
            queue.refund_and_move_up(surplus, now);
        }
        if let Some(more) = cost.above(charge.cost()) {
            let extra_charge = ExtraCharge {
                charge,
                more,
                delay_level: queue.next_delay_level(),
            };
            let link = Rc::clone(&queue.link);
            let reply = self.reply(ctx.address(), move |actor, decision, now, _| {
                actor.handle_extra_charge(extra_charge, decision, now);
            });
            link.charge(&self.snapshot.key, extra_charge.limit(), Some(reply));
        }
    }

    /// Handles the store's reply to a charge for a cost that was higher than expected.
    fn handle_extra_charge(
        &mut self,
        extra_charge: ExtraCharge,
        decision: Result<Decision, NoReply>,
        now: Moment,
    ) {
        let KeyQueue::Shared(queue) = &mut self.queue else {
            return;
        };
        if let Ok(decision) = decision {
            queue.adopt_decision(&decision, now);
            queue.move_back(extra_charge, &decision, now);
        } else {
            // Without the store only this gateway's level counts, and no waiter moves.
            queue.decide_alone(extra_charge.limit(), now);
        }
    }

    /// Adopts a new rate; in a zone that is kept in the store, also the other settings.
    pub(in crate::zone) fn retune(&mut self, rate: Rate, now: Moment, ctx: &mut Context<Self>) {
        match &mut self.queue {
            KeyQueue::Own(queue) => queue.retune(rate, now),
            KeyQueue::Shared(_) => self.adopt_settings(rate, now, ctx),
        }
    }

    /// Changes the `in_flight` of waiters.
    pub(in crate::zone) fn change_in_flight(&mut self, changes: &[InFlightChange]) {
        let change = |waiter: &mut Waiter| waiter.change_in_flight(changes);
        match &mut self.queue {
            KeyQueue::Own(queue) => queue.waiters_mut().for_each(change),
            KeyQueue::Shared(queue) => queue.waiters.waiters_mut().for_each(change),
        }
        self.permits.change(changes);
    }

    /// Rejects all waiters and lets no later request wait, because the gateway stops.
    pub(in crate::zone) fn stop(&mut self, now: Moment) {
        self.rejects_all = true;
        let waiters = self.take_waiters();
        self.reject_waiters(waiters, now);
    }

    /// Forgets the charges, and rejects the waiters if `waiters` says so.
    ///
    /// Sends the number of rejected waiters to `reply`.
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
        // The caller may have been dropped.
        let _unsent = reply.send(Some(rejected));
    }

    /// Sends the departures of the waiters that go on to an origin's gate.
    ///
    /// While the key is paused, its waiters leave after the end of the pause.
    pub(in crate::zone) fn list_expected_departures(&self, sender: &DepartureSender) {
        let departure = |(due, waiter): (Moment, &Waiter)| {
            let onward = waiter.onward.filter(|_| !waiter.reply.is_closed())?;
            let to_come = ExpectedRequest {
                due: self.pause.real_time(due, self.shard.pacer.now()),
                cost: waiter.limit.cost,
            };
            Some(ExpectedDeparture {
                ticket: waiter.ticket,
                onward,
                to_come,
            })
        };
        let by_due = self.queue.schedule().into_iter();
        let waiters = by_due.chain(self.pause.paused());
        for departure in waiters.filter_map(departure) {
            // The caller may have been dropped.
            let _unsent = sender.send(departure);
        }
    }
}
