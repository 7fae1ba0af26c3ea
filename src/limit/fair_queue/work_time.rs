//! Work time: the tag that a queue would reach by serving all waiting keys at once, by weight.
//!
//! A *tag* is an instant in the order of departures. The work time determines the tag of newcomers
//! whose request costs more than 1. A departure advances it by its cost, divided by the weights of
//! all keys that waited. This is the virtual time of generalized processor sharing (Parekh and
//! Gallager, 1993).

use super::weights::SUM_UNIT;
use super::{Tag, UNIT};

/// Resolution of the work time, so coarse that fractions of it can be compared exactly.
const STEP: Tag = UNIT / SUM_UNIT as Tag;

/// Work time `w` of a queue.
#[derive(Debug, Default)]
pub(super) struct WorkTime {
    /// Multiple of [`STEP`].
    tag: Tag,
    /// Number of waiting keys whose tag was set by the work time.
    pub(super) costly: usize,
}

impl WorkTime {
    pub(super) fn get(&self) -> Tag {
        self.tag
    }

    /// Restarts at the tag of the last departure, because there are no waiters.
    pub(super) fn restart(&mut self, now: Tag) {
        self.tag = next_step(now);
    }

    /// Adds a departure.
    ///
    /// `weights` is the sum of the weights of all keys that waited, in units of [`SUM_UNIT`], and
    /// `now` the tag of the departure. The work time may be behind `now` while keys wait whose tag
    /// it has set. Once all of them have departed, it is at least `now`.
    pub(super) fn advance(&mut self, cost: u32, weights: u64, now: Tag) {
        // One factor converts `weights` to whole weights, the other one the result to steps.
        let unit = u128::from(SUM_UNIT);
        let steps = unit * unit * u128::from(cost) / u128::from(weights.max(1));
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
