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

#[cfg(test)]
mod properties;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_a_whole_number_and_a_unit_of_1024s() {
        let cases = [
            ("0", Some(0)),
            ("0KB", Some(0)),
            ("1", Some(1)),
            ("1000", Some(1000)),
            ("1B", Some(1)),
            ("32KB", Some(32_768)),
            ("1MB", Some(1_048_576)),
            ("5GB", Some(5_368_709_120)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", None),
            ("17179869183GB", Some(u64::MAX - ((1 << 30) - 1))),
            ("17179869184GB", None),
            ("", None),
            ("KB", None),
            ("-1KB", None),
            ("+1KB", None),
            ("1.5KB", None),
            ("1 KB", None),
            ("1k", None),
            ("1kb", None),
            ("1TB", None),
            ("none", None),
        ];
        for (text, size) in cases {
            assert_eq!(parse_size(text), size, "{text}");
        }
    }
}
