//! Pause of a key: its clock stands still, and its requests wait for the end of the pause.
//!
//! The *real clock* goes on. A *slot* is a departure time on the queue's schedule, by the key's
//! clock: so during a pause no slot comes.

use std::time::Duration;

use actix::Context;
use limit::{Limit, Moment, StoppableClock, Ticket};

use super::KeyActor;
use super::waiter::Waiter;
use crate::zone::answer::{Charge, Rejection};

/// Pause of a key, and the requests that would be admitted at once without it.
#[derive(Default)]
pub(super) struct Pause {
    pub(super) clock: StoppableClock,
    /// End of the pause, by the real clock.
    until: Moment,
    /// Requests that wait for the end of the pause, in their order.
    paused: Vec<PausedRequest>,
}

/// Request that waits for the end of a pause.
struct PausedRequest {
    waiter: Waiter,
    charge: Charge,
    /// Slot of the request, if it has waited for one.
    due: Option<Moment>,
}

impl Pause {
    /// Starts a pause (stops the clock) or ends it (`until` is `None`).
    pub(super) fn set(&mut self, until: Option<Moment>, real: Moment) {
        match until {
            Some(until) => {
                self.clock.stop(real);
                self.until = until;
            }
            None => self.clock.go_on(real),
        }
    }

    /// Returns the end of the pause by the real clock; `None` if the key is not paused.
    pub(super) fn until(&self) -> Option<Moment> {
        self.clock.is_stopped().then_some(self.until)
    }

    /// Returns the time until the end of the pause; zero if the key is not paused.
    pub(super) fn time_left(&self, real: Moment) -> Duration {
        let until = self.until();
        until.map_or(Duration::ZERO, |until| until.since(real))
    }

    /// Returns the real time at which the key's clock will show `shown`. `now`: the real time now.
    ///
    /// The clock stands still until the end of a pause.
    pub(super) fn real_time(&self, shown: Moment, now: Moment) -> Moment {
        let running = self.clock.real(shown);
        running.unwrap_or_else(|| self.until + shown.since(self.clock.at(now)))
    }

    /// Returns the requests that wait for the end of the pause, each with its due time.
    ///
    /// The time is the earliest of all: by the key's clock they are due at once.
    pub(super) fn paused(&self) -> impl Iterator<Item = (Moment, &Waiter)> {
        let paused = self.paused.iter();
        paused.map(|paused| (Moment::default(), &paused.waiter))
    }

    /// Returns the number of requests that wait for the end of the pause.
    pub(super) fn depth(&self) -> usize {
        self.paused.len()
    }

    /// Returns when the first paused request joined.
    pub(super) fn oldest(&self) -> Option<Moment> {
        self.paused.first().map(|first| first.waiter.since)
    }

    /// Removes and returns all paused requests.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = Waiter> + use<> {
        let paused = std::mem::take(&mut self.paused).into_iter();
        paused.map(|paused| paused.waiter)
    }

    /// Removes a request that left. Returns its charge.
    pub(super) fn leave(&mut self, ticket: Ticket) -> Option<Charge> {
        let mut paused = self.paused.iter();
        let index = paused.position(|paused| paused.waiter.ticket == ticket)?;
        Some(self.paused.remove(index).charge)
    }
}

impl KeyActor {
    /// Admits a request that is due, or lets it wait for the end of a pause or for a permit.
    ///
    /// `due`: its slot, if it has waited for one.
    pub(super) fn pass(
        &mut self,
        waiter: Waiter,
        charge: Charge,
        due: Option<Moment>,
        now: Moment,
    ) {
        if self.pause.clock.is_stopped() {
            return self.pause.paused.push(PausedRequest {
                waiter,
                charge,
                due,
            });
        }
        self.pass_or_wait(waiter, charge, due, now);
    }

    /// Releases the requests that waited for the end of the pause, in their order.
    pub(super) fn release_paused(&mut self, now: Moment) {
        if self.pause.depth() == 0 || self.pause.clock.is_stopped() {
            return;
        }
        for paused in std::mem::take(&mut self.pause.paused) {
            // A request without a slot has waited for the end of the pause only.
            let due = paused.due.or(Some(now));
            self.pass_or_wait(paused.waiter, paused.charge, due, now);
        }
    }

    /// Returns why a request may not wait for the end of a pause; `None` if it may.
    ///
    /// At most `burst` + 1 requests of a key wait for the end, plus the requests that `above_burst`
    /// allows. This holds without a rate, too.
    pub(super) fn rejection_in_pause(&self, limit: Limit, dry_run: bool) -> Option<Rejection> {
        let would_wait = self.pause.clock.is_stopped() && !dry_run;
        let is_full = would_wait && self.depth() > self.max_waiters(limit);
        // `reject` adds the rest of the pause.
        is_full.then(|| Rejection::in_pause(Duration::ZERO))
    }

    /// Pauses the key until `until`, or ends the pause if it is `None`.
    ///
    /// Waiters that are due leave before the clock stops.
    pub(in crate::zone) fn pause(
        &mut self,
        until: Option<Moment>,
        now: Moment,
        ctx: &mut Context<Self>,
    ) {
        self.pause.set(until, self.shard.pacer.now());
        // Released requests may wait for permits now.
        self.drain(now);
        self.ensure_alarm_for_permits(ctx);
    }
}
