//! Value of `Retry-After`, and parsing of the field that an origin sent.
//!
//! `reply` writes the field to a response.

use std::time::Duration;

use limit::Moment;

use super::ratelimit_headers::whole_seconds;
use crate::collapse::parse_date;
use crate::gate::InvalidRetryAfter;
use crate::http::message::{Fields, decimal};
use crate::time::clock;

/// Time after which a client should send the same request again.
#[derive(Clone, Copy, Debug)]
pub(super) enum RetryAfter {
    /// The request will be admitted then, if no other request comes before it.
    Exact(Duration),
    /// An estimate: the request may be admitted then.
    Estimate(Duration),
}

impl RetryAfter {
    /// Returns whole seconds, as in `Retry-After`. At least 1.
    pub(super) fn seconds(self) -> u64 {
        let (Self::Exact(span) | Self::Estimate(span)) = self;
        whole_seconds(span).max(1)
    }

    /// Returns milliseconds, as gRPC clients read them. At least 1.
    ///
    /// An estimate has whole seconds here, too: shorter ones would make clients return to a full
    /// queue every few milliseconds.
    pub(super) fn millis(self) -> u128 {
        match self {
            Self::Exact(span) => span.as_nanos().div_ceil(1_000_000).max(1),
            Self::Estimate(_) => u128::from(self.seconds()) * 1000,
        }
    }
}

/// Parses the `Retry-After` of an origin's response: a delay or a date (RFC 9110, section 10.2.3).
///
/// APIs also send decimals, which are rounded up to seconds, and dates of mail (RFC 5322) or of RFC
/// 3339. A past date is a delay of 0. Of several fields the longest delay counts.
///
/// # Errors
///
/// Returns an error if there are such fields, but none can be parsed.
pub(super) fn retry_after(
    fields: Fields<'_>,
    now: Moment,
) -> Result<Option<Duration>, InvalidRetryAfter> {
    let mut values = fields.named("retry-after").peekable();
    if values.peek().is_none() {
        return Ok(None);
    }
    let longest = values.filter_map(|value| parse(value, now)).max();
    longest.map(Some).ok_or(InvalidRetryAfter)
}

/// Parses the value of one field. A date is compared with the wall clock.
fn parse(value: &[u8], now: Moment) -> Option<Duration> {
    let text = str::from_utf8(value).ok()?.trim();
    parse_seconds(text).or_else(|| {
        let now = clock::to_wall(now);
        let date = parse_date(text.as_bytes(), now).or_else(|| parse_other_date(text))?;
        Some(date.since(now))
    })
}

/// Parses a number of seconds, which may have any number of digits and decimals.
fn parse_seconds(text: &str) -> Option<Duration> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let seconds = decimal(whole.as_bytes())?.parse().unwrap_or(u64::MAX);
    let has_more = decimal(decimals.as_bytes())?.bytes().any(|it| it != b'0');
    // Rounded up.
    Some(Duration::from_secs(seconds.saturating_add(has_more.into())))
}

/// Parses a date of mail (RFC 5322) or of RFC 3339, rounded up to seconds.
fn parse_other_date(text: &str) -> Option<Moment> {
    let mail = jiff::fmt::rfc2822::parse(text).map(|date| date.timestamp());
    let date = mail.or_else(|_| text.parse::<jiff::Timestamp>()).ok()?;
    let has_more = date.subsec_nanosecond() > 0;
    let seconds = u64::try_from(date.as_second()).ok()? + u64::from(has_more);
    Some(Moment::default() + Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::simulated::step_wall;

    /// 1994-11-06 08:49:30, seven seconds before the date of RFC 9110.
    const NOW: Duration = Duration::from_secs(784_111_770);

    fn seconds(value: &str) -> Option<u64> {
        let delay = parse(value.as_bytes(), Moment::default() + NOW)?;
        assert_eq!(delay.subsec_nanos(), 0, "{value}");
        Some(delay.as_secs())
    }

    #[test]
    fn a_date_is_read_by_the_wall_clock_after_a_step() {
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        assert_eq!(seconds(date), Some(7));
        step_wall(-20);
        assert_eq!(seconds(date), Some(27));
        assert_eq!(seconds("7"), Some(7));
    }

    #[test]
    fn a_delay_is_read_with_decimals_and_blanks() {
        for (expected, values) in [
            (0, "0"),
            (1, "0.001|1.0"),
            (2, "1.5"),
            (7, "007"),
            (20, "20| 20 |\t20\t"),
            (30, "30.000"),
            (
                u64::MAX,
                "18446744073709551615.5|99999999999999999999999999",
            ),
        ] {
            for value in values.split('|') {
                assert_eq!(seconds(value), Some(expected), "{value:?}");
            }
        }
    }

    #[test]
    fn each_form_of_a_date_is_read() {
        let values = "Sun, 06 Nov 1994 08:49:37 GMT|Sunday, 06-Nov-94 08:49:37 GMT|\
            Sun Nov  6 08:49:37 1994|  Sun, 06 Nov 1994 08:49:37 GMT |\
            sun, 06 nov 1994 08:49:37 gmt|Sun, 6 Nov 1994 08:49:37 GMT|\
            Sun, 06 Nov 1994 08:49:37 +0000|Sun, 06 Nov 1994 09:49:37 +0100|\
            06 Nov 1994 08:49:37 GMT|1994-11-06T08:49:37Z|\
            1994-11-06T09:49:36.250+01:00";
        for value in values.split('|') {
            assert_eq!(seconds(value), Some(7), "{value:?}");
        }
        assert_eq!(seconds("Sun, 06 Nov 1994 08:49:29 GMT"), Some(0));
        assert_eq!(seconds("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
    }

    #[test]
    fn nonsense_is_not_read() {
        let values = "| |-1|+5|5s|5 s|1,5|5, 20|1.|.5|.|1.5.2|1e3|0x10|\"20\"|soon|later 20|\
            NaN|Infinity|Sun, 99 Nov 1994 08:49:37 GMT|Sun, 06 Nov 1994|1994-11-06|\
            \u{ff12}\u{ff10}";
        for value in values.split('|') {
            assert_eq!(seconds(value), None, "{value:?}");
        }
        assert_eq!(parse(b"\xff", Moment::default()), None);
    }
}
