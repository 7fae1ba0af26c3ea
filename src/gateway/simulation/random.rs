use std::ops::Range;
use std::time::Duration;

/// A source of random numbers that is the same for the same seed (`SplitMix64`).
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Another source, with its own sequence.
    pub(super) fn fork(&mut self) -> Self {
        Self(self.next())
    }

    /// A number in a range that is not empty.
    pub(super) fn number(&mut self, range: Range<u64>) -> u64 {
        range.start + self.next() % (range.end - range.start)
    }

    /// A small number in a range that is not empty.
    pub(super) fn small(&mut self, range: Range<u32>) -> u32 {
        let number = self.number(range.start.into()..range.end.into());
        u32::try_from(number).unwrap_or(range.start)
    }

    /// An index of so many: 0 if there are none.
    pub(super) fn index(&mut self, count: usize) -> usize {
        let index = self.number(0..count.max(1) as u64);
        usize::try_from(index).unwrap_or(0)
    }

    /// A time in a range of microseconds that is not empty.
    pub(super) fn micros(&mut self, range: Range<u64>) -> Duration {
        Duration::from_micros(self.number(range))
    }

    /// A time in a range of milliseconds that is not empty, to the nanosecond.
    pub(super) fn millis(&mut self, range: Range<u64>) -> Duration {
        Duration::from_nanos(self.number(range.start * 1_000_000..range.end * 1_000_000))
    }

    pub(super) fn chance(&mut self, percent: u64) -> bool {
        self.number(0..100) < percent
    }

    /// One of several.
    pub(super) fn pick<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.index(all.len())].clone()
    }
}
