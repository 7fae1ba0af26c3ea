//! Handles the store's answers about a key, and their absence.

use std::rc::Rc;

use actix::{AsyncContext, Context, Handler};
use config::OnStoreFailure;
use limit::{Delay, Excess, Moment, Rate, Verdict};

use super::super::answer::{Charge, Rejection};
use super::super::messages::Join;
use super::super::store_link::{
    Decision, InForce, NoReply, Retuned, StoreLink, StoreReply, StoreRequest,
};
use super::KeyActor;
use super::queue::KeyQueue;
use super::waiter::{Waiter, WaitsFor};

impl Handler<StoreReply> for KeyActor {
    type Result = ();

    fn handle(&mut self, reply: StoreReply, ctx: &mut Context<Self>) {
        self.message_handled();
        let StoreReply { asked, decision } = reply;
        self.at_now(|actor, now| match asked {
            StoreRequest::Join(join, since) => actor.decide(join, since, decision, now, ctx),
            StoreRequest::Place(delay) => actor.place(delay, decision, now, ctx),
            StoreRequest::Bill(bill) => actor.billed(bill, decision, now),
        });
    }
}

impl Handler<Retuned> for KeyActor {
    type Result = ();

    fn handle(&mut self, Retuned(in_force): Retuned, _: &mut Context<Self>) {
        self.message_handled();
        self.at_now(|actor, now| {
            let KeyQueue::Shared(queue) = &mut actor.queue else {
                return;
            };
            let own = InForce {
                rate: queue.own(),
                since: Some(now),
            };
            queue.follow(in_force.unwrap_or(own), now);
        });
    }
}

impl KeyActor {
    /// Once the store is back, asks it for times for the waiters accepted without it.
    pub(super) fn return_to_store(&mut self, ctx: &mut Context<Self>) {
        let KeyQueue::Shared(queue) = &mut self.queue else {
            return;
        };
        let (unplaced, zone) = (queue.take_unplaced(), Rc::clone(queue.zone()));
        for (delay, cost) in unplaced {
            self.add_pending();
            zone.place(&self.snapshot.key, delay, cost, ctx.address().recipient());
        }
    }

    /// Asks the store to decide. The actor is neither parked nor ended before the answer.
    pub(super) fn ask(&self, zone: &Rc<StoreLink>, join: Join, ctx: &mut Context<Self>) {
        self.add_pending();
        zone.ask(join, ctx.address().recipient());
    }

    /// Adopts the zone's present settings, in which the key has this rate.
    ///
    /// Waiters follow a new rate when the store knows of it. If nothing waits, the store learns
    /// the rate from the next join.
    pub(super) fn adopt_settings(&mut self, rate: Rate, now: Moment, ctx: &mut Context<Self>) {
        let (KeyQueue::Shared(queue), Some(zone)) = (&mut self.queue, self.shard.sharing()) else {
            return;
        };
        let is_retuned = queue.own() != rate;
        queue.adopt(Rc::clone(&zone), rate);
        if is_retuned && queue.has_no_waiters() {
            let since = Some(now);
            queue.follow(InForce { rate, since }, now);
        } else if is_retuned {
            self.add_pending();
            zone.retune(&self.snapshot.key, ctx.address().recipient());
        }
    }

    /// Gives a waiter that was accepted without the store its time on the store's schedule.
    fn place(
        &mut self,
        delay: u32,
        decision: Result<Decision, NoReply>,
        now: Moment,
        ctx: &mut Context<Self>,
    ) {
        let KeyQueue::Shared(queue) = &mut self.queue else {
            return;
        };
        queue.placed();
        let Ok(decision) = decision else {
            return queue.stays_alone();
        };
        queue.learn(&decision, now);
        let due = decision.due(now);
        if let Some(charge) = decision.charge {
            queue.exchange(delay, due, Charge::Store(charge));
        }
        self.return_to_store(ctx);
    }

    /// Lets a request go on, wait or be rejected, as the store has decided or the zone falls back.
    fn decide(
        &mut self,
        join: Join,
        since: Moment,
        decision: Result<Decision, NoReply>,
        now: Moment,
        ctx: &mut Context<Self>,
    ) {
        self.place_is_decided(join.ticket);
        let KeyQueue::Shared(queue) = &mut self.queue else {
            return;
        };
        let (verdict, charge) = match (decision, queue.zone().on_store_failure) {
            (Ok(decision), _) => {
                queue.learn(&decision, now);
                let charge = decision.charge.map_or(Charge::Nothing, Charge::Store);
                (decision.verdict, charge)
            }
            (Err(NoReply), OnStoreFailure::Local) => (
                queue.decide(join.limit, now),
                Charge::Alone(join.limit.cost),
            ),
            (Err(NoReply), OnStoreFailure::Open) => {
                let excess = Excess::default();
                (Verdict::Pass { excess }, Charge::Nothing)
            }
            (Err(NoReply), OnStoreFailure::Closed) => {
                let rejection = Rejection::without_store();
                return self.reject(join.reply, rejection, join.dry_run);
            }
        };
        let (due, excess) = match verdict {
            Verdict::Reject(refusal) => {
                let rejection = Rejection::of(refusal, now);
                return self.reject(join.reply, rejection, join.dry_run);
            }
            Verdict::Pass { excess } => (None, excess),
            Verdict::Delay { until, excess } => (Some(until), excess),
        };
        let Join {
            limit,
            dry_run,
            ticket,
            onward,
            places_later,
            reply,
            ..
        } = join;
        let waiter = Waiter {
            since,
            limit,
            excess,
            ticket,
            onward,
            waits_for: WaitsFor::of(places_later),
            reply,
        };
        match limit.delay {
            // First in, first out: a request that may pass still waits behind earlier waiters.
            Delay::Above(delay) if !dry_run && (due.is_some() || queue.is_busy(delay)) => {
                if self.rejects_all {
                    self.queue.refund(charge, now);
                    self.reject_waiters(vec![waiter], now);
                    return;
                }
                queue.seat(delay, waiter, due.unwrap_or(now), charge);
                self.ensure_alarm(ctx);
            }
            _ if dry_run => self.pass_in_dry_run(waiter, charge, due, now),
            _ if limit.in_flight.is_some() => {
                self.pass_or_judge(waiter, charge, due, now);
                self.ensure_alarm_for_places(ctx);
            }
            _ => self.grant(waiter, charge, due, now),
        }
    }
}
