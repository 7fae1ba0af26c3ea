//! Pause of a key: the key's clock stands still, and its requests wait for the end of the pause.

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
    ///
    /// Each with its charge, and its slot if it has waited for one.
    paused: Vec<(Waiter, Charge, Option<Moment>)>,
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
    pub(super) fn rest(&self, real: Moment) -> Duration {
        let until = self.until();
        until.map_or(Duration::ZERO, |until| until.since(real))
    }

    /// Returns the real time at which the key's clock will show `shown`. `now` is the real time.
    pub(super) fn real(&self, shown: Moment, now: Moment) -> Moment {
        let running = self.clock.real(shown);
        running.unwrap_or_else(|| self.until + shown.since(self.clock.at(now)))
    }

    /// Returns the requests that wait for the end of the pause, and that they are due at its end.
    pub(super) fn paused(&self) -> impl Iterator<Item = (Moment, &Waiter)> {
        let paused = self.paused.iter();
        paused.map(|(waiter, ..)| (Moment::default(), waiter))
    }

    pub(super) fn depth(&self) -> usize {
        self.paused.len()
    }

    /// Returns when the first paused request joined.
    pub(super) fn oldest(&self) -> Option<Moment> {
        self.paused.first().map(|(waiter, ..)| waiter.since)
    }

    /// Removes and returns all paused requests.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = Waiter> + use<> {
        let paused = std::mem::take(&mut self.paused).into_iter();
        paused.map(|(waiter, ..)| waiter)
    }

    /// Removes a request that left. Returns its charge.
    pub(super) fn leave(&mut self, ticket: Ticket) -> Option<Charge> {
        let mut paused = self.paused.iter();
        let index = paused.position(|(waiter, ..)| waiter.ticket == ticket)?;
        Some(self.paused.remove(index).1)
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
            return self.pause.paused.push((waiter, charge, due));
        }
        self.pass_or_wait(waiter, charge, due, now);
    }

    /// Releases the requests that waited for the end of the pause, in their order.
    pub(super) fn release_paused(&mut self, now: Moment) {
        if self.pause.depth() == 0 || self.pause.clock.is_stopped() {
            return;
        }
        for (waiter, charge, due) in std::mem::take(&mut self.pause.paused) {
            // A request without a slot has waited for the end of the pause only.
            self.pass_or_wait(waiter, charge, due.or(Some(now)), now);
        }
    }

    /// Returns why a request may not wait for the end of a pause; `None` if it may.
    ///
    /// Whatever the rate is, at most `burst` + 1 requests of a key wait for the end, plus the
    /// requests that `above_burst` allows.
    pub(super) fn refuses_in_pause(&self, limit: Limit, dry_run: bool) -> Option<Rejection> {
        let waits = self.pause.clock.is_stopped() && !dry_run;
        let is_full = waits && self.depth() > self.max_waiters(limit);
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
