//! Hashes without a secret: the same in each process, so several gateways compute the same.
//!
//! They are no protection against clients that choose colliding keys.

use std::hash::Hasher;

use crate::to_float;

/// Returns a hash that is the same in each process and version: FNV-1a, and then [`mixed`].
pub fn stable_hash(bytes: &[u8]) -> u64 {
    let fold = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    mixed(bytes.iter().fold(0xcbf2_9ce4_8422_2325, fold))
}

/// Changes about half of all bits if one bit of the number changes (the finalizer of `SplitMix64`).
pub fn mixed(bits: u64) -> u64 {
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// Maps a number into the range from 0 to 1, so that consecutive numbers are far apart.
///
/// This is Fibonacci hashing: multiplication by the golden ratio.
pub(crate) fn spread(number: u64) -> f64 {
    to_float(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48) / 65_536.0
}

/// Hasher of numbers that no client chooses, so it needs no secret.
#[derive(Clone, Debug, Default)]
pub(crate) struct MixingHasher(u64);

impl Hasher for MixingHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = mixed(self.0 ^ number);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
