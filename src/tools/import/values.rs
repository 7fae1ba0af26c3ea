//! Parses nginx's numbers, sizes and times.

use std::time::Duration;

/// Longest time that the settings accept: 366 days.
const MAX_MILLIS: u64 = 366 * 24 * 60 * 60 * 1000;

/// Parses a time such as `30`, `90s`, `1m30s` or `500ms`. The default unit is seconds.
///
/// Longer times than [`MAX_MILLIS`] are reduced to it.
pub(super) fn time(text: &str) -> Option<Duration> {
    const UNITS: [(&str, u64); 8] = [
        ("ms", 1),
        ("s", 1000),
        ("m", 60_000),
        ("h", 3_600_000),
        ("d", 86_400_000),
        ("w", 604_800_000),
        ("M", 2_592_000_000),
        ("y", 31_536_000_000),
    ];
    let mut rest = text;
    let mut millis = 0u64;
    loop {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (count, after_count) = rest.split_at(digits);
        let count = count.parse::<u64>().ok()?;
        let letters = after_count
            .bytes()
            .take_while(u8::is_ascii_alphabetic)
            .count();
        let (unit, after_unit) = after_count.split_at(letters);
        let unit = if unit.is_empty() { "s" } else { unit };
        let (_, scale) = UNITS.into_iter().find(|(name, _)| *name == unit)?;
        millis = millis.checked_add(count.checked_mul(scale)?)?;
        rest = after_unit.trim_start_matches(' ');
        if rest.is_empty() {
            return Some(Duration::from_millis(millis.min(MAX_MILLIS)));
        }
    }
}

/// Parses a size such as `512`, `8k`, `10m` or `1g`. Returns bytes.
pub(super) fn size(text: &str) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (count, unit) = text.split_at(digits);
    let scale = match unit {
        "" => 1,
        "k" | "K" => 1 << 10,
        "m" | "M" => 1 << 20,
        "g" | "G" => 1u64 << 30,
        _ => return None,
    };
    count.parse::<u64>().ok()?.checked_mul(scale)
}

/// Parses a whole number that consists of digits only.
pub(super) fn whole(text: &str) -> Option<u32> {
    text.parse().ok().filter(|_| !text.starts_with('+'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_are_read_as_nginx_writes_them() {
        let times = [
            ("0", Some(0)),
            ("500ms", Some(500)),
            ("1m30s", Some(90_000)),
            ("1h 30m", Some(5_400_000)),
            ("99y", Some(MAX_MILLIS)),
            ("", None),
            ("1x", None),
            ("999999999999999999y", None),
        ];
        for (text, millis) in times {
            assert_eq!(time(text), millis.map(Duration::from_millis), "{text}");
        }
        let sizes = [
            ("10m", Some(10 << 20)),
            ("8K", Some(8 << 10)),
            ("1t", None),
            ("99999999999999g", None),
        ];
        for (text, bytes) in sizes {
            assert_eq!(size(text), bytes, "{text}");
        }
        assert_eq!(
            [whole("7"), whole("+7"), whole("4294967296"), whole("")],
            [Some(7), None, None, None]
        );
    }
}
