//! Exact rates: parsing, printing, and arithmetic in ticks.
//!
//! A *tick* is the unit in which a bucket of this rate keeps its level. It is chosen for each rate
//! so that nothing is rounded.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;
use std::time::Duration;

use crate::{nanos, to_float};

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// Highest rate allowed, in requests per second. One worker can release a waiter each microsecond.
const MAX_PER_SECOND: u128 = 1_000_000;

/// Longest period allowed: 366 days.
///
/// It keeps a level of four thousand million requests far from overflow.
const MAX_PERIOD: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// Upper bound of the digits before the decimal point of a count, and of the digits after it.
const MAX_DIGITS: usize = 9;

/// Exact rate of a bucket: `count` requests in each `period`, or [no limit](Rate::UNLIMITED).
///
/// Written `10r/s`, `30r/m`, `100r/h`, `5r/d` or `5r/250ms`. The count may be a decimal: `0.5r/s`.
///
/// Nothing is rounded: `3r/s` leaks one request in exactly a third of a second. A bucket's level is
/// kept in *ticks*: a request has [`Rate::ticks_per_request`] ticks, and [`Rate::ticks_per_nano`]
/// ticks leak in a nanosecond. Both are whole numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rate {
    /// Digits of the count without its decimal point.
    digits: NonZeroU64,
    /// Ten to the power of the number of decimals: the count is `digits / scale`.
    scale: NonZeroU64,
    /// Period in nanoseconds; zero if there is no limit: a request takes no time.
    period_nanos: u64,
    /// Unit in which the period was written, so that it prints the same way.
    unit: Unit,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Unit {
    Second,
    Minute,
    Hour,
    Day,
    /// The period is written as a duration, such as `250ms`.
    Spelled,
}

impl Unit {
    /// Each unit with its text after `r/`, and its seconds.
    const NAMED: [(Self, &'static str, u64); 4] = [
        (Self::Second, "s", 1),
        (Self::Minute, "m", 60),
        (Self::Hour, "h", 60 * 60),
        (Self::Day, "d", 24 * 60 * 60),
    ];
}

/// Reason why a text is not a [`Rate`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateError {
    /// The text is not `<count>r/<period>`.
    Form,
    /// The count is not a number, or has more than nine digits before or after the decimal point.
    Count,
    /// The count is zero: a bucket with this rate would never leak.
    Zero,
    /// The period is not `s`, `m`, `h`, `d` or a duration such as `250ms`.
    ///
    /// The same for a period of zero or over 366 days.
    Period,
    /// The rate is higher than a million requests per second.
    TooFast,
}

impl fmt::Display for RateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Form => "a rate is a count and a period, such as \"10r/s\", \"30r/m\" or \"5r/250ms\"",
            Self::Count => {
                "the count of a rate is a number of at most nine digits before and nine after the point, such as 10 or 0.5"
            }
            Self::Zero => "a rate of 0 would let nothing through; the smallest rates are written with a long period, such as \"1r/d\"",
            Self::Period => "the period of a rate is s, m, h, d, or a duration up to 366 days such as \"250ms\"",
            Self::TooFast => "the fastest rate is 1000000r/s",
        })
    }
}

impl std::error::Error for RateError {}

impl Rate {
    /// No limit: a request has no ticks, so no request raises a level.
    ///
    /// Printed as `none`. No text is parsed as this value: the caller decides whether `none` is
    /// allowed.
    pub const UNLIMITED: Self = Self {
        digits: NonZeroU64::MIN,
        scale: NonZeroU64::MIN,
        period_nanos: 0,
        unit: Unit::Spelled,
    };

    /// Returns whether there is no limit.
    pub fn is_unlimited(self) -> bool {
        self.period_nanos == 0
    }

    /// Returns the ticks by which one request of cost 1 raises a level.
    pub fn ticks_per_request(self) -> i128 {
        i128::from(self.period_nanos) * i128::from(self.scale.get())
    }

    /// Returns the ticks that leak in one nanosecond.
    pub fn ticks_per_nano(self) -> i128 {
        i128::from(self.digits.get())
    }

    /// Returns the requests per second, for people and metrics; infinite if there is no limit.
    pub fn per_second(self) -> f64 {
        self.count() / (to_float(self.period_nanos) / to_float(NANOS_PER_SECOND))
    }

    /// Returns the count, as written before `r/`.
    pub fn count(self) -> f64 {
        to_float(self.digits.get()) / to_float(self.scale.get())
    }

    /// Returns the whole part of the count, which a window accepts; `None` if it is zero.
    pub fn whole_count(self) -> Option<u32> {
        let whole = self.digits.get() / self.scale.get();
        Some(u32::try_from(whole).unwrap_or(u32::MAX)).filter(|whole| *whole > 0)
    }

