//! Slots of a gate's own schedule: when a request leaves.
//!
//! A *slot* is an instant at which one request may leave for the origin. The next slot is one
//! interval of the rate after the last departure, for each unit of its cost. A gate that shares a
//! *grid* with other gateways uses granted slots instead: see `granted`. A request is *ready* from
//! the instant at which it joined, or at which a permit became free for it.

use std::hash::Hash;

use super::{Gate, Moment, Rate, moment, ticks};

/// An instant at a rate: nanoseconds times [`Rate::ticks_per_nano`]. Never rounded.
pub(super) type Ticks = i128;

/// A departure at a rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Departed {
    /// Instant at which it was due.
    pub at: Ticks,
    /// Charged cost, with later bills and credits.
    pub cost: u64,
}

impl Departed {
    /// Returns a departure that was due at `due`.
    pub fn new(rate: Rate, due: Moment, cost: u64) -> Self {
        let at = ticks(rate, due);
        Self { at, cost }
    }
}

impl<K: Hash + Eq + Clone, W> Gate<K, W> {
    /// Adds a charge for a request that has left and cost more than it was charged.
    ///
    /// The extra charge delays later departures, from `now` on.
    pub fn bill(&mut self, extra: u32, now: Moment) {
        let Some(rate) = self.rate else {
            return;
        };
        if let Some(granted) = &mut self.granted {
            return granted.bill(extra.into());
        }
        let next = self.next_slot(rate);
        self.before_last = None;
        let now = ticks(rate, now);
        // If the next slot is over, the extra charge counts from now on.
        let last = self
            .last_departed
            .filter(|_| next.is_some_and(|next| next > now));
        let Departed { at, cost } = last.unwrap_or(Departed { at: now, cost: 0 });
        let cost = cost + u64::from(extra);
        self.last_departed = Some(Departed { at, cost });
    }

    /// Removes a charge for a request that has left and cost less than it was charged.
    ///
    /// Later departures move up, but not before `now`: time that has passed is lost.
    pub fn credit(&mut self, less: u32, now: Moment) {
        if let Some(granted) = &mut self.granted {
            return granted.credit(less.into());
        }
        self.before_last = None;
        if let Some(last) = &mut self.last_departed {
            last.cost = last.cost.saturating_sub(less.into());
        }
        self.opens = self.opens.max(now);
    }

    /// Drops granted slots that are too early for a request that is ready at `ready`.
    pub(super) fn expire(&mut self, ready: Moment) {
        if let Some(granted) = &mut self.granted {
            granted.expire(ready);
        }
    }

    /// Returns the instant at which a request that is ready at `ready` leaves. `None`: no slot.
    pub(super) fn departs(&self, ready: Moment) -> Option<Moment> {
        match &self.granted {
            None => Some(self.slot(ready).1),
            Some(granted) => granted.first(ready),
        }
    }

    /// Returns the next slot of the own schedule for a request that is ready at `ready`.
    ///
    /// In ticks (zero without a rate), and as an instant.
    pub(super) fn slot(&self, ready: Moment) -> (Ticks, Moment) {
        let Some(rate) = self.rate else {
            return (0, ready);
        };
        let ready = ticks(rate, ready);
        let next = self.next_slot(rate).unwrap_or(ready);
        let due = self.reserved.first_fit(rate, next.max(ready));
        (due, moment(rate, due))
    }

    /// Returns the slot after the last departure, or `None` if there was none.
    pub(super) fn next_slot(&self, rate: Rate) -> Option<Ticks> {
        let Departed { at, cost } = self.last_departed?;
        Some(self.reserved.after(rate, at, cost))
    }

    /// Records that request `number`, which was ready at `ready`, leaves. Returns when it was due.
    pub(super) fn depart(&mut self, number: u64, ready: Moment, cost: u64) -> Moment {
        self.in_flight += 1;
        if let Some(due) = self.depart_granted(ready, cost) {
            return due;
        }
        let (at, due) = self.slot(ready);
        self.before_last = Some((number, self.last_departed));
        self.last_departed = self.rate.map(|_| Departed { at, cost });
        self.reserved.forget(due);
        due
    }
}
