use std::collections::VecDeque;

/// Knows which charges can be given back whole.
///
/// Had a request never come, every later level would be one request lower; but a level stops at zero. So a charge
/// is whole as long as each accepted request after it made a level of at least one. One that was given back itself
/// counts on: what it hid of those before it is forgotten.
///
/// The n-th mark is the place of the last request that made a level below n (counting from one). So a charge is
/// whole where the first mark is not after it. Giving it back lowers the levels after it by one: the marks after
/// it each become the mark before, and the last one that is not after it goes. There are never more marks than
/// the level has requests, and one.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger {
    marks: VecDeque<u64>,
}

impl Ledger {
    /// Notes that the request at `place`, the last one yet, made this level, in requests rounded down.
    pub(super) fn charge(&mut self, place: u64, level: usize) {
        self.marks.truncate(level);
        self.marks.push_back(place);
    }

    /// Whether the charge at `place` can be given back whole.
    pub(super) fn is_whole(&self, place: u64) -> bool {
        self.marks.front().is_some_and(|first| *first <= place)
    }

    /// Notes that the charge at `place` was given back, or a part of it. A part counts as a whole: levels are then
    /// taken to be lower than they are, and too little is given back rather than too much.
    pub(super) fn release(&mut self, place: u64) {
        let behind = self.marks.partition_point(|mark| *mark <= place);
        self.marks.remove(behind.saturating_sub(1));
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.marks.len()
    }
}
