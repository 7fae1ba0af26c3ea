/// Most gaps that are kept. Of more, the oldest are taken for numbers that were drawn.
const MAX_GAPS: usize = 16;

/// Ranges of numbers that an earlier process reserved, and may have drawn or not.
#[derive(Clone, Debug, Default)]
pub(super) struct Gaps(Vec<Gap>);

/// The numbers above `after`, up to `to`.
#[derive(Clone, Copy, Debug)]
struct Gap {
    after: u64,
    to: u64,
}

impl Gaps {
    pub(super) fn of(ranges: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let gaps = ranges.into_iter().filter(|(after, to)| after < to);
        let mut gaps: Vec<_> = gaps.map(|(after, to)| Gap { after, to }).collect();
        let over = gaps.len().saturating_sub(MAX_GAPS);
        gaps.drain(..over);
        Self(gaps)
    }

    pub(super) fn ranges(&self) -> impl Iterator<Item = (u64, u64)> {
        self.0.iter().map(|gap| (gap.after, gap.to))
    }

    pub(super) fn has(&self, number: u64) -> bool {
        self.0
            .iter()
            .any(|gap| gap.after < number && number <= gap.to)
    }

    /// How many of the numbers above `after`, up to `to`, are in gaps.
    pub(super) fn ahead(&self, after: u64, to: u64) -> u64 {
        let overlaps = self.0.iter();
        let overlaps = overlaps.map(|gap| gap.to.min(to).saturating_sub(gap.after.max(after)));
        overlaps.sum()
    }

    /// Forgets those that have been called.
    pub(super) fn forget_to(&mut self, called: u64) {
        self.0.retain(|gap| gap.to > called);
    }
}
