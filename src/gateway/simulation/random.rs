//! The random numbers of a simulation.

use std::ops::Range;
use std::time::Duration;

/// A generator of random numbers with a seed (`SplitMix64`).
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next random number.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns another generator, with its own sequence.
    pub(super) fn fork(&mut self) -> Self {
        Self(self.next())
    }

    /// Returns a number in a range that is not empty.
    pub(super) fn number(&mut self, range: Range<u64>) -> u64 {
        range.start + self.next() % (range.end - range.start)
    }

    /// Returns a small number in a range that is not empty.
    pub(super) fn small(&mut self, range: Range<u32>) -> u32 {
        let number = self.number(range.start.into()..range.end.into());
        u32::try_from(number).unwrap_or(range.start)
    }

    /// Returns an index below `count`; 0 if `count` is 0.
    pub(super) fn index(&mut self, count: usize) -> usize {
        let index = self.number(0..count.max(1) as u64);
        usize::try_from(index).unwrap_or(0)
    }

    /// Returns a duration in a range of microseconds that is not empty.
    pub(super) fn micros(&mut self, range: Range<u64>) -> Duration {
        Duration::from_micros(self.number(range))
    }

    /// Returns a duration in a range of milliseconds that is not empty, to the nanosecond.
    pub(super) fn millis(&mut self, range: Range<u64>) -> Duration {
        Duration::from_nanos(self.number(range.start * 1_000_000..range.end * 1_000_000))
    }

    /// Returns true in `percent` of the calls.
    pub(super) fn chance(&mut self, percent: u64) -> bool {
        self.number(0..100) < percent
    }

    /// Returns one of several values.
    pub(super) fn pick<T: Clone>(&mut self, values: &[T]) -> T {
        values[self.index(values.len())].clone()
    }
}
