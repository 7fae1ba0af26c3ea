//! Lottery: the random order of the visitors who came before a waiting room opened.
//!
//! Each visitor has drawn a *number*. The lottery maps it to a *position*, in the order of which
//! the room calls the visitors.

use crate::stable_hash::mixed;

/// Random permutation of the `count` numbers above `first`.
///
/// It is computed for one number at a time, in both directions, so it needs no list. It is a
/// Feistel network over the next power of four that is at least `count`, applied again until the
/// result is in range (Black and Rogaway, "Ciphers with Arbitrary Finite Domains", 2002). Everybody
/// who knows the keys can verify the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lottery {
    /// Numbers up to this one are not part of it.
    pub first: u64,
    /// Number of permuted numbers.
    pub count: u64,
    /// Keys, one for each round.
    pub keys: LotteryKeys,
}

/// Keys of a [`Lottery`], derived from the secret of its room.
pub type LotteryKeys = [u64; ROUNDS];

const ROUNDS: usize = 6;

impl Lottery {
    /// Returns the position of a number.
    pub(super) fn position(&self, number: u64) -> u64 {
        self.walk(number, |half, mut pair| {
            for key in self.keys {
                pair = (pair.1, pair.0 ^ (mix(pair.1, key) & half));
            }
            pair
        })
    }

    /// Returns the number at a position.
    pub(super) fn number(&self, position: u64) -> u64 {
        self.walk(position, |half, mut pair| {
            for key in self.keys.iter().rev() {
                pair = (pair.1 ^ (mix(pair.0, *key) & half), pair.0);
            }
            pair
        })
    }

    /// Applies the network `step` to a number until the result is in range.
    ///
    /// `step(half, (left, right))` maps the two halves of a number; `half` is the mask of a half.
    /// Numbers outside the lottery are mapped to themselves.
    fn walk(&self, number: u64, step: impl Fn(u64, (u64, u64)) -> (u64, u64)) -> u64 {
        let Some(mut index) = number.checked_sub(self.first + 1) else {
            return number;
        };
        if index >= self.count {
            return number;
        }
        let bits = u64::BITS - (self.count - 1).leading_zeros();
        // Bits of a half.
        let bits = bits.div_ceil(2).max(1);
        let half = (1 << bits) - 1;
        loop {
            let (left, right) = step(half, (index >> bits, index & half));
            index = (left << bits) | right;
            if index < self.count {
                return self.first + 1 + index;
            }
        }
    }
}

/// Mixes a half and a key, by the finalizer of `SplitMix64` (Steele, Lea and Flood, 2014).
fn mix(half: u64, key: u64) -> u64 {
    mixed(half.wrapping_add(key).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lottery(first: u64, count: u64, seed: u64) -> Lottery {
        let keys = std::array::from_fn(|nth| mix(seed, nth as u64));
        Lottery { first, count, keys }
    }

    #[test]
    fn each_number_has_one_position_and_numbers_outside_keep_theirs() {
        for count in [1, 2, 3, 4, 5, 16, 17, 1000, 4097] {
            let lottery = lottery(10, count, count);
            let mut positions: Vec<u64> =
                (11..=10 + count).map(|it| lottery.position(it)).collect();
            for (number, position) in (11..).zip(&positions) {
                assert_eq!(lottery.number(*position), number);
            }
            positions.sort_unstable();
            assert!(positions.into_iter().eq(11..=10 + count));
            for other in [1, 10, 11 + count, 1 << 40] {
                assert_eq!(
                    (lottery.position(other), lottery.number(other)),
                    (other, other)
                );
            }
        }
    }

    /// Chi-squared over ten tenths of the positions, for each tenth of the numbers.
    #[test]
    fn early_visitors_get_no_better_positions() {
        let mut counts = [[0_u32; 10]; 10];
        for seed in 0..2000 {
            let lottery = lottery(0, 100, seed);
            for number in 1..=100_u64 {
                let tenth = |it: u64| usize::try_from((it - 1) / 10).unwrap();
                counts[tenth(number)][tenth(lottery.position(number))] += 1;
            }
        }
        for row in counts {
            let expected = 2000.0;
            let chi = row
                .iter()
                .map(|it| (f64::from(*it) - expected).powi(2) / expected);
            let chi: f64 = chi.sum();
            assert!(chi < 33.7, "{row:?} is that unlikely once in 10,000: {chi}");
        }
    }
}
