use std::fmt;
use std::num::NonZeroU8;

/// What a request counts for: a whole number from 1 to 255.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cost(NonZeroU8);

impl Cost {
    /// The cost of an ordinary request, which is nginx's.
    pub const ONE: Self = Self(NonZeroU8::MIN);

    /// The largest cost.
    pub const MAX: u32 = 255;

    /// A cost; `None` if it is 0 or above [`Cost::MAX`].
    pub fn new(cost: u32) -> Option<Self> {
        u8::try_from(cost).ok().and_then(NonZeroU8::new).map(Self)
    }

    /// The cost as a number.
    pub fn get(self) -> u32 {
        self.0.get().into()
    }

    /// By how much it is above another, if it is.
    #[must_use]
    pub fn above(self, other: Self) -> Option<Self> {
        Self::new(self.get().saturating_sub(other.get()))
    }

    /// By how much it is above that of an ordinary request.
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

impl fmt::Debug for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cost({self})")
    }
}
