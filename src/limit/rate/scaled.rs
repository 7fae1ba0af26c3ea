//! Parts of a rate: a percentage of it, or one of several equal parts.
//!
//! The count of a rate is the number before `r/`: `digits / scale`.

use std::num::{NonZeroU32, NonZeroU64};

use super::{Rate, Unit};
use crate::Percent;

/// Ten to the power of the largest number of decimals of a count.
const FINEST_SCALE: u64 = 1_000_000_000;

impl Rate {
    /// Returns a part of this rate: its count times `part`, rounded up to nine decimals.
    ///
    /// The result is never zero, and never above this rate. It is exact if the count has at most
    /// three decimals. 100 % is this rate itself.
    #[must_use]
    pub fn scaled(self, part: Percent) -> Self {
        let finest = u128::from(self.digits.get()) * u128::from(FINEST_SCALE / self.scale.get());
        let whole = u128::from(Percent::ALL.millionths());
        let count = (finest * u128::from(part.millionths())).div_ceil(whole);
        // Without zeros at the end, so that the rate prints without them.
        let (mut digits, mut scale) = (count, FINEST_SCALE);
        while scale > 1 && digits.is_multiple_of(10) {
            (digits, scale) = (digits / 10, scale / 10);
        }
        let nonzero = |number| u64::try_from(number).ok().and_then(NonZeroU64::new);
        Self {
            digits: nonzero(digits).unwrap_or(self.digits),
            scale: nonzero(scale.into()).unwrap_or(self.scale),
            ..self
        }
    }

    /// Returns one of `parts` equal parts of this rate: the same count in a longer period.
    #[must_use]
    pub fn divided(self, parts: NonZeroU32) -> Self {
        if parts.get() == 1 {
            return self;
        }
        Self {
            period_nanos: self.period_nanos.saturating_mul(parts.get().into()),
            unit: Unit::Spelled,
            ..self
        }
    }
}
