//! Position numbers that this gateway draws itself during an outage of the room's store.
//!
//! Such a number has a mark, a random name of the outage, and a count. After the outage, the store
//! takes as many numbers of its own. Then the marked numbers *resolve* to the store's numbers.

use std::collections::HashMap;

use crate::time::clock;

/// Maximum number of outages whose numbers can be resolved.
const MAX_OUTAGES: usize = 1000;

/// Bit that marks a number drawn during an outage.
const MARK: u64 = 1 << 63;

/// Bits of the count in a marked number. The bits between these and the mark are the outage's name.
const COUNT_BITS: u64 = 0xffff_ffff;

/// Numbers drawn during outages of the store.
///
/// Their positions are behind all numbers drawn before the store came back.
#[derive(Debug, Default)]
pub(super) struct OutageNumbers {
    /// Name of the present outage, and the count of numbers drawn in it.
    present: Option<(u32, u64)>,
    /// Names of ended outages whose numbers the store has not taken yet, each with its count.
    ended: Vec<(u32, u64)>,
    /// For each outage, the store's number that precedes the first one of the outage.
    known: HashMap<u32, u64>,
}

impl OutageNumbers {
    /// Draws the next number of the present outage. Also returns how many it has drawn by now.
    pub(super) fn draw(&mut self) -> (u64, u64) {
        let (outage, count) = self.present.get_or_insert_with(|| (random_outage(), 0));
        *count += 1;
        let number = MARK | u64::from(*outage) << 32 | *count & COUNT_BITS;
        (number, *count)
    }

    /// Ends the present outage. Returns the ended outages whose numbers the store has to take.
    pub(super) fn end_present(&mut self) -> &[(u32, u64)] {
        self.ended.extend(self.present.take());
        &self.ended
    }

    /// Records the store's numbers for an ended outage. The first one follows `first`.
    pub(super) fn record_store_numbers(&mut self, outage: u32, first: u64) {
        self.ended.retain(|(ended, _)| *ended != outage);
        if self.known.len() < MAX_OUTAGES {
            self.known.insert(outage, first);
        }
    }

    /// Resolves a number to the store's number. A number without a mark is the store's already.
    ///
    /// # Errors
    ///
    /// The store's numbers for the outage are not known here. Returns the name of the outage.
    pub(super) fn resolve(&self, number: u64) -> Result<u64, u32> {
        if number & MARK == 0 {
            return Ok(number);
        }
        let outage = u32::try_from((number ^ MARK) >> 32).unwrap_or_default();
        let first = self.known.get(&outage).ok_or(outage)?;
        Ok(first + (number & COUNT_BITS))
    }
}

/// Draws a random name of an outage, 31 bits, so that two outages do not share one.
fn random_outage() -> u32 {
    use std::hash::{BuildHasher, RandomState};
    let random = RandomState::new().hash_one(clock::wall().as_nanos());
    u32::try_from(random >> 33).unwrap_or_default()
}
