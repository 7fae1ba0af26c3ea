//! Reads and shows sizes and rates of bytes, such as `"32KB"` and `"8KB/30s"`.

use std::fmt;
use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::time::Duration;

use limit::{parse_duration, show_duration};

/// Units of sizes, each with its number of bytes, the largest first.
const UNITS: [(&str, u64); 4] = [("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10), ("B", 1)];

/// Reads a size as the file writes it: a whole number and a unit, `GB`, `MB`, `KB` or `B`.
///
/// As in nginx, each unit is 1024 of the next smaller one. A number without a unit is in bytes.
/// Returns `None` for any other text, and for 2^64 bytes or more.
pub(super) fn parse_size(text: &str) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (count, unit) = text.split_at(digits);
    let unit = if unit.is_empty() { "B" } else { unit };
    let (_, bytes) = UNITS.into_iter().find(|(name, _)| *name == unit)?;
    count.parse::<u64>().ok()?.checked_mul(bytes)
}

/// Writes a size so that `parse_size` reads it back.
///
/// It uses the largest unit that needs no fraction.
pub fn show_size(size: u64) -> String {
    let is_whole = |(_, bytes): &(_, u64)| size > 0 && size.is_multiple_of(*bytes);
    match UNITS.into_iter().find(is_whole) {
        Some((name, bytes)) => format!("{}{name}", size / bytes),
        None => "0".to_owned(),
    }
}

/// Number of bytes per duration, such as `8KB/30s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRate {
    /// Number of bytes.
    pub bytes: NonZeroU32,
    /// Duration in which these bytes are transferred.
    pub span: Duration,
}

/// Accepted durations.
const SPANS: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(3600);
/// Maximum number of bytes per duration.
const MAX_BYTES: u64 = 1 << 20;

impl ByteRate {
    /// Reads the bytes and the duration of a rate: `8KB/30s`, or `8KB/s` for one second.
    ///
    /// Returns `None` for any other text. [`Self::in_range`] checks the range and makes a rate.
    pub(super) fn parse(text: &str) -> Option<(u64, Duration)> {
        let (size, span) = text.split_once('/')?;
        // `240/s` could be 240 of anything.
        let bytes = parse_size(size).filter(|_| size.ends_with('B'))?;
        let has_count = span.starts_with(|c: char| c.is_ascii_digit());
        let count = if has_count { "" } else { "1" };
        let span = parse_duration(&format!("{count}{span}"))?;
        (!span.is_zero()).then_some((bytes, span))
    }

    /// Makes a rate of these bytes per duration; `None` if it is out of range.
    ///
    /// The range is up to 1 MB, per 100 ms to 1 h, and at least a byte per second.
    pub(super) fn in_range(bytes: u64, span: Duration) -> Option<Self> {
        let is_fast_enough = u128::from(bytes) * 1000 >= span.as_millis();
        let in_range = SPANS.contains(&span) && bytes <= MAX_BYTES && is_fast_enough;
        let bytes = u32::try_from(bytes).ok().filter(|_| in_range)?;
        let bytes = NonZeroU32::new(bytes)?;
        Some(Self { bytes, span })
    }
}

impl fmt::Display for ByteRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (size, span) = (show_size(self.bytes.get().into()), show_duration(self.span));
        let unit = span.strip_prefix('1');
        let unit = unit.filter(|unit| !unit.starts_with(|c: char| c.is_ascii_digit()));
        write!(f, "{size}/{}", unit.unwrap_or(&span))
    }
}

#[cfg(test)]
mod properties;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_a_size_over_a_span_and_is_shown_so_that_it_reads_back() {
        for (text, bytes, millis, shown) in [
            ("240B/s", 240, 1000, "240B/s"),
            ("8KB/30s", 8192, 30_000, "8KB/30s"),
            ("1024B/1m", 1024, 60_000, "1KB/m"),
            ("1MB/100ms", 1 << 20, 100, "1MB/100ms"),
            ("0001B/1000ms", 1, 1000, "1B/s"),
        ] {
            let (size, span) = ByteRate::parse(text).unwrap();
            let rate = ByteRate::in_range(size, span).unwrap();
            assert_eq!(rate.bytes.get(), bytes, "{text}");
            assert_eq!(rate.span, Duration::from_millis(millis), "{text}");
            assert_eq!(rate.to_string(), shown);
            assert_eq!(ByteRate::parse(shown), Some((size, span)));
        }
    }

    #[test]
    fn other_texts_are_no_rate_and_some_rates_are_out_of_range() {
        let too_large = "17179869184GB/s";
        for text in [
            "", "0", "240/s", "/s", "-1B/s", "1B/0s", "1B/1", "1 B/s", too_large,
        ] {
            assert_eq!(ByteRate::parse(text), None, "{text}");
        }
        for text in ["0B/s", "2MB/s", "1B/99ms", "4KB/61m", "29B/30s"] {
            let (bytes, span) = ByteRate::parse(text).unwrap();
            assert_eq!(ByteRate::in_range(bytes, span), None, "{text}");
        }
    }
}
