use std::num::{NonZeroU32, NonZeroU64};

use super::{Rate, Unit};
use crate::Percent;

/// Ten to the power of the most decimals a count may have.
const FINEST_SCALE: u64 = 1_000_000_000;

impl Rate {
    /// A part of this rate: its count times `part`, rounded up to nine decimals.
    ///
    /// So it is never zero, and never above this rate. Exact if the count has at most three
    /// decimals. 100 % is this rate itself.
    #[must_use]
    pub fn scaled(self, part: Percent) -> Self {
        let finest = u128::from(self.digits.get()) * u128::from(FINEST_SCALE / self.scale.get());
        let whole = u128::from(Percent::ALL.millionths());
        let count = (finest * u128::from(part.millionths())).div_ceil(whole);
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

    /// An equal part of this rate where so many share it: the same count in a longer period.
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
