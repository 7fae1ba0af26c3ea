//! Text of durations, as in `gateway.toml`.

use std::time::Duration;

/// Name and nanoseconds of each unit, the largest first.
const UNITS: [(&str, u64); 7] = [
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// Parses a duration of `gateway.toml`: a whole number and a unit, `d h m s ms us ns`.
///
/// A plain `0` needs no unit. Returns `None` for any other text and for more than 584 years.
pub fn parse_duration(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (count, unit) = text.split_at(digits);
    let (_, nanos) = UNITS.into_iter().find(|(name, _)| *name == unit)?;
    let count: u64 = count.parse().ok()?;
    count.checked_mul(nanos).map(Duration::from_nanos)
}

/// Formats a duration so that [`parse_duration`] reads it back.
///
/// Uses the largest unit that needs no fraction.
pub fn show_duration(span: Duration) -> String {
    let nanos = span.as_nanos();
    let is_whole = |(_, unit): &(_, u64)| nanos > 0 && nanos.is_multiple_of((*unit).into());
    match UNITS.into_iter().find(is_whole) {
        Some((name, unit)) => format!("{}{name}", nanos / u128::from(unit)),
        None => "0".to_owned(),
    }
}

#[cfg(test)]
mod properties;

#[cfg(test)]
mod tests;
