//! The work time: where a queue would be if it served all waiting keys at once, each by its weight.
//!
//! Newcomers with costly requests are placed by it. A departure advances it by its cost, divided by the weights of
//! all keys that waited, as the virtual time of generalized processor sharing (Parekh and Gallager, 1993).

use super::weights::PARTS;
use super::{Tag, UNIT};

/// The resolution of the work time. It is so coarse that fractions of it can be compared exactly.
const STEP: Tag = UNIT / PARTS as Tag;

/// The work time `w` of a queue.
#[derive(Debug, Default)]
pub(super) struct WorkTime {
    /// A multiple of [`STEP`].
    tag: Tag,
    /// Number of waiting keys whose tag was set by the work time.
    pub(super) costly: usize,
}

impl WorkTime {
    pub(super) fn get(&self) -> Tag {
        self.tag
    }

    /// Begins at the tag of the last departure: nobody waits.
    pub(super) fn restart(&mut self, now: Tag) {
        self.tag = next_step(now);
    }

    /// Adds a departure. `weights`: sum of the counted weights of all keys that waited. `now`: its tag.
    ///
    /// Departures of keys that came early in this time leave it behind `now`. Once all of these keys have left,
    /// it continues at `now`.
    pub(super) fn advance(&mut self, cost: u32, weights: u64, now: Tag) {
        let parts = u128::from(PARTS);
        let steps = parts * parts * u128::from(cost) / u128::from(weights.max(1));
        self.tag += steps * STEP;
        if self.costly == 0 {
            self.tag = self.tag.max(next_step(now));
        }
    }
}

/// Rounds up to a whole step of the work time.
pub(super) fn next_step(tag: Tag) -> Tag {
    tag.div_ceil(STEP) * STEP
}
