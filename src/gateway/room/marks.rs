//! Numbers that are drawn while the store of a room is out.

use std::collections::HashMap;

use crate::time::clock;

/// Most outages whose numbers are known.
const MAX_OUTAGES: usize = 1000;

/// Numbers that were drawn while the store was out have this bit.
const MARK: u64 = 1 << 63;

/// Numbers that were drawn while the store was out: they are behind all that were drawn before it
/// was back.
#[derive(Debug, Default)]
pub(super) struct Marks {
    /// The present outage, and how many numbers were drawn in it.
    present: Option<(u32, u64)>,
    /// Those whose numbers the store has to take.
    ended: Vec<(u32, u64)>,
    /// The numbers before the first one, by outage.
    known: HashMap<u32, u64>,
}

impl Marks {
    /// The next number of the present outage.
    pub(super) fn draw(&mut self) -> (u64, u64) {
        let (outage, count) = self.present.get_or_insert_with(|| (outage(), 0));
        *count += 1;
        (
            MARK | u64::from(*outage) << 32 | *count & 0xffff_ffff,
            *count,
        )
    }

    /// What the store has to take: what is drawn from now on is of another outage.
    pub(super) fn end_present(&mut self) -> &[(u32, u64)] {
        self.ended.extend(self.present.take());
        &self.ended
    }

    pub(super) fn know(&mut self, outage: u32, first: u64) {
        self.ended.retain(|(ended, _)| *ended != outage);
        if self.known.len() < MAX_OUTAGES {
            self.known.insert(outage, first);
        }
    }

    /// What a number is; `Err` with the outage if that is not known.
    pub(super) fn number(&self, number: u64) -> Result<u64, u32> {
        if number & MARK == 0 {
            return Ok(number);
        }
        let outage = u32::try_from((number ^ MARK) >> 32).unwrap_or_default();
        let first = self.known.get(&outage).ok_or(outage)?;
        Ok(first + (number & 0xffff_ffff))
    }
}

/// A name of an outage that no other one has, in 31 bits.
fn outage() -> u32 {
    use std::hash::{BuildHasher, RandomState};
    let random = RandomState::new().hash_one(clock::wall().as_nanos());
    u32::try_from(random >> 33).unwrap_or_default()
}
