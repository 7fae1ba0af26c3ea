//! The charge of a request: what it raised the level of its bucket by, and when.

use crate::{Cost, Moment};

/// Charge of an accepted request. The caller keeps it to refund the request or to correct its cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charge {
    /// Arrival number in its queue: the queue numbers its accepted requests.
    pub(super) arrival: u64,
    /// Instant at which the request joined.
    pub(super) at: Moment,
    pub(super) cost: Cost,
}

impl Charge {
    /// Creates the charge of a request that passed at `at` before its queue existed.
    pub fn of_passing(at: Moment, cost: Cost) -> Self {
        Self {
            arrival: 0,
            at,
            cost,
        }
    }

    /// Returns the same charge after its cost was [corrected](super::Queue::settle) to `cost`.
    #[must_use]
    pub fn settled(self, cost: Cost) -> Self {
        Self { cost, ..self }
    }

    /// Returns the charged cost.
    pub fn cost(&self) -> Cost {
        self.cost
    }

    /// Returns the instant at which the request joined.
    pub fn at(&self) -> Moment {
        self.at
    }
}
