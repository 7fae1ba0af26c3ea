//! The charge of a request in a queue.

use crate::{Cost, Moment};

/// Charge of an accepted request. It is needed to refund the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charge {
    /// Arrival number in its queue.
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

    /// Returns the same charge after it was [settled](super::Queue::settle).
    #[must_use]
    pub fn settled(self, cost: Cost) -> Self {
        Self { cost, ..self }
    }

    /// Returns the charged cost.
    pub fn cost(&self) -> Cost {
        self.cost
    }

    /// Returns when the request joined.
    pub fn at(&self) -> Moment {
        self.at
    }
}
