//! Handlers of the store's replies about a key, and of failures to reply.
//!
//! They serve zones whose requests queue. For other zones see `supervisor/immediate`, which applies
//! `on_store_failure` in the same way. A `delay` here is the `delay` of a limit: a request waits
//! until the level is at most this number of requests. It is not a duration.

use std::rc::Rc;

use actix::{Addr, AsyncContext, Context};
use config::OnStoreFailure;
use limit::{Delay, Excess, Limit, Moment, Rate, Verdict};

use super::KeyActor;
use super::handlers::KeyCall;
use super::queue::KeyQueue;
use super::waiter::Waiter;
use crate::observe::metrics::Rejected;
use crate::store::InForce;
use crate::zone::answer::{Charge, Rejection};
use crate::zone::pending::PendingJoin;
use crate::zone::store_link::{Decision, NoReply, Reply, StoreLink};

impl KeyActor {
    /// Once the store is back, asks it for slots for the waiters that were accepted without it.
    pub(super) fn return_to_store(&mut self, ctx: &mut Context<Self>) {
        let KeyQueue::Shared(queue) = &mut self.queue else {
            return;
        };
        let (unscheduled, zone) = (queue.take_unscheduled(), Rc::clone(&queue.zone));
        for (delay, cost) in unscheduled {
            let reply = self.reply(ctx.address(), move |actor, decision, now, ctx| {
                actor.reschedule(delay, decision, now, ctx);
            });
            // The request is already accepted, so nothing may reject it.
            let limit = Limit::unlimited(Delay::Above(delay), cost);
            zone.charge(&self.snapshot.key, limit, Some(reply));
        }
    }

    /// Asks the store to decide on a join.
    pub(super) fn ask(
        &self,
        zone: &Rc<StoreLink>,
        pending: PendingJoin,
        since: Moment,
        ctx: &mut Context<Self>,
    ) {
        let limit = pending.join.limit;
        let reply = self.reply(ctx.address(), move |actor, decision, now, ctx| {
            actor.decide(pending, since, decision, now, ctx);
        });
        zone.join(&self.snapshot.key, limit, reply);
    }

    /// Returns a [`Reply`] that calls `receive` with the store's reply or its failure.
    ///
    /// The actor is neither parked nor ended before that call.
    pub(super) fn reply<T: Send + 'static>(
        &self,
        actor: Addr<Self>,
        receive: impl FnOnce(&mut Self, Result<T, NoReply>, Moment, &mut Context<Self>) + Send + 'static,
    ) -> Reply<T> {
        self.snapshot.pending.set(self.snapshot.pending.get() + 1);
        Reply::new(move |answer| {
            let call = move |this: &mut Self, now: Moment, ctx: &mut Context<Self>| {
                receive(this, answer, now, ctx);
            };
            actor.do_send(KeyCall(call));
        })
    }

    /// Adopts the zone's present settings, in which the key has this rate.
    ///
    /// Waiters follow a new rate when the store has confirmed it. Without waiters, the store learns
    /// the rate from the next join.
    pub(super) fn adopt_settings(&mut self, rate: Rate, now: Moment, ctx: &mut Context<Self>) {
        let (KeyQueue::Shared(queue), Some(zone)) = (&mut self.queue, self.shard.sharing()) else {
            return;
        };
        let is_retuned = queue.own != rate;
        queue.adopt(Rc::clone(&zone), rate);
        if is_retuned && queue.line.depth() == 0 {
            queue.follow(rate, now, now);
        } else if is_retuned {
            let reply = self.reply(ctx.address(), |actor, in_force, now, _| {
                actor.retuned(in_force, now);
            });
            zone.retune(&self.snapshot.key, reply);
        }
    }

    /// Adopts the rate that the store reported; on failure, the rate of the file.
    fn retuned(&mut self, in_force: Result<InForce, NoReply>, now: Moment) {
        if let KeyQueue::Shared(queue) = &mut self.queue {
            let in_force = in_force.map(|it| (it.rate, it.since.unwrap_or(now)));
            let (rate, since) = in_force.unwrap_or((queue.own, now));
            queue.follow(rate, since, now);
        }
    }

    /// Moves a waiter that was accepted without the store to a slot on the store's schedule.
    ///
    /// `delay`: level above which the waiter waits, in requests.
    fn reschedule(
        &mut self,
        delay: u32,
        decision: Result<Decision, NoReply>,
        now: Moment,
        ctx: &mut Context<Self>,
    ) {
        let KeyQueue::Shared(queue) = &mut self.queue else {
            return;
        };
        queue.rescheduled();
        let Ok(decision) = decision else {
            return queue.stop_rescheduling();
        };
        queue.learn(&decision, now);
        let due = decision.due(now);
        if let Some(charge) = decision.charge {
            queue.exchange(delay, due, Charge::Store(charge));
        }
        self.return_to_store(ctx);
    }

    /// Admits a request, lets it wait or rejects it.
    ///
    /// Follows the store's decision, or `on_store_failure` without one.
    fn decide(
        &mut self,
        pending: PendingJoin,
        since: Moment,
        decision: Result<Decision, NoReply>,
        now: Moment,
        ctx: &mut Context<Self>,
    ) {
        let (limit, dry_run) = (pending.join.limit, pending.join.dry_run);
        self.forget_expected_permit(pending.join.ticket);
        let KeyQueue::Shared(queue) = &mut self.queue else {
            return;
        };
        let (verdict, charge) = match (decision, queue.zone.settings.on_store_failure) {
            (Ok(decision), _) => {
                queue.learn(&decision, now);
                let charge = decision.charge.map_or(Charge::Nothing, Charge::Store);
                (decision.verdict, charge)
            }
            (Err(NoReply), OnStoreFailure::Local) => {
                (queue.decide(limit, now), Charge::Alone(limit.cost))
            }
            (Err(NoReply), OnStoreFailure::Open) => {
                let excess = Excess::default();
                (Verdict::Pass { excess }, Charge::Nothing)
            }
            (Err(NoReply), OnStoreFailure::Closed) => {
                let rejection = Rejection::soon(Rejected::Store);
                return self.reject(pending.reply, rejection, dry_run);
            }
        };
        let (due, excess) = match verdict {
            Verdict::Reject(refusal) => {
                let rejection = Rejection::of(refusal, now);
                return self.reject(pending.reply, rejection, dry_run);
            }
            Verdict::Pass { excess } => (None, excess),
            Verdict::Delay { until, excess } => (Some(until), excess),
        };
        let waiter = Waiter::new(pending, excess, since);
        match limit.delay {
            // First in, first out: a request that may pass still waits behind earlier waiters.
            Delay::Above(delay) if !dry_run && (due.is_some() || queue.line.is_busy(delay)) => {
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
                self.pass_or_await_reply(waiter, charge, due, now);
                self.ensure_alarm_for_permits(ctx);
            }
            _ => self.grant(waiter, charge, due, now),
        }
    }
}
