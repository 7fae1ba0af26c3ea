//! Sizes as the file writes them, such as `"32KB"`.

/// Units with their sizes in bytes, the largest first.
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
