//! Slots of a grid that several gates share: those that this gate was granted.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

use super::Moment;
use super::telling::Telling;

/// How late a granted slot may still be used.
///
/// It is for answers that arrive late. A slot that nobody could use in time is lost.
pub(super) const LATE: Duration = Duration::from_millis(5);
/// Most slots that are kept. More are never granted ahead: the fastest rate has 50,000 in 50 ms.
const MAX_SLOTS: usize = 65_536;

/// The slots that a gate holds, and what it owes.
#[derive(Debug, Default)]
pub(super) struct Granted {
    /// In order of time. Empty while anything is owed.
    slots: VecDeque<Moment>,
    /// What has left beyond the slots that it has used.
    debt: u64,
    /// Slots before this are of no use.
    from: Moment,
    /// The slot in which something left last. It may be to come.
    last: Moment,
    /// The last slot that was used.
    paid: Moment,
    /// The first free slot of the grid, as last told.
    free: Moment,
    /// The time between two slots of this gate, as its part was last told.
    interval: Duration,
    counts: SlotCounts,
    /// What the store knows of the keys that wait; `None` while it is not told of them.
    pub(super) telling: Option<Telling>,
}

/// What became of the slots that a gate was granted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlotCounts {
    /// Slots in which something left, or that paid for what had left.
    pub used: u64,
    /// Slots whose time passed while nobody could use them.
    pub lapsed: u64,
}

impl Granted {
    /// With the counts of an earlier time. Slots before `from` are of no use.
    ///
    /// `interval`: the time between two of its slots, until its part is told.
    pub(super) fn new(counts: SlotCounts, from: Moment, interval: Duration) -> Self {
        Self {
            counts,
            from,
            free: from,
            interval,
            ..Self::default()
        }
    }

    pub(super) fn counts(&self) -> SlotCounts {
        self.counts
    }

    /// Slots before this are of no use.
    pub(super) fn from(&self) -> Moment {
        self.from
    }

    /// Whether it has a slot by `now` for whatever comes, by its part of the rate.
    pub(super) fn is_idle(&self, now: Moment) -> bool {
        let has_slot = || self.first(now).is_some_and(|slot| slot <= now);
        self.debt == 0 && (self.paid + self.interval <= now || has_slot())
    }

    /// How many slots of its part are in such a span.
    pub(super) fn slots_in(&self, span: Duration) -> u64 {
        let slots = span.as_nanos() / self.interval.as_nanos().max(1);
        u64::try_from(slots).unwrap_or(u64::MAX)
    }

    /// The slots that it holds.
    pub(super) fn all(&self) -> u64 {
        self.slots.len() as u64
    }

    /// The slots that it holds and that what is ready at `ready` could use.
    pub(super) fn count(&self, ready: Moment) -> u64 {
        let passed = self.slots.iter().take_while(|slot| **slot + LATE < ready);
        (self.slots.len() - passed.count()) as u64
    }

    pub(super) fn debt(&self) -> u64 {
        self.debt
    }

    /// Adds slots that were granted, and what was told with them.
    pub fn add(&mut self, slots: &[Moment], free: Moment, interval: Duration, now: Moment) {
        (self.free, self.interval) = (free, interval);
        let room = MAX_SLOTS.saturating_sub(self.slots.len());
        // What has its turn and waits for its slot must not be overtaken.
        let last = Some(self.last).filter(|last| *last > now);
        let from = self.from.max(last.unwrap_or_default());
        let in_time = slots
            .iter()
            .filter(|slot| **slot >= from && **slot + LATE >= now);
        let before = self.slots.len();
        self.slots.extend(in_time.take(room));
        self.counts.lapsed += (before + slots.len() - self.slots.len()) as u64;
        if !self.slots.iter().is_sorted() {
            self.slots.make_contiguous().sort_unstable();
        }
        self.pay();
    }

    /// When a request leaves that is ready at `ready`; `None` without a slot for it.
    pub(super) fn first(&self, ready: Moment) -> Option<Moment> {
        let mut slots = self.slots.iter();
        let slot = slots.find(|slot| **slot + LATE >= ready)?;
        Some(ready.max(*slot))
    }

    /// Drops the slots that came too early for a request that is ready at `ready`.
    pub(super) fn lapse(&mut self, ready: Moment) {
        while self.slots.front().is_some_and(|slot| *slot + LATE < ready) {
            self.slots.pop_front();
            self.counts.lapsed += 1;
        }
    }

    /// A request of this cost leaves, which was ready at `ready`. Returns when it was due.
    ///
    /// Slots that came too early must have [lapsed](Self::lapse) before.
    pub(super) fn depart(&mut self, ready: Moment, cost: u64) -> Moment {
        let due = self.slots.front().map_or(ready, |slot| ready.max(*slot));
        self.last = due;
        self.debt += cost;
        self.pay();
        due
    }

    /// Charges more for what has left.
    pub(super) fn bill(&mut self, extra: u64) {
        self.debt += extra;
        self.pay();
    }

    /// Charges less for what has left. Slots that are used up stay so.
    pub(super) fn credit(&mut self, less: u64) {
        self.debt = self.debt.saturating_sub(less);
    }

    fn pay(&mut self) {
        while self.debt > 0
            && let Some(slot) = self.slots.pop_front()
        {
            self.debt -= 1;
            self.paid = slot;
            self.counts.used += 1;
        }
    }

    /// When one leaves that is ready at `ready` and has so many costs ahead.
    ///
    /// Behind the slots that are held, more come at the pace of this gate's part.
    pub(super) fn predict(&self, ready: Moment, ahead: u64) -> Moment {
        let usable = self.slots.iter().filter(|slot| **slot + LATE >= ready);
        let ahead = ahead.saturating_add(self.debt);
        let mut granted = 0;
        for slot in usable {
            if granted == ahead {
                return ready.max(*slot);
            }
            granted += 1;
        }
        let next = self.free.max(ready);
        let last = self.slots.back();
        let next = last.map_or(next, |last| next.max(*last + self.interval));
        let nanos = u64::try_from(self.interval.as_nanos()).unwrap_or(u64::MAX);
        next + Duration::from_nanos(nanos.saturating_mul(ahead - granted))
    }
}
