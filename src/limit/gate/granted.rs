//! The granted slots of a gate that shares a grid.
//!
//! A *slot* is an instant at which one request may leave for the origin. The *grid* is the schedule
//! of slots that several gateways share. The store grants slots to each gateway, a little ahead.
//!
//! A request of cost `n` uses `n` slots. If fewer slots are there, the gate owes the rest: later
//! slots pay for it before another request leaves. A request is *ready* from the instant at which
//! it joined, or at which a permit became free for it.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

use super::Moment;
use super::key_reporting::KeyReport;
use crate::nanos;

/// Time for which a granted slot may still be used after its instant.
///
/// Answers of the store may arrive late. A slot that is not used by then is lost.
pub(super) const MAX_LATENESS: Duration = Duration::from_millis(5);
/// Upper bound of the kept slots. No rate needs more: the fastest has 50,000 slots in 50 ms.
const MAX_SLOTS: usize = 65_536;

/// Slots that a gate holds, and the costs that it owes.
#[derive(Debug, Default)]
pub(super) struct Granted {
    /// Slots in order of time. Empty while the gate owes costs.
    pub(super) slots: VecDeque<Moment>,
    /// Costs of departures for which no slot was used yet.
    pub(super) debt: u64,
    /// Instant before which slots are unusable: the next slot of the schedule that the gate had
    /// before it joined the grid.
    pub(super) from: Moment,
    /// Instant at which the last request was due. It may be in the future.
    last: Moment,
    /// Last slot that was used: for a departure, or for owed costs.
    paid: Moment,
    /// First free slot of the grid, as last reported.
    free: Moment,
    /// Time between two slots of this gate, by its last reported part of the rate.
    interval: Duration,
    pub(super) counts: SlotCounts,
    /// Last report of the waiting keys, without its changes. `None`: keys are not reported.
    pub(super) last_report: Option<KeyReport>,
}

/// Counts of granted slots by their use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlotCounts {
    /// Number of slots that were used for a departure, or for the rest of its cost.
    pub used: u64,
    /// Number of slots that expired unused.
    pub expired: u64,
}

impl Granted {
    /// Creates the record of a gate that joins the grid. `counts` are continued.
    ///
    /// Slots before `from` are unusable. `interval` is the time between two of the gate's slots,
    /// until the store reports its part of the rate.
    pub(super) fn new(counts: SlotCounts, from: Moment, interval: Duration) -> Self {
        Self {
            counts,
            from,
            free: from,
            interval,
            ..Self::default()
        }
    }

    /// Returns whether a new request has a slot by `now`, at the gate's part of the rate.
    pub(super) fn is_idle(&self, now: Moment) -> bool {
        let has_slot = || self.first(now).is_some_and(|slot| slot <= now);
        self.debt == 0 && (self.paid + self.interval <= now || has_slot())
    }

    /// Returns the number of this gate's slots in a span.
    pub(super) fn slots_in(&self, span: Duration) -> u64 {
        let slots = span.as_nanos() / self.interval.as_nanos().max(1);
        u64::try_from(slots).unwrap_or(u64::MAX)
    }

    /// Returns the number of held slots that a request that is ready at `ready` could use.
    pub(super) fn count(&self, ready: Moment) -> u64 {
        let too_early = self
            .slots
            .iter()
            .take_while(|slot| !is_usable(**slot, ready));
        (self.slots.len() - too_early.count()) as u64
    }

    /// Adds granted slots, with the first free slot and the interval of the same answer.
    pub fn add(&mut self, slots: &[Moment], free: Moment, interval: Duration, now: Moment) {
        (self.free, self.interval) = (free, interval);
        let room = MAX_SLOTS.saturating_sub(self.slots.len());
        // The last request may leave at a future slot. No later request may leave before it.
        let last = Some(self.last).filter(|last| *last > now);
        let from = self.from.max(last.unwrap_or_default());
        let usable = slots.iter();
        let usable = usable.filter(|slot| **slot >= from && is_usable(**slot, now));
        let before = self.slots.len();
        self.slots.extend(usable.take(room));
        // The granted slots that were not added are lost.
        self.counts.expired += (before + slots.len() - self.slots.len()) as u64;
        if !self.slots.iter().is_sorted() {
            self.slots.make_contiguous().sort_unstable();
        }
        self.pay();
    }

    /// Returns when a request that is ready at `ready` leaves. `None`: there is no slot for it.
    pub(super) fn first(&self, ready: Moment) -> Option<Moment> {
        let mut slots = self.slots.iter();
        let slot = slots.find(|slot| is_usable(**slot, ready))?;
        Some(ready.max(*slot))
    }

    /// Drops the slots that are too early for a request that is ready at `ready`.
    pub(super) fn expire(&mut self, ready: Moment) {
        while let Some(slot) = self.slots.front()
            && !is_usable(*slot, ready)
        {
            self.slots.pop_front();
            self.counts.expired += 1;
        }
    }

    /// Records that a request leaves, which was ready at `ready`. Returns when it was due.
    ///
    /// Slots that are too early must have [expired](Self::expire) before.
    pub(super) fn depart(&mut self, ready: Moment, cost: u64) -> Moment {
        let due = self.slots.front().map_or(ready, |slot| ready.max(*slot));
        self.last = due;
        self.debt += cost;
        self.pay();
        due
    }

    /// Adds a charge for requests that have left.
    pub(super) fn bill(&mut self, extra: u64) {
        self.debt += extra;
        self.pay();
    }

    /// Removes a charge for requests that have left. Used slots stay used.
    pub(super) fn credit(&mut self, less: u64) {
        self.debt = self.debt.saturating_sub(less);
    }

    /// Uses slots for the owed costs.
    fn pay(&mut self) {
        while self.debt > 0
            && let Some(slot) = self.slots.pop_front()
        {
            self.debt -= 1;
            self.paid = slot;
            self.counts.used += 1;
        }
    }

    /// Predicts when a request leaves that is ready at `ready` and has `ahead` costs before it.
    ///
    /// After the held slots, more are expected at this gate's part of the rate.
    pub(super) fn predict(&self, ready: Moment, ahead: u64) -> Moment {
        let mut missing = ahead.saturating_add(self.debt);
        for slot in self.slots.iter().filter(|slot| is_usable(**slot, ready)) {
            if missing == 0 {
                return ready.max(*slot);
            }
            missing -= 1;
        }
        let next = self.free.max(ready);
        let last = self.slots.back();
        let next = last.map_or(next, |last| next.max(*last + self.interval));
        next + Duration::from_nanos(nanos(self.interval).saturating_mul(missing))
    }
}

/// Returns whether a request that is ready at `ready` can use this slot.
fn is_usable(slot: Moment, ready: Moment) -> bool {
    slot + MAX_LATENESS >= ready
}
