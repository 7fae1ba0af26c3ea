//! A key that is paused: its clock stands.

use std::time::Duration;

use actix::Context;
use limit::{Limit, Moment, StoppableClock, Ticket};

use super::super::answer::{Charge, Rejection};
use super::KeyActor;
use super::places::DueWaiter;
use super::queue::Waiter;

/// Whether a key is paused, and who would go on at once if it were not.
#[derive(Default)]
pub(super) struct Pause {
    pub(super) clock: StoppableClock,
    /// When it ends, by the real clock.
    until: Moment,
    /// Requests that have their turn, in their order.
    paused: Vec<(DueWaiter, Option<Moment>)>,
}

impl Pause {
    /// Stops the clock, or lets it go on.
    pub(super) fn set(&mut self, until: Option<Moment>, real: Moment) {
        match until {
            Some(until) => {
                self.clock.stop(real);
                self.until = until;
            }
            None => self.clock.go_on(real),
        }
    }

    /// Until when it lasts, by the real clock; `None` if the key is not paused.
    pub(super) fn until(&self) -> Option<Moment> {
        self.clock.is_stopped().then_some(self.until)
    }

    /// How much longer it takes.
    pub(super) fn rest(&self, real: Moment) -> Duration {
        self.until()
            .map_or(Duration::ZERO, |until| until.since(real))
    }

    /// When the clock of the key will show `shown`, by the real clock, which shows `now`.
    pub(super) fn real(&self, shown: Moment, now: Moment) -> Moment {
        let goes = self.clock.real(shown);
        goes.unwrap_or_else(|| self.until + shown.since(self.clock.at(now)))
    }

    /// Those who are held, and a moment at which they would go on if the clock went.
    pub(super) fn paused(&self) -> impl Iterator<Item = (Moment, &Waiter)> {
        self.paused
            .iter()
            .map(|(paused, _)| (Moment::default(), &paused.waiter))
    }

    pub(super) fn depth(&self) -> usize {
        self.paused.len()
    }

    /// When the first of those who are held joined.
    pub(super) fn oldest(&self) -> Option<Moment> {
        self.paused.first().map(|(paused, _)| paused.waiter.since)
    }

    /// Removes and returns all who are held.
    pub(super) fn reject_all(&mut self) -> impl Iterator<Item = Waiter> + use<> {
        std::mem::take(&mut self.paused)
            .into_iter()
            .map(|(paused, _)| paused.waiter)
    }

    /// Removes a request that leaves. Returns what it was charged.
    pub(super) fn leave(&mut self, ticket: Ticket) -> Option<Charge> {
        let index = self
            .paused
            .iter()
            .position(|(it, _)| it.waiter.ticket == ticket)?;
        Some(self.paused.remove(index).0.charge)
    }
}

impl KeyActor {
    /// Lets a request whose time has come go on, unless the key is paused.
    pub(super) fn pass(&mut self, request: DueWaiter, due: Option<Moment>, now: Moment) {
        if self.pause.clock.is_stopped() {
            return self.pause.paused.push((request, due));
        }
        self.pass_or_wait(request, due, now);
    }

    /// Lets those go on who were held. Those who had to wait before come first.
    pub(super) fn release_paused(&mut self, now: Moment) {
        if self.pause.depth() == 0 || self.pause.clock.is_stopped() {
            return;
        }
        for (request, due) in std::mem::take(&mut self.pause.paused) {
            // It has waited for the end of the pause.
            self.pass_or_wait(request, due.or(Some(now)), now);
        }
    }

    /// Returns why a request may not wait for the end of a pause, if it may not.
    ///
    /// At most `burst` + 1 requests of a key wait for it, and those that are held back, however
    /// high the rate is.
    pub(super) fn refuses_in_pause(&self, limit: Limit, dry_run: bool) -> Option<Rejection> {
        let most = usize::try_from(limit.ceiling(self.queue.rate())).unwrap_or(usize::MAX);
        let is_full = self.pause.clock.is_stopped() && !dry_run && self.depth() > most;
        is_full.then(Rejection::in_pause)
    }

    /// Pauses the key until then, or lets it go on.
    ///
    /// Those who are due have left before the clock stops.
    pub(in crate::zone) fn pause(
        &mut self,
        until: Option<Moment>,
        now: Moment,
        ctx: &mut Context<Self>,
    ) {
        self.pause.set(until, self.shard.pacer.now());
        // Those who were held may wait for places now.
        self.drain(now);
        self.ensure_alarm_for_places(ctx);
    }
}
