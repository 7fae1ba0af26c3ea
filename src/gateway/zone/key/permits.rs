//! Permits of a key: bounds how many of its requests run at the same time (`in_flight`).

use std::time::Duration;

use actix::Context;
use limit::{Account, Excess, Limit, Moment, Reason, Refusal, Terms, Ticket, Verdict};

use super::super::answer::{Answer, Charge, Prediction, RETRY_SOON};
use super::KeyActor;
use super::waiter::{Waiter, WaitsFor};
use crate::zone::Rejection;
use crate::zone::pending::PermitRequest;

impl KeyActor {
    /// Admits a request that is due, or lets it wait for a permit.
    pub(super) fn pass_or_wait(
        &mut self,
        waiter: Waiter,
        charge: Charge,
        due: Option<Moment>,
        now: Moment,
    ) {
        let (limit, since) = (waiter.limit, waiter.since);
        if let Some(in_flight) = limit.in_flight
            && !self.has_permit(in_flight)
        {
            let terms = Terms {
                in_flight,
                max_wait: limit.max_wait,
            };
            let joined = match (waiter.waits_for, charge) {
                (WaitsFor::Permit { joined, .. }, _) => joined,
                (_, Charge::Own(charge)) => charge.at(),
                _ => since,
            };
            return self
                .permits
                .wait(terms, waiter.ticket, joined, (waiter, charge));
        }
        if due.is_some() {
            self.waited(since);
        }
        self.grant(waiter, charge, due, now);
    }

    /// Admits waiters that get a permit, and rejects waiters whose `max_wait` has expired.
    pub(super) fn drain_permit_waiters(&mut self, now: Moment) {
        while let Some((waiter, charge)) = self.permits.take_expired(now) {
            self.queue.refund(charge, now);
            let refusal = Refusal {
                reason: Reason::MaxWait,
                excess: waiter.excess,
                retry_at: now + RETRY_SOON,
            };
            self.reject(waiter.reply, Rejection::of(refusal, now), false);
        }
        if self.pause.clock.is_stopped() {
            return;
        }
        while let Some((waiter, charge)) = self.next_with_permit() {
            self.waited(waiter.since);
            self.grant(waiter, charge, Some(now), now);
        }
    }

    /// Returns why a request may not wait for a permit; `None` if it may or need not.
    ///
    /// At most `burst` requests of a key wait, for their slot and for permits together, plus the
    /// requests that `above_burst` allows. In a dry run nothing waits: requests in flight without a
    /// permit count as waiters.
    pub(super) fn refuses_permit(
        &self,
        limit: Limit,
        dry_run: bool,
        now: Moment,
    ) -> Option<Refusal> {
        let in_flight = limit.in_flight?;
        if self.shard.is_shared() {
            return self.refuses_shared_permit(limit, dry_run, now);
        }
        let mut bucket = self.queue.bucket();
        let (waits, excess) = match bucket.decide(self.queue.rate(), limit, now) {
            Verdict::Pass { excess } => (!self.permits.is_free(in_flight), excess),
            Verdict::Delay { excess, .. } => (true, excess),
            // The queue itself rejects it.
            Verdict::Reject(_) => return None,
        };
        let waiting = if dry_run {
            self.permits.running().saturating_sub(most(in_flight))
        } else {
            self.depth()
        };
        let is_refused = waits && waiting >= most(limit.ceiling(self.queue.rate()));
        // The time at which a request will end is unknown.
        is_refused.then(|| Refusal {
            reason: Reason::InFlight,
            excess,
            retry_at: now + RETRY_SOON,
        })
    }

    /// Returns whether a request would have to wait for a permit.
    pub(super) fn lacks_permit(&self, limit: Limit) -> bool {
        let in_flight = limit.in_flight;
        in_flight.is_some_and(|in_flight| !self.has_permit(in_flight))
    }

    /// Creates the alarm if a request waits for a permit, because such a wait can expire.
    pub(super) fn ensure_alarm_for_permits(&mut self, ctx: &mut Context<Self>) {
        if self.permits.expires().is_some() {
            self.ensure_alarm(ctx);
        }
    }

    /// Gives a permit to an admitted request that asks for it now.
    ///
    /// If no permit is free, the request waits, or sleeps on if it does not wait. A request sleeps
    /// between its admission and its request for a permit. At most `burst` requests of a key wait,
    /// asleep or not.
    pub(in crate::zone) fn offer_permit(
        &mut self,
        ask: PermitRequest,
        now: Moment,
        ctx: &mut Context<Self>,
    ) {
        let (limit, joined, waits) = (ask.limit, ask.joined, ask.waits);
        self.permits.wake(ask.ticket);
        let waiter = Waiter {
            since: self.real(now),
            limit,
            excess: Excess::default(),
            ticket: ask.ticket,
            onward: None,
            waits_for: WaitsFor::Permit {
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
        if !is_paused && !self.lacks_permit(limit) {
            return self.grant(waiter, Charge::Nothing, None, now);
        }
        match limit.in_flight {
            Some(in_flight) if self.shard.is_shared() && (waits || !is_paused) => {
                self.request_shared_permit(in_flight, waiter, now, ctx);
            }
            _ if self.depth() >= most(limit.ceiling(self.queue.rate())) => {
                self.refuse_permit(waiter, Charge::Nothing, false, now);
            }
            _ if waits => self.pass(waiter, Charge::Nothing, None, now),
            _ => self.report_no_permit(waiter),
        }
        self.ensure_alarm_for_permits(ctx);
    }

    /// Reports to a request that no permit is free. It sleeps on.
    pub(super) fn report_no_permit(&mut self, waiter: Waiter) {
        self.permits.sleep(waiter.ticket);
        // If the receiver was dropped, the request is about to leave.
        let _unsent = waiter.reply.send(Answer::NoPermit);
    }

    /// Frees the permit of a request that ended or did not use it. `stays`: it asks again later.
    pub(in crate::zone) fn return_permit(&mut self, ticket: Ticket, stays: bool) {
        self.free_permit(ticket);
        if stays {
            return self.permits.sleep(ticket);
        }
        self.permits.wake(ticket);
        self.permits.leave(ticket);
        self.pause.leave(ticket);
    }

    /// Predicts what the client may do next.
    pub(super) fn prediction(&self, limit: Limit, now: Moment) -> Prediction {
        // The next request may not use the extra waiters that `above_burst` allows.
        let limit = limit.with_above_burst(0);
        let account = Account::Bucket(self.queue.bucket());
        let prediction = Prediction::of(&account, self.queue.rate(), limit, now);
        let Some(in_flight) = limit.in_flight else {
            return prediction;
        };
        let room = most(in_flight) + most(limit.burst);
        let running = self.permits.running() + self.running_elsewhere();
        let room = room.saturating_sub(running + self.depth());
        let remaining = prediction
            .remaining
            .min(u32::try_from(room).unwrap_or(u32::MAX));
        let one_more_in = if room == 0 {
            RETRY_SOON
        } else {
            Duration::ZERO
        };
        Prediction {
            remaining,
            one_more_in: prediction.one_more_in.max(one_more_in),
        }
    }
}

/// Converts a maximum to `usize`.
pub(super) fn most(count: impl Into<u32>) -> usize {
    usize::try_from(count.into()).unwrap_or(usize::MAX)
}
