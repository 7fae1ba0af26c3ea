//! Cost of a request: a request of cost 3 is charged as much as three requests of cost 1.

use std::fmt;
use std::num::NonZeroU8;

/// Cost of a request: a whole number from 1 to 255.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cost(NonZeroU8);

impl Cost {
    /// Cost of an ordinary request, as in nginx.
    pub const ONE: Self = Self(NonZeroU8::MIN);

    /// Largest cost, as a number.
    pub const MAX: u32 = 255;

    /// Returns a cost, or `None` if `cost` is 0 or above [`Cost::MAX`].
    pub fn new(cost: u32) -> Option<Self> {
        u8::try_from(cost).ok().and_then(NonZeroU8::new).map(Self)
    }

    /// Returns the cost as a number.
    pub fn get(self) -> u32 {
        self.0.get().into()
    }

    /// Returns the difference to a lower cost, or `None` if `other` is not lower.
    #[must_use]
    pub fn above(self, other: Self) -> Option<Self> {
        Self::new(self.get().saturating_sub(other.get()))
    }

    /// Returns the difference to the cost of an ordinary request.
    pub fn above_one(self) -> u32 {
        self.get() - 1
    }
}

impl Default for Cost {
    fn default() -> Self {
        Self::ONE
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
