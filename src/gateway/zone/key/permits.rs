//! Permits of a key: bounds how many of its requests run at the same time (`in_flight`).
//!
//! A *permit* is the right to run one request. A request of several limits takes its permits after
//! all zones have admitted it. Between its admission and its request for a permit it *sleeps*:
//! `limit::Permits` keeps its ticket and counts it as a waiter.

use std::time::Duration;

use actix::Context;
use limit::{Account, Excess, Limit, Moment, Terms, Ticket, Verdict};

use super::KeyActor;
use super::waiter::{Waiter, WaitsFor};
use crate::observe::metrics::Rejected;
use crate::zone::answer::{Answer, Charge, Prediction, RETRY_SOON, Rejection};
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
            // Time of the join: the waiter with the earliest join gets the next permit.
            let joined = match (waiter.waits_for, charge) {
                (WaitsFor::Permit { joined, .. }, _) => joined,
                (_, Charge::Own(charge)) => charge.at(),
                _ => since,
            };
            let ticket = waiter.ticket;
            return self.permits.wait(terms, ticket, joined, (waiter, charge));
        }
        if due.is_some() {
            self.record_wait(since);
        }
        self.grant(waiter, charge, due, now);
    }

    /// Admits waiters that get a permit, and rejects waiters whose `max_wait` has expired.
    pub(super) fn drain_permit_waiters(&mut self, now: Moment) {
        while let Some((waiter, charge)) = self.permits.take_expired(now) {
            self.queue.refund(charge, now);
            let rejection = Rejection::soon_at_level(Rejected::MaxWait, waiter.excess);
            self.reject(waiter.reply, rejection, false);
        }
        if self.pause.clock.is_stopped() {
            return;
        }
        while let Some((waiter, charge)) = self.take_next_with_permit() {
            self.record_wait(waiter.since);
            self.grant(waiter, charge, Some(now), now);
        }
    }

    /// Returns the rejection of a request that may not wait for a permit.
    ///
    /// `None` if it may wait or need not. At most `burst` requests of a key wait, for their slot
    /// and for permits together, plus the requests that `above_burst` allows. In a dry run no
    /// request waits: requests in flight without a permit count as waiters.
    pub(super) fn rejection_without_permit(
        &self,
        limit: Limit,
        dry_run: bool,
        now: Moment,
    ) -> Option<Rejection> {
        let in_flight = limit.in_flight?;
        if self.shard.is_shared() {
            return self.rejection_without_shared_permit(limit, dry_run, now);
        }
        let mut bucket = self.queue.bucket();
        // The bucket is a copy, so nothing is charged.
        let (waits, excess) = match bucket.decide(self.queue.rate(), limit, now) {
            Verdict::Pass { excess } => (!self.permits.is_free(in_flight), excess),
            Verdict::Delay { excess, .. } => (true, excess),
            // The queue itself rejects it.
            Verdict::Reject(_) => return None,
        };
        let waiters = if dry_run {
            let running = self.permits.running();
            running.saturating_sub(to_usize(in_flight))
        } else {
            self.depth()
        };
        let is_full = waiters >= self.max_waiters(limit);
        (waits && is_full).then(|| Rejection::soon_at_level(Rejected::InFlight, excess))
    }

    /// Returns the maximum number of the key's waiters under this limit.
    pub(super) fn max_waiters(&self, limit: Limit) -> usize {
        to_usize(limit.ceiling(self.queue.rate()))
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

    /// Gives a permit to an admitted request that asks for it now, if one is free.
    ///
    /// Otherwise the request waits, or gets the answer that none is free and sleeps on, if it asked
    /// not to wait. At most `burst` requests of a key wait or sleep.
    pub(in crate::zone) fn offer_permit(
        &mut self,
        request: PermitRequest,
        now: Moment,
        ctx: &mut Context<Self>,
    ) {
        let (limit, waits) = (request.limit, request.waits);
        self.permits.wake(request.ticket);
        let waiter = Waiter {
            since: self.real_time(now),
            limit,
            excess: Excess::default(),
            ticket: request.ticket,
            // It has left the queue, so no gate must know its departure in advance.
            onward: None,
            waits_for: WaitsFor::Permit {
                joined: request.joined,
                is_try: !waits,
            },
            reply: request.reply,
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
                self.shared_permits_or_new(in_flight, ctx);
                self.pass_or_await_reply(waiter, Charge::Nothing, None, now);
            }
            _ if self.depth() >= self.max_waiters(limit) => {
                self.refuse_permit(waiter, Charge::Nothing, false, now);
            }
            _ if waits => self.pass(waiter, Charge::Nothing, None, now),
            _ => self.report_no_permit(waiter),
        }
        self.ensure_alarm_for_permits(ctx);
    }

    /// Answers a request that no permit is free. The request sleeps on.
    pub(super) fn report_no_permit(&mut self, waiter: Waiter) {
        self.permits.sleep(waiter.ticket);
        // If the receiver was dropped, the request is about to leave.
        let _unsent = waiter.reply.send(Answer::NoPermit);
    }

    /// Frees the permit of a request that ended or did not use it.
    ///
    /// `asks_again`: the request will ask for a permit again.
    pub(in crate::zone) fn return_permit(&mut self, ticket: Ticket, asks_again: bool) {
        self.free_permit(ticket);
        if asks_again {
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
        // Requests that may run or wait at the same time.
        let max_requests = to_usize(in_flight) + to_usize(limit.burst);
        let running = self.permits.running() + self.running_elsewhere();
        let room = max_requests.saturating_sub(running + self.depth());
        let permit_in = match room {
            0 => RETRY_SOON,
            _ => Duration::ZERO,
        };
        let room = u32::try_from(room).unwrap_or(u32::MAX);
        Prediction {
            remaining: prediction.remaining.min(room),
            one_more_in: prediction.one_more_in.max(permit_in),
        }
    }
}

/// Converts a number of requests to `usize`.
pub(super) fn to_usize(count: impl Into<u32>) -> usize {
    usize::try_from(count.into()).unwrap_or(usize::MAX)
}
