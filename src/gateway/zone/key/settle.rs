//! Changes what used turns were charged.

use std::rc::Rc;

use actix::{AsyncContext, Context, Handler};
use limit::{Cost, Moment};

use super::super::answer::Charge;
use super::super::messages::Settle;
use super::super::store_link::{Bill, Decision, NoReply};
use super::KeyActor;
use super::queue::KeyQueue;

impl Handler<Settle> for KeyActor {
    type Result = ();

    fn handle(&mut self, settle: Settle, ctx: &mut Context<Self>) {
        self.message_handled();
        self.at_now(|actor, now| actor.settle(settle.charge, settle.cost, now, ctx));
    }
}

impl KeyActor {
    fn settle(&mut self, charge: Charge, cost: Cost, now: Moment, ctx: &mut Context<Self>) {
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
            self.add_pending();
            zone.bill(&self.snapshot.key, bill, ctx.address().recipient());
        }
    }
    /// The store has charged what a used turn cost more, or has not.
    pub(super) fn billed(&mut self, bill: Bill, decision: Result<Decision, NoReply>, now: Moment) {
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
}
