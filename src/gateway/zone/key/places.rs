//! Bounds how many requests of a key run at the same time.

use std::time::Duration;

use actix::Context;
use limit::{Account, Limit, Moment, Reason, Refusal, Terms, Verdict};

use super::super::answer::{Charge, Outlook, RETRY_SOON};
use super::KeyActor;
use super::waiter::{Waiter, WaitsFor};
use crate::zone::Rejection;

/// A request whose time has come, but that must wait until fewer of its key run.
pub(super) struct DueWaiter {
    pub(super) waiter: Waiter,
    pub(super) charge: Charge,
}

impl KeyActor {
    /// Lets a request whose time has come go on, or wait for a place.
    pub(super) fn pass_or_wait(
        &mut self,
        waiter: Waiter,
        charge: Charge,
        due: Option<Moment>,
        now: Moment,
    ) {
        let limit = waiter.limit;
        if let Some(in_flight) = limit.in_flight
            && !self.has_place(in_flight)
        {
            let max_wait = limit.max_wait;
            let terms = Terms {
                in_flight,
                max_wait,
            };
            let joined = match (waiter.waits_for, charge) {
                (WaitsFor::Place { joined, .. }, _) => joined,
                (_, Charge::Own(charge)) => charge.at(),
                _ => waiter.since,
            };
            let ticket = waiter.ticket;
            let waiter = DueWaiter { waiter, charge };
            return self.places.wait(terms, ticket, joined, waiter);
        }
        if due.is_some() {
            self.waited(waiter.since);
        }
        self.grant(waiter, charge, due, now);
    }

    /// Lets those go on who have a place now, and rejects those who have waited too long for one.
    pub(super) fn drain_places(&mut self, now: Moment) {
        while let Some(DueWaiter { waiter, charge }) = self.places.take_expired(now) {
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
        while let Some(DueWaiter { waiter, charge }) = self.next_with_place() {
            self.waited(waiter.since);
            self.grant(waiter, charge, Some(now), now);
        }
    }

    /// Returns why a request may not wait for a place, if it would have to and may not.
    ///
    /// At most `burst` requests of a key wait, for their time and for places together, and those
    /// that are held back. In a dry run
    /// nothing waits: those who run without a place count as waiting.
    pub(super) fn refuses_place(
        &self,
        limit: Limit,
        dry_run: bool,
        now: Moment,
    ) -> Option<Refusal> {
        let in_flight = limit.in_flight?;
        if self.shard.is_shared() {
            return self.refuses_shared_place(limit, dry_run, now);
        }
        let mut bucket = self.queue.bucket();
        let (waits, excess) = match bucket.decide(self.queue.rate(), limit, now) {
            Verdict::Pass { excess } => (!self.places.is_free(in_flight), excess),
            Verdict::Delay { excess, .. } => (true, excess),
            // The queue says so itself.
            Verdict::Reject(_) => return None,
        };
        let waiting = if dry_run {
            self.places.running().saturating_sub(most(in_flight))
        } else {
            self.depth()
        };
        let is_refused = waits && waiting >= most(limit.ceiling(self.queue.rate()));
        // When a request will end is not known.
        is_refused.then(|| Refusal {
            reason: Reason::InFlight,
            excess,
            retry_at: now + RETRY_SOON,
        })
    }

    /// Whether a request would have to wait for a place.
    pub(super) fn lacks_place(&self, limit: Limit) -> bool {
        let in_flight = limit.in_flight;
        in_flight.is_some_and(|in_flight| !self.has_place(in_flight))
    }

    /// Has an alarm from now on if anything waits for a place: it may wait only so long.
    pub(super) fn ensure_alarm_for_places(&mut self, ctx: &mut Context<Self>) {
        if self.places.expires().is_some() {
            self.ensure_alarm(ctx);
        }
    }

    /// What the client may do next.
    pub(super) fn outlook(&self, limit: Limit, now: Moment) -> Outlook {
        // Places for those who are held back are not for whoever comes next.
        let limit = limit.with_above_burst(0);
        let account = Account::Bucket(self.queue.bucket());
        let outlook = Outlook::of(&account, self.queue.rate(), limit, now);
        let Some(in_flight) = limit.in_flight else {
            return outlook;
        };
        let room = most(in_flight) + most(limit.burst);
        let running = self.places.running() + self.running_elsewhere();
        let room = room.saturating_sub(running + self.depth());
        let remaining = outlook
            .remaining
            .min(u32::try_from(room).unwrap_or(u32::MAX));
        let one_more_in = if room == 0 {
            RETRY_SOON
        } else {
            Duration::ZERO
        };
        Outlook {
            remaining,
            one_more_in: outlook.one_more_in.max(one_more_in),
        }
    }
}

pub(super) fn most(count: impl Into<u32>) -> usize {
    usize::try_from(count.into()).unwrap_or(usize::MAX)
}
