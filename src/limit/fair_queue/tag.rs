//! Tags: instants in the order of departures of a fair queue. The smallest tag departs next.

/// Largest weight of a key.
pub const MAX_WEIGHT: u32 = 64;

/// One whole cost at weight 1, in tags.
///
/// Each weight up to [`MAX_WEIGHT`] divides it, so no tag is rounded.
///
/// A queue that never empties can release 2^37 requests of cost 1 before a tag overflows. Where its
/// keys wait at many gateways, this is the number of all gateways together.
pub(crate) const UNIT: u128 = least_common_multiple(MAX_WEIGHT);

/// Instant in the order of departures.
pub(crate) type Tag = u128;

/// Returns the least common multiple of all numbers from 1 to `highest`.
const fn least_common_multiple(highest: u32) -> u128 {
    let mut multiple = 1;
    let mut next = 2;
    while next <= highest as u128 {
        // Euclid's algorithm.
        let (mut divisor, mut rest) = (multiple, next);
        while rest != 0 {
            (divisor, rest) = (rest, divisor % rest);
        }
        multiple = multiple / divisor * next;
        next += 1;
    }
    multiple
}
