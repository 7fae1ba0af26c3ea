use std::collections::VecDeque;

use crate::Cost;

/// Records which charges can be given back whole.
///
/// If a request had never come, every later one would have found a level lower by its cost; but a
/// level stops at zero. So a charge is whole while each accepted request after it found a level of
/// at least its cost. A later request counts here even if its own charge was given back: what it
/// hid of earlier charges is forgotten.
///
/// The n-th mark is the place of the last request that found a level below n (counting from one).
/// Behind the last mark each would be as the last. So a charge of cost n is whole if the n-th mark
/// is not after it. Giving it back lowers the later levels by n: each mark after it takes the index
/// n before its own, and the last n marks that are not after it are removed. There are at most as
/// many marks as the level has requests, plus one.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger {
    marks: VecDeque<u64>,
}

impl Ledger {
    /// Records that the request at `place`, the last so far, found this level.
    ///
    /// The level is in requests, rounded down.
    pub(super) fn charge(&mut self, place: u64, level: usize) {
        let last = self.marks.back().copied().unwrap_or(place);
        self.marks.resize(level, last);
        self.marks.push_back(place);
    }

    /// Whether this cost of the charge at `place` can be given back whole.
    pub(super) fn is_whole(&self, place: u64, cost: Cost) -> bool {
        let mark = self.marks.get(cost.above_one() as usize);
        mark.or(self.marks.back())
            .is_some_and(|mark| *mark <= place)
    }

    /// Records that this cost of the charge at `place` was given back, whole or in part.
    ///
    /// A part counts as a whole: the ledger then assumes lower levels than there are, so too
    /// little is given back rather than too much.
    pub(super) fn release(&mut self, place: u64, cost: Cost) {
        let behind = self.marks.partition_point(|mark| *mark <= place);
        // If nobody came after it, what they found has not changed.
        let Some(after) = self.marks.len().checked_sub(behind + 1) else {
            return;
        };
        let cost = cost.get() as usize;
        let from = behind.saturating_sub(cost);
        self.marks.drain(from..(from + cost).min(behind + after));
    }

    /// Records that the charge at `place` rose by a cost.
    ///
    /// Which requests before it found a lower level than that is forgotten: too little is given
    /// back for them rather than too much.
    pub(super) fn bill(&mut self, place: u64, cost: Cost) {
        let behind = self.marks.partition_point(|mark| *mark <= place);
        for _ in 0..cost.get() {
            self.marks.insert(behind, place);
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.marks.len()
    }
}