    /// Returns whether the count has no decimals.
    pub fn is_whole(self) -> bool {
        self.scale.get() == 1
    }

    /// Returns the period, as written after `r/`.
    pub fn period(self) -> Duration {
        Duration::from_nanos(self.period_nanos)
    }

    /// Parses a rate, or `none` as [`Self::UNLIMITED`].
    ///
    /// # Errors
    ///
    /// Returns an error if `text` is neither.
    pub fn parse_or_unlimited(text: &str) -> Result<Self, RateError> {
        match text {
            "none" => Ok(Self::UNLIMITED),
            text => text.parse(),
        }
    }

    /// Returns the duration in which `requests` requests leak, rounded up to a nanosecond.
    pub fn time_for(self, requests: u64) -> Duration {
        let request = self.ticks_per_request().unsigned_abs();
        let ticks = request.saturating_mul(requests.into());
        let nanos = ticks.div_ceil(self.ticks_per_nano().unsigned_abs());
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Returns the number of whole requests that leak in `span`.
    pub fn count_in(self, span: Duration) -> u64 {
        let nanos = i128::try_from(span.as_nanos()).unwrap_or(i128::MAX);
        let ticks = nanos.saturating_mul(self.ticks_per_nano());
        u64::try_from(ticks / self.ticks_per_request()).unwrap_or(u64::MAX)
    }

    /// Returns the duration between two departures, rounded up to a nanosecond.
    pub fn interval(self) -> Duration {
        self.time_for(1)
    }
}

impl FromStr for Rate {
    type Err = RateError;

    fn from_str(text: &str) -> Result<Self, RateError> {
        let (count, period) = text.split_once("r/").ok_or(RateError::Form)?;
        let (digits, scale) = parse_count(count)?;
        let (unit, period_nanos) = parse_period(period)?;
        let digits = NonZeroU64::new(digits).ok_or(RateError::Zero)?;
        // digits / scale / period > MAX_PER_SECOND, without a division.
        let in_a_second = u128::from(digits.get()) * u128::from(NANOS_PER_SECOND);
        if in_a_second > MAX_PER_SECOND * u128::from(scale.get()) * u128::from(period_nanos.get()) {
            return Err(RateError::TooFast);
        }
        Ok(Self {
            digits,
            scale,
            period_nanos: period_nanos.get(),
            unit,
        })
    }
}

/// Parses a count, such as `10` or `0.5`. Returns its digits and its scale: see [`Rate`].
fn parse_count(text: &str) -> Result<(u64, NonZeroU64), RateError> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let has_point = whole.len() < text.len();
    let fits = |part: &str| part.len() <= MAX_DIGITS && part.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !fits(whole) || !fits(decimals) || (decimals.is_empty() && has_point) {
        return Err(RateError::Count);
    }
    let decimals = decimals.trim_end_matches('0');
    let scale = 10u64.pow(u32::try_from(decimals.len()).map_err(|_| RateError::Count)?);
    let digits = format!("{whole}{decimals}")
        .parse()
        .map_err(|_| RateError::Count)?;
    Ok((digits, NonZeroU64::new(scale).ok_or(RateError::Count)?))
}

/// Parses a period, such as `s` or `250ms`. Returns its unit and its nanoseconds.
fn parse_period(text: &str) -> Result<(Unit, NonZeroU64), RateError> {
    let named = Unit::NAMED.into_iter().find(|(_, name, _)| *name == text);
    let (unit, period) = match named {
        Some((unit, _, seconds)) => (unit, Some(Duration::from_secs(seconds))),
        None => (Unit::Spelled, super::parse_duration(text)),
    };
    let period = period.filter(|period| *period <= MAX_PERIOD);
    let period_nanos = period.and_then(|period| NonZeroU64::new(nanos(period)));
    Ok((unit, period_nanos.ok_or(RateError::Period)?))
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_unlimited() {
            return f.write_str("none");
        }
        let (digits, scale) = (self.digits.get(), self.scale.get());
        write!(f, "{}", digits / scale)?;
        if scale > 1 {
            let width = scale.ilog10() as usize;
            write!(f, ".{:0width$}", digits % scale)?;
        }
        let mut named = Unit::NAMED.into_iter();
        match named.find(|(unit, ..)| *unit == self.unit) {
            Some((_, name, _)) => write!(f, "r/{name}"),
            None => write!(f, "r/{}", super::show_duration(self.period())),
        }
    }
}

impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rate({self})")
    }
}

#[cfg(feature = "serde")]
mod json;
mod scaled;

#[cfg(test)]
mod properties;

#[cfg(test)]
mod tests;
