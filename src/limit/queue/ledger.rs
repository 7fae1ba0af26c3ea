use std::collections::VecDeque;

/// Records which charges can be given back whole.
///
/// If a request had never come, every later level would be one request lower; but a level stops at
/// zero. So a charge is whole while each accepted request after it made a level of at least one. A
/// later request counts here even if its own charge was given back: what it hid of earlier charges
/// is forgotten.
///
/// The n-th mark is the place of the last request that made a level below n (counting from one).
/// So a charge is whole if the first mark is not after it. Giving the charge back lowers the later
/// levels by one: each mark after it takes the index before its own, and the last mark that is not
/// after it is removed. There are at most as many marks as the level has requests, plus one.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger {
    marks: VecDeque<u64>,
}

impl Ledger {
    /// Records that the request at `place`, the last so far, made this level.
    ///
    /// The level is in requests, rounded down.
    pub(super) fn charge(&mut self, place: u64, level: usize) {
        self.marks.truncate(level);
        self.marks.push_back(place);
    }

    /// Whether the charge at `place` can be given back whole.
    pub(super) fn is_whole(&self, place: u64) -> bool {
        self.marks.front().is_some_and(|first| *first <= place)
    }

    /// Records that the charge at `place` was given back, whole or in part.
    ///
    /// A part counts as a whole: the ledger then assumes lower levels than there are, so too
    /// little is given back rather than too much.
    pub(super) fn release(&mut self, place: u64) {
        let behind = self.marks.partition_point(|mark| *mark <= place);
        self.marks.remove(behind.saturating_sub(1));
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.marks.len()
    }
}
