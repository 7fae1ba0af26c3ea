//! Slots of a gate's own schedule: when a request leaves.

use std::hash::Hash;

use super::{Gate, Moment, Rate};

/// An instant at a rate: nanoseconds times [`Rate::ticks_per_nano`]. Never rounded.
pub(super) type Ticks = i128;

/// A departure with a rate: its instant, and its cost with later bills.
pub(super) type Paced = (Ticks, u64);

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
        self.before = None;
        let now = ticks(rate, now);
        let charged = self.last.filter(|_| next.is_some_and(|it| it > now));
        let (due, cost) = charged.unwrap_or((now, 0));
        self.last = Some((due, cost + u64::from(extra)));
    }

    /// Removes a charge for a request that has left and cost less than it was charged.
    ///
    /// Later departures move up, but not before `now`: time that has passed is lost.
    pub fn credit(&mut self, less: u32, now: Moment) {
        if let Some(granted) = &mut self.granted {
            return granted.credit(less.into());
        }
        self.before = None;
        if let Some((_, cost)) = &mut self.last {
            *cost = cost.saturating_sub(less.into());
        }
        self.opens = self.opens.max(now);
    }

    /// Drops granted slots that are too early for a request that is ready at `ready`.
    pub(super) fn expire(&mut self, ready: Moment) {
        if let Some(granted) = &mut self.granted {
            granted.expire(ready);
        }
    }

    /// Returns when a request that is ready at `ready` leaves. `None`: it has no slot.
    pub(super) fn departs(&self, ready: Moment) -> Option<Moment> {
        match &self.granted {
            None => Some(self.slot(ready).1),
            Some(granted) => granted.first(ready),
        }
    }

    /// Returns the next slot of its own schedule for a request that is ready at `ready`.
    pub(super) fn slot(&self, ready: Moment) -> (Ticks, Moment) {
        let Some(rate) = self.rate else {
            return (0, ready);
        };
        let ready = ticks(rate, ready);
        let next = self.next_slot(rate).unwrap_or(ready);
        let due = self.reserved.fit(rate, next.max(ready));
        (due, moment(rate, due))
    }

    /// Returns the slot after the last departure.
    pub(super) fn next_slot(&self, rate: Rate) -> Option<Ticks> {
        let (due, cost) = self.last?;
        Some(self.reserved.after(rate, due, cost))
    }

    /// Records that request `number`, which was ready at `ready`, leaves. Returns when it was due.
    pub(super) fn depart(&mut self, number: u64, ready: Moment, cost: u64) -> Moment {
        self.in_flight += 1;
        if let Some(due) = self.depart_granted(ready, cost) {
            return due;
        }
        let (ticks, due) = self.slot(ready);
        self.before = Some((number, self.last));
        self.last = self.rate.map(|_| (ticks, cost));
        self.reserved.forget(due);
        due
    }
}

/// Converts an instant to ticks of a rate.
pub(super) fn ticks(rate: Rate, moment: Moment) -> Ticks {
    Ticks::from(moment.as_nanos()) * rate.ticks_per_nano()
}

/// Returns the first nanosecond at which `ticks` have passed.
pub(super) fn moment(rate: Rate, ticks: Ticks) -> Moment {
    let per_nano = rate.ticks_per_nano();
    let nanos = (ticks + per_nano - 1).div_euclid(per_nano);
    Moment::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}
