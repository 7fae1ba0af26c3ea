//! Places for requests that need some of several keys, and take all of them or none.

use actix::{Context, Handler};
use limit::{Excess, Moment, Ticket};

use super::super::answer::{Answer, Charge};
use super::KeyActor;
use super::places::most;
use super::waiter::{Waiter, WaitsFor};
use crate::zone::messages::AskPlace;

impl Handler<AskPlace> for KeyActor {
    type Result = ();

    fn handle(&mut self, ask: AskPlace, ctx: &mut Context<Self>) {
        self.message_handled();
        self.at_now(|actor, now| actor.offer_place(ask, now, ctx));
        self.ensure_alarm_for_places(ctx);
    }
}

impl KeyActor {
    /// Gives a place to a request that is asleep here. Without one it waits, or sleeps on.
    ///
    /// At most `burst` requests of a key wait, whether they are asleep or not.
    fn offer_place(&mut self, ask: AskPlace, now: Moment, ctx: &mut Context<Self>) {
        let (limit, joined, waits) = (ask.limit, ask.joined, ask.waits);
        self.places.wake(ask.ticket);
        let waiter = Waiter {
            since: self.real(now),
            limit,
            excess: Excess::default(),
            ticket: ask.ticket,
            onward: None,
            waits_for: WaitsFor::Place {
                joined,
                at_once: !waits,
            },
            reply: ask.reply,
        };
        if self.rejects_all {
            self.reject_waiters(vec![waiter], now);
            return;
        }
        let is_paused = self.pause.clock.is_stopped();
        if !is_paused && !self.lacks_place(limit) {
            return self.grant(waiter, Charge::Nothing, None, now);
        }
        match limit.in_flight {
            Some(in_flight) if self.shard.is_shared() && (waits || !is_paused) => {
                self.ask_shared_place(in_flight, waiter, now, ctx);
            }
            _ if self.depth() >= most(limit.ceiling(self.queue.rate())) => {
                self.refuse_place(waiter, Charge::Nothing, false, now);
            }
            _ if waits => self.pass(waiter, Charge::Nothing, None, now),
            _ => self.has_no_place(waiter),
        }
    }

    /// Tells a request that no place is free. It sleeps on.
    pub(super) fn has_no_place(&mut self, waiter: Waiter) {
        self.places.sleep(waiter.ticket);
        // If it has gone, it is about to leave.
        let _gone = waiter.reply.send(Answer::NoPlace);
    }

    /// A request that needs no place here any more leaves.
    pub(super) fn leave_places(&mut self, ticket: Ticket) {
        self.places.wake(ticket);
        self.places.leave(ticket);
        self.pause.leave(ticket);
    }
}
