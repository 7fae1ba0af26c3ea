//! Dates of HTTP (RFC 9110, section 5.6.7).

use std::ops::RangeInclusive;
use std::time::Duration;

use jiff::civil::{DateTime, datetime};
use jiff::fmt::strtime::BrokenDownTime;
use limit::Moment;

/// Formats of a date, each with the lengths in bytes that a date in this format has.
const FORMS: [(&str, RangeInclusive<usize>); 3] = [
    ("%a, %d %b %Y %H:%M:%S GMT", 29..=29),
    ("%A, %d-%b-%y %H:%M:%S GMT", 30..=33),
    ("%a %b %e %H:%M:%S %Y", 24..=24),
];

const EPOCH: DateTime = datetime(1970, 1, 1, 0, 0, 0, 0);

/// Mean length of a year, in seconds.
const YEAR: u64 = 31_556_952;

/// Parses a date in one of its three formats; `None` for another format or a date before 1970.
///
/// A cache treats a date in another format as expired (RFC 9111, section 5.3). So this function is
/// stricter than a parser of mail dates: no other time zones, and exactly the spaces of the format.
/// Case does not matter. A two-digit year is the last matching year that is at most 50 years after
/// `now`.
pub(crate) fn parse_date(value: &[u8], now: Moment) -> Option<Moment> {
    let text = str::from_utf8(value.trim_ascii()).ok()?;
    let text = text.to_ascii_uppercase();
    let mut forms = FORMS.iter();
    let (form, _) = forms.find(|(_, lengths)| lengths.contains(&text.len()))?;
    let mut date = BrokenDownTime::parse(form, &text).ok()?;
    // A wrong day of the week does not matter.
    date.set_weekday(None);
    // Only the format with a two-digit year has hyphens.
    if text.contains('-') {
        let year = full_year(date.year()?, now);
        date.set_year(Some(year)).ok()?;
    }
    let since = date.to_datetime().ok()?.duration_since(EPOCH);
    Some(Moment::default() + Duration::try_from(since).ok()?)
}

/// Returns the last year with the two last digits of `year` that is at most 50 years after `now`.
fn full_year(year: i16, now: Moment) -> i16 {
    let seconds = now.since(Moment::default()).as_secs();
    // A `Moment` is before the year 2555, so this fits.
    let this_year = 1970 + i16::try_from(seconds / YEAR).unwrap_or_default();
    let latest = this_year + 50;
    latest - (latest - year).rem_euclid(100)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-07-01 00:00:00, in Unix time.
    const NOW: u64 = 1_782_864_000;

    fn seconds(text: &str) -> Option<u64> {
        let now = Moment::default() + Duration::from_secs(NOW);
        let date = parse_date(text.as_bytes(), now)?;
        Some(date.since(Moment::default()).as_secs())
    }

    #[test]
    fn the_three_forms_are_read() {
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            " Sun, 06 Nov 1994 08:49:37 GMT\t",
            "SUN, 06 Nov 1994 08:49:37 GMT",
            "Sun, 06 NOV 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37 gmt",
        ] {
            assert_eq!(seconds(text), Some(784_111_777), "{text}");
        }
        for (text, expected) in [
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
            ("Tue, 29 Feb 2028 23:59:59 GMT", 1_835_481_599),
            ("Sat, 31 Dec 2016 23:59:60 GMT", 1_483_228_799),
            ("Thursday, 18-Aug-50 02:01:18 GMT", 2_544_400_878),
            ("Thu Aug 18 02:01:18 2050", 2_544_400_878),
            ("Tue, 19 Jan 2038 14:14:08 GMT", 2_147_523_248),
            ("Sun, 21 Nov 2286 04:46:39 GMT", 10_000_039_599),
        ] {
            assert_eq!(seconds(text), Some(expected), "{text}");
        }
        let last = parse_date(b"Fri, 31 Dec 9999 23:59:59 GMT", Moment::default());
        assert_eq!(last, Some(Moment::from_nanos(u64::MAX)));
    }

    #[test]
    fn another_form_is_no_date() {
        let texts = "|0|-1|784111777|never|Thu, 18 Aug 2050 02:01:18 UTC|\
            Thu, 18 Aug 2050 02:01:18 AEST|Thu, 18 Aug 2050 02:01:18 +0000|\
            Thu, 18 Aug 2050 02:01:18|Thu, 18 Aug 50 02:01:18 GMT|\
            Thu 18 Aug 2050 02:01:18 GMT|Thu, 18  Aug  2050 02:01:18 GMT|\
            Thu, 18-Aug-2050 02:01:18 GMT|Thursday, 18-Aug-2050 02:01:18 GMT|\
            Thu, 18 Aug 2050 02.01.18 GMT|Thu, 18 Aug 2050 2:01:18 GMT|\
            Thu, 8 Aug 2050 02:01:18 GMT|Thu, 18 Aug 2050 02:01:18 GMT GMT|\
            Thu, 18 Aug 2050 02:01:18 GMT (now)|Thu, 18 Aug 2050 02:01 GMT|\
            Thu, 18 August 2050 02:01:18 GMT|Thu, 32 Aug 2050 02:01:18 GMT|\
            Thu, 29 Feb 2050 02:01:18 GMT|Thu, 18 Aug 2050 24:01:18 GMT|\
            Thu, 18 Aug 2050 02:60:18 GMT|Thu, 18 Aug 2050 02:01:61 GMT|\
            Thu, +8 Aug 2050 02:01:18 GMT|Thu Aug 8 02:01:18 2050|\
            Thu Aug  8 02:01:18 50|18 Aug 2050 02:01:18 GMT|\
            Wed, 31 Dec 1969 23:59:59 GMT|Thu, 18 Aug 2050 02:01:18 GM\u{d4}";
        for text in texts.split('|') {
            assert_eq!(seconds(text), None, "{text}");
        }
        assert_eq!(parse_date(b"\xff", Moment::default()), None);
    }

    #[test]
    fn a_year_of_two_digits_is_at_most_fifty_years_ahead() {
        let year = |digits: &str, now| {
            let now = Moment::default() + Duration::from_secs(now);
            let text = format!("Sunday, 01-Jul-{digits} 00:00:00 GMT");
            let date = parse_date(text.as_bytes(), now).expect("a date");
            1970 + date.since(Moment::default()).as_secs() / YEAR
        };
        for (digits, expected) in [("26", 2026), ("76", 2076), ("77", 1977), ("00", 2000)] {
            assert_eq!(year(digits, NOW), expected, "{digits}");
        }
        let later = NOW + 60 * YEAR;
        for (digits, expected) in [("36", 2136), ("37", 2037), ("99", 2099)] {
            assert_eq!(year(digits, later), expected, "{digits}");
        }
    }
}
