//! A random number generator with a seed.

/// Splitmix64: the same numbers from the same seed.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// Returns the `nth` of many sequences from one seed.
    pub fn of(seed: u64, nth: u64) -> Self {
        let mut rng = Self(seed ^ nth.wrapping_mul(0xD6E8_FEB8_6659_FD93));
        rng.next();
        rng
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Returns a number from `from` up to, but not including, `to`.
    pub fn within(&mut self, from: u64, to: u64) -> u64 {
        from + self.next() % (to - from)
    }

    pub fn percent(&mut self, chance: u64) -> bool {
        self.within(0, 100) < chance
    }

    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        let last = u64::try_from(of.len()).expect("few");
        of[usize::try_from(self.within(0, last)).expect("few")]
    }
}
