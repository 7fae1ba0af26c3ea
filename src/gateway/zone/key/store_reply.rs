//! Handlers of the store's replies about a key, and of missing replies.
//!
//! They serve zones whose requests queue. For other zones see `supervisor/without_queue`, which
//! applies `on_store_failure` in the same way. A `delay_level` is the `delay` of a limit: the
//! level, in requests, above which a request waits.

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
    /// Returns a [`Reply`] that calls `receive` with the store's reply, or with [`NoReply`].
    ///
    /// It counts as a pending message, so the supervisor does not end the actor before that call.
    pub(super) fn reply<T: Send + 'static>(
        &self,
        actor: Addr<Self>,
        receive: impl FnOnce(&mut Self, Result<T, NoReply>, Moment, &mut Context<Self>) + Send + 'static,
    ) -> Reply<T> {
        self.snapshot.pending.set(self.snapshot.pending.get() + 1);
        Reply::new(move |reply| {
            let call = move |this: &mut Self, now: Moment, ctx: &mut Context<Self>| {
                receive(this, reply, now, ctx);
            };
            actor.do_send(KeyCall(call));
        })
    }

    /// Asks the store to decide on a join. `since`: real time of the join.
    pub(super) fn ask_store(
        &self,
        link: &Rc<StoreLink>,
        pending: PendingJoin,
        since: Moment,
        ctx: &mut Context<Self>,
    ) {
        let limit = pending.join.limit;
        let reply = self.reply(ctx.address(), move |actor, decision, now, ctx| {
            actor.handle_decision(pending, since, decision, now, ctx);
        });
        link.join(&self.snapshot.key, limit, reply);
    }

    /// Admits a request, lets it wait or rejects it, as the store decided.
    ///
    /// Without a decision, `on_store_failure` applies.
    fn handle_decision(
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
        let (verdict, charge) = match (decision, queue.link.settings.on_store_failure) {
            (Ok(decision), _) => {
                queue.adopt_decision(&decision, now);
                let charge = decision.charge.map_or(Charge::Nothing, Charge::Store);
                (decision.verdict, charge)
            }
            (Err(NoReply), OnStoreFailure::Local) => {
                (queue.decide_alone(limit, now), Charge::Alone(limit.cost))
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
            Delay::Above(delay_level)
                if !dry_run && (due.is_some() || queue.waiters.is_busy(delay_level)) =>
            {
                if self.rejects_all {
                    self.queue.refund(charge, now);
                    self.reject_waiters(vec![waiter], now);
                    return;
                }
                queue.add_waiter(delay_level, waiter, due.unwrap_or(now), charge);
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

    /// Asks the store for slots for the waiters that were accepted without it, once it is back.
    pub(super) fn reschedule_waiters(&mut self, ctx: &mut Context<Self>) {
        let KeyQueue::Shared(queue) = &mut self.queue else {
            return;
        };
        let (unscheduled, link) = (queue.start_rescheduling(), Rc::clone(&queue.link));
        for (delay_level, cost) in unscheduled {
            let reply = self.reply(ctx.address(), move |actor, decision, now, ctx| {
                actor.handle_new_slot(delay_level, decision, now, ctx);
            });
            // The waiter is already accepted, so nothing may reject it.
            let limit = Limit::unlimited(Delay::Above(delay_level), cost);
            link.charge(&self.snapshot.key, limit, Some(reply));
        }
    }

    /// Moves a waiter that was accepted without the store to a slot on the store's schedule.
    fn handle_new_slot(
        &mut self,
        delay_level: u32,
        decision: Result<Decision, NoReply>,
        now: Moment,
        ctx: &mut Context<Self>,
    ) {
        let KeyQueue::Shared(queue) = &mut self.queue else {
            return;
        };
        queue.count_rescheduled();
        let Ok(decision) = decision else {
            return queue.stop_rescheduling();
        };
        queue.adopt_decision(&decision, now);
        let due = decision.due(now);
        if let Some(charge) = decision.charge {
            queue.replace_slot(delay_level, due, Charge::Store(charge));
        }
        self.reschedule_waiters(ctx);
    }

    /// Adopts the zone's present settings, in which the key has the rate `file_rate`.
    ///
    /// Waiters get a new rate when the store has confirmed it. Without waiters, the next join
    /// reports the rate to the store.
    pub(super) fn adopt_settings(&mut self, file_rate: Rate, now: Moment, ctx: &mut Context<Self>) {
        let (KeyQueue::Shared(queue), Some(link)) = (&mut self.queue, self.shard.store_link())
        else {
            return;
        };
        let is_retuned = queue.file_rate != file_rate;
        (queue.link, queue.file_rate) = (Rc::clone(&link), file_rate);
        if is_retuned && queue.waiters.depth() == 0 {
            queue.change_rate(file_rate, now, now);
        } else if is_retuned {
            let reply = self.reply(ctx.address(), |actor, in_force, now, _| {
                actor.handle_rate_in_force(in_force, now);
            });
            link.retune(&self.snapshot.key, reply);
        }
    }

    /// Adopts the rate that the store reported; without a reply, the rate of the file.
    fn handle_rate_in_force(&mut self, in_force: Result<InForce, NoReply>, now: Moment) {
        if let KeyQueue::Shared(queue) = &mut self.queue {
            let reported = in_force.map(|it| (it.rate, it.since.unwrap_or(now)));
            let (rate, since) = reported.unwrap_or((queue.file_rate, now));
            queue.change_rate(rate, since, now);
        }
    }
}
