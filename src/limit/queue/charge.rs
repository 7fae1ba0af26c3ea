//! What a request was charged.

use crate::{Cost, Moment};

/// What an accepted request was charged. It is needed to give an unused charge back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charge {
    pub(super) place: u64,
    pub(super) at: Moment,
    pub(super) cost: Cost,
}

impl Charge {
    /// The charge of a request that no queue knows: it joined and passed at `at`.
    pub fn of_passing(at: Moment, cost: Cost) -> Self {
        Self { place: 0, at, cost }
    }

    /// The same charge after it was [settled](super::Queue::settle).
    #[must_use]
    pub fn settled(self, cost: Cost) -> Self {
        Self { cost, ..self }
    }

    /// What was charged.
    pub fn cost(&self) -> Cost {
        self.cost
    }

    /// When the request joined.
    pub fn at(&self) -> Moment {
        self.at
    }
}
