//! Gaps: numbers of a waiting room that may never have been drawn.
//!
//! A process reserves numbers in the state file before visitors draw them. If it is killed, the
//! next process begins above the reserved numbers, and cannot know which of them were drawn.

/// Upper bound of the gaps that are kept. Numbers of older gaps count as drawn.
const MAX_GAPS: usize = 16;

/// Ranges of numbers that an earlier process reserved, and may not have drawn.
///
/// A range `(after, to)` contains the numbers above `after`, up to `to`.
#[derive(Clone, Debug, Default)]
pub(super) struct Gaps(Vec<(u64, u64)>);

impl Gaps {
    pub(super) fn new(ranges: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let gaps = ranges.into_iter().filter(|(after, to)| after < to);
        let mut gaps: Vec<_> = gaps.collect();
        let surplus = gaps.len().saturating_sub(MAX_GAPS);
        gaps.drain(..surplus);
        Self(gaps)
    }

    pub(super) fn ranges(&self) -> Vec<(u64, u64)> {
        self.0.clone()
    }

    /// Returns whether a number may never have been drawn.
    pub(super) fn contains(&self, number: u64) -> bool {
        let mut gaps = self.0.iter();
        gaps.any(|(after, to)| *after < number && number <= *to)
    }

    /// Returns how many of the numbers above `after`, up to `to`, are in gaps.
    pub(super) fn count_between(&self, after: u64, to: u64) -> u64 {
        let overlap = |gap: &(u64, u64)| gap.1.min(to).saturating_sub(gap.0.max(after));
        self.0.iter().map(overlap).sum()
    }

    /// Forgets gaps whose numbers have been called.
    pub(super) fn forget_to(&mut self, called: u64) {
        self.0.retain(|(_, to)| *to > called);
    }
}
