//! Parsers of the times in access logs. Each returns the instant, most also the offset from UTC.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::fmt::strtime;
use jiff::fmt::temporal::Pieces;
use jiff::tz::Offset;
use limit::Moment;

const MONTHS: [&[u8; 3]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];

/// Parses nginx's `$time_local`, such as `21/Nov/2026:03:33:47 +0000`.
///
/// Also returns the offset from UTC in seconds.
pub(super) fn parse_local(text: &str) -> Option<(Moment, i32)> {
    parse_fixed_width(text).or_else(|| {
        let time = strtime::parse("%d/%b/%Y:%H:%M:%S %z", text).ok()?;
        let utc_offset = time.offset()?.seconds();
        Some((moment(time.to_timestamp().ok()?)?, utc_offset))
    })
}

/// Parses a local time in nginx's fixed widths. The general parser takes ten times as long.
fn parse_fixed_width(text: &str) -> Option<(Moment, i32)> {
    let text: &[u8; 26] = text.as_bytes().try_into().ok()?;
    // `21/Nov/2026:03:33:47 +0000` has these separators at these indexes.
    if [2, 6, 11, 14, 17, 20].map(|index| text[index]) != *b"//::: " {
        return None;
    }
    let month = MONTHS.iter().position(|name| **name == text[3..6])?;
    let two_digits = |index: usize| {
        let (tens, ones) = (text[index], text[index + 1]);
        let are_digits = tens.is_ascii_digit() && ones.is_ascii_digit();
        are_digits.then(|| i8::try_from((tens - b'0') * 10 + (ones - b'0')).unwrap_or(0))
    };
    let year = i16::from(two_digits(7)?) * 100 + i16::from(two_digits(9)?);
    let month = i8::try_from(month + 1).ok()?;
    let [day, hour, minute] = [two_digits(0)?, two_digits(12)?, two_digits(15)?];
    let date = DateTime::new(year, month, day, hour, minute, two_digits(18)?, 0).ok()?;
    let offset = i32::from(two_digits(22)?) * 3600 + i32::from(two_digits(24)?) * 60;
    let utc_offset = match text[21] {
        b'+' => offset,
        b'-' => -offset,
        _ => return None,
    };
    let offset = Offset::from_seconds(utc_offset).ok()?;
    Some((moment(offset.to_timestamp(date).ok()?)?, utc_offset))
}

/// Converts a time; `None` before 1970 and after 2554, which must be a mistake.
fn moment(time: Timestamp) -> Option<Moment> {
    let nanos = u64::try_from(time.as_nanosecond());
    nanos.ok().map(Moment::from_nanos)
}

/// Parses a time of a JSON log. Also returns its offset from UTC in seconds.
///
/// The time is in RFC 3339, in the form of nginx's `$time_local`, or in seconds.
pub(super) fn parse_any(text: &str) -> Option<(Moment, i32)> {
    if let Some(nanos) = parse_seconds(text) {
        return Some((Moment::from_nanos(nanos), 0));
    }
    let Ok(time) = text.parse() else {
        return parse_local(text);
    };
    let pieces = Pieces::parse(text).ok();
    let offset = pieces.and_then(|pieces| pieces.to_numeric_offset());
    Some((moment(time)?, offset.map_or(0, Offset::seconds)))
}

/// Parses a time in Caddy's `wall` formats, such as `2026/11/21 03:33:47.250`, as UTC.
pub(super) fn parse_wall(text: &str) -> Option<(Moment, i32)> {
    let (date, clock) = text.split_once(' ')?;
    let time: DateTime = format!("{}T{clock}", date.replace('/', "-")).parse().ok()?;
    Some((moment(Offset::UTC.to_timestamp(time).ok()?)?, 0))
}

/// Parses decimal seconds, and returns nanoseconds. Further digits are ignored.
pub(super) fn parse_seconds(text: &str) -> Option<u64> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(decimals) {
        return None;
    }
    let mut nanos = whole.parse::<u64>().ok()?.checked_mul(1_000_000_000)?;
    let mut unit = 100_000_000;
    for digit in decimals.bytes().take(9) {
        nanos = nanos.checked_add(u64::from(digit - b'0') * unit)?;
        unit /= 10;
    }
    Some(nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_widths_are_parsed_as_by_the_general_parser() {
        for text in [
            "21/Nov/2026:03:33:47 +0000",
            "29/Feb/2024:23:59:59 -1130",
            "01/Jan/1970:00:00:00 -0100",
            "31/Dec/1999:12:00:00 +1400",
        ] {
            let read = strtime::parse("%d/%b/%Y:%H:%M:%S %z", text).unwrap();
            let long = moment(read.to_timestamp().unwrap()).unwrap();
            let ahead = read.offset().unwrap().seconds();
            assert_eq!(parse_fixed_width(text), Some((long, ahead)), "{text}");
        }
        let texts = "29/Feb/2023:00:00:00 +0000|21/Nov/2026:24:00:00 +0000|\
            21/Nov/2026:03:33:47 *0000|21/nov/2026:03:33:47 +0000|\
            2x/Nov/2026:03:33:47 +0000|21/Nov/2026:03:33:47 +9900|\
            21/Nov/2026:03:33:47||01/Jan/1970:00:00:00 +0100|\
            01/Jan/2555:00:00:00 +0000";
        for text in texts.split('|') {
            assert_eq!(parse_fixed_width(text), None, "{text}");
        }
    }

    #[test]
    fn a_local_time_may_have_other_widths_and_a_leap_second() {
        for (text, fixed) in [
            ("1/Nov/2026:4:03:47 +0000", "01/Nov/2026:04:03:47 +0000"),
            ("31/Dec/2016:23:59:60 +0000", "31/Dec/2016:23:59:59 +0000"),
        ] {
            assert_eq!(parse_local(text), parse_fixed_width(fixed), "{text}");
        }
    }

    #[test]
    fn a_time_of_json_may_be_written_in_any_way() {
        let nine = 1_793_523_600_000_000_000;
        for (text, nanos, ahead) in [
            ("2026-11-01T09:00:00Z", nine, 0),
            ("2026-11-01T10:00:00.250+01:00", nine + 250_000_000, 3600),
            ("01/Nov/2026:08:00:00 -0100", nine, -3600),
            ("1793523600.5", nine + 500_000_000, 0),
        ] {
            let found = parse_any(text);
            assert_eq!(found, Some((Moment::from_nanos(nanos), ahead)), "{text}");
        }
        let texts = "|-|now|9999-01-01T00:00:00Z|1969-12-31T23:59:59Z|-1";
        for text in texts.split('|') {
            assert_eq!(parse_any(text), None, "{text}");
        }
    }

    #[test]
    fn a_wall_time_of_caddy_is_read_as_utc() {
        let nine = 1_793_523_600_000_000_000;
        for (text, nanos) in [
            ("2026/11/01 09:00:00", nine),
            ("2026/11/01 09:00:00.250", nine + 250_000_000),
            ("2026/11/01 09:00:00.000000001", nine + 1),
        ] {
            let expected = Some((Moment::from_nanos(nanos), 0));
            assert_eq!(parse_wall(text), expected, "{text}");
        }
        for text in ["", " ", "2026/11/01", "2026/13/01 09:00:00", "1/2/3 4:5:6"] {
            assert_eq!(parse_wall(text), None, "{text}");
        }
    }
}
