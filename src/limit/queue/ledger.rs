//! The ledger of a queue: records which charges can be refunded in full.
//!
//! A queue numbers its accepted requests (`arrival`). The *level* is the number of charged requests
//! that have not leaked from the bucket yet.

use std::collections::VecDeque;

use crate::Cost;

/// Records which charges can be refunded in full.
///
/// If a request had never come, the level that each later request found would be lower by its cost.
/// But a level stops at zero. So a charge is *whole* if each accepted request after it found a
/// level of at least its cost. A later request counts even if its own charge was refunded: the
/// ledger keeps no record of the level without it.
///
/// The n-th mark is the arrival number of the last request that found a level below n. `marks[0]`
/// is the first mark. Marks beyond the last one would equal the last one. So a charge of cost n is
/// whole if the n-th mark is not after it.
///
/// A refund lowers the later levels by n. Each mark after the charge moves to an index n lower, and
/// the last n marks that are not after it are removed. There are at most as many marks as the level
/// has requests, plus one.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger {
    /// Arrival numbers that never decrease.
    marks: VecDeque<u64>,
}

impl Ledger {
    /// Records that request `arrival`, the last so far, found `level`: in requests, rounded down.
    pub(super) fn charge(&mut self, arrival: u64, level: usize) {
        let last = self.marks.back().copied().unwrap_or(arrival);
        self.marks.resize(level, last);
        self.marks.push_back(arrival);
    }

    /// Returns whether this cost of the charge of `arrival` can be refunded in full.
    pub(super) fn is_whole(&self, arrival: u64, cost: Cost) -> bool {
        let mark = self.marks.get(cost.above_one() as usize);
        let mark = mark.or(self.marks.back());
        mark.is_some_and(|mark| *mark <= arrival)
    }

    /// Records that this cost of the charge of `arrival` was refunded, in full or in part.
    ///
    /// A part counts as the whole. The ledger then assumes lower levels than there are, so later
    /// refunds are too small rather than too large.
    pub(super) fn release(&mut self, arrival: u64, cost: Cost) {
        let behind = self.marks.partition_point(|mark| *mark <= arrival);
        // If no request came after it, no level has changed.
        let Some(last) = self
            .marks
            .len()
            .checked_sub(1)
            .filter(|last| *last >= behind)
        else {
            return;
        };
        let cost = cost.get() as usize;
        // The last mark is never removed: the marks beyond it would equal it.
        let from = behind.saturating_sub(cost);
        self.marks.drain(from..(from + cost).min(last));
    }

    /// Records that the charge of `arrival` rose by a cost.
    ///
    /// After that, the ledger does not know which requests before `arrival` found a lower level.
    /// Their refunds are too small rather than too large.
    pub(super) fn bill(&mut self, arrival: u64, cost: Cost) {
        let behind = self.marks.partition_point(|mark| *mark <= arrival);
        for _ in 0..cost.get() {
            self.marks.insert(behind, arrival);
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.marks.len()
    }
}
