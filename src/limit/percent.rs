//! Percentages, exact to a millionth.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use crate::to_whole;

/// One percent, in millionths.
const ONE_PERCENT: u32 = 10_000;

/// Share of a whole, above 0 % and up to 100 %: `10%` or `2.5%`.
///
/// Exact to a millionth, so a percentage has at most four decimals.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Percent(NonZeroU32);

/// Reason why a text is not a [`Percent`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PercentError {
    /// Not a number of at most four decimals, followed by `%`.
    Form,
    /// Zero, or more than 100 %.
    Range,
}

impl fmt::Display for PercentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Form => {
                "a percentage is a number of at most four decimals and %, such as \"10%\" or \"2.5%\""
            }
            Self::Range => "a percentage is above 0% and at most 100%",
        })
    }
}

impl std::error::Error for PercentError {}

impl Percent {
    /// The whole: 100 %.
    pub const ALL: Self = Self(NonZeroU32::new(100 * ONE_PERCENT).unwrap());

    /// Converts millionths of the whole, 1 to 1,000,000. Other numbers become the nearest bound.
    pub const fn from_millionths(millionths: u32) -> Self {
        if millionths > Self::ALL.millionths() {
            return Self::ALL;
        }
        match NonZeroU32::new(millionths) {
            Some(millionths) => Self(millionths),
            None => Self(NonZeroU32::MIN),
        }
    }

    /// Converts a share of the whole, from 0 to 1. Rounds down to a millionth, but not to zero.
    pub fn of_share(part: f64) -> Self {
        Self::nearest(to_whole(part * f64::from(Self::ALL.millionths())))
    }

    /// Converts millionths like [`Self::from_millionths`], from a larger type.
    pub fn nearest(millionths: u64) -> Self {
        u32::try_from(millionths).map_or(Self::ALL, Self::from_millionths)
    }

    /// Returns the share of the whole, above 0 and at most 1.
    pub fn part(self) -> f64 {
        f64::from(self.millionths()) / 1e6
    }

    /// Returns the millionths of the whole, from 1 to 1,000,000.
    pub const fn millionths(self) -> u32 {
        self.0.get()
    }
}

impl FromStr for Percent {
    type Err = PercentError;

    fn from_str(text: &str) -> Result<Self, PercentError> {
        let number = text.strip_suffix('%').ok_or(PercentError::Form)?;
        let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
        let fits = |part: &str, max_digits: usize| {
            let is_number = part.bytes().all(|byte| byte.is_ascii_digit());
            is_number && (1..=max_digits).contains(&part.len())
        };
        if !fits(whole, 9) || !fits(decimals, 4) {
            return Err(PercentError::Form);
        }
        let millionths = format!("{whole}{decimals:0<4}").parse().ok();
        let percent = millionths.and_then(NonZeroU32::new).map(Self);
        percent
            .filter(|percent| *percent <= Self::ALL)
            .ok_or(PercentError::Range)
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, decimals) = (self.0.get() / ONE_PERCENT, self.0.get() % ONE_PERCENT);
        if decimals == 0 {
            return write!(f, "{whole}%");
        }
        let decimals = format!("{decimals:04}");
        write!(f, "{whole}.{}%", decimals.trim_end_matches('0'))
    }
}

impl fmt::Debug for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Percent({self})")
    }
}

#[cfg(test)]
mod tests;
