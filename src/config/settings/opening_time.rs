//! Opening time of a waiting room, with an offset from UTC: `2026-12-01T10:00:00+01:00`.

use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use jiff::Timestamp;
use limit::Moment;
use regex::Regex;

/// Instant with an offset from UTC (RFC 3339), such as `2026-12-01T10:00:00+01:00`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpeningTime {
    /// Instant, from 1970 to 2554.
    pub at: Moment,
    /// Text in the file.
    written: Box<str>,
}

impl FromStr for OpeningTime {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORM: &str = "a time is written as \"2026-12-01T10:00:00+01:00\"";
        let (_, [offset]) = WRITTEN.captures(text).ok_or(FORM)?.extract();
        if offset.is_empty() {
            return Err(
                "a time without an offset from UTC is another moment in each time zone; add one behind it, such as +01:00, or Z for UTC",
            );
        }
        let time: Timestamp = text.parse().map_err(|_| FORM)?;
        let nanos = u64::try_from(time.as_nanosecond());
        let nanos = nanos.map_err(|_| "the time must be from 1970 to 2554")?;
        Ok(Self {
            at: Moment::from_nanos(nanos),
            written: text.into(),
        })
    }
}

/// Form of a date with a time. The group captures the offset from UTC, or an empty text.
static WRITTEN: LazyLock<Regex> = LazyLock::new(|| {
    let date_and_time = "[0-9]{4}(?:-[0-9]{2}){2}T[0-9]{2}(?::[0-9]{2}){2}(?:[.][0-9]{1,9})?";
    let form = format!("^{date_and_time}(Z|[+-][0-9]{{2}}:[0-9]{{2}}|)$");
    Regex::new(&form).expect("a form that is right")
});

/// Writes the text in the file.
impl fmt::Display for OpeningTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_with_an_offset_is_a_moment() {
        for (text, seconds) in [
            ("2026-12-01T10:00:00+01:00", 1_796_115_600),
            ("2026-12-01T09:00:00Z", 1_796_115_600),
            ("2026-12-01T03:30:00.000-05:30", 1_796_115_600),
            ("1970-01-01T00:00:00Z", 0),
        ] {
            let time: OpeningTime = text.parse().unwrap();
            let expected = Moment::from_nanos(seconds * 1_000_000_000);
            assert_eq!(time.at, expected, "{text}");
            assert_eq!(time.to_string(), text);
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for (text, why) in [
            ("2026-12-01T10:00:00", "without an offset"),
            ("2026-12-01 10:00:00Z", "is written as"),
            ("2026-12-01T10:00Z", "is written as"),
            ("2026-12-01T10:00:00+01:00[Europe/Berlin]", "is written as"),
            ("2026-02-30T10:00:00Z", "is written as"),
            ("2600-01-01T00:00:00Z", "from 1970 to 2554"),
        ] {
            let wrong = text.parse::<OpeningTime>().unwrap_err();
            assert!(wrong.contains(why), "{text}: {wrong}");
        }
    }
}
