//! Texts of warnings about certificates that expire soon, have expired or are not valid yet.

use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;

use super::Validity;

/// A day in seconds.
pub const DAY: i64 = 86_400;
/// A certificate expires soon if fewer seconds than this are left.
const SOON: i64 = 14 * DAY;

/// Returns a text if a certificate expires soon or has expired; `None` otherwise.
///
/// `expires_at` and `now` are in Unix time. Examples: `expires in 9 days, on 2026-12-08` and
/// `expired on 2020-01-02`.
pub fn expiry_warning(expires_at: i64, now: i64) -> Option<String> {
    let left = expires_at.saturating_sub(now);
    if left >= SOON {
        return None;
    }
    let date = date(expires_at);
    // Rounded to the nearest number of days, so that a second later the number is the same.
    Some(match (left + DAY / 2) / DAY {
        _ if left < 0 => format!("expired on {date}"),
        _ if left < DAY => format!("expires within a day, on {date}"),
        1 => format!("expires in 1 day, on {date}"),
        days => format!("expires in {days} days, on {date}"),
    })
}

impl Validity {
    /// Returns a text if a certificate is not valid `now`, or expires soon; `None` otherwise.
    ///
    /// `now` is in Unix time. Examples: `is not valid before 2026-12-01T00:00:00Z`, or a text of
    /// [`expiry_warning`].
    pub fn describe_problem(self, now: i64) -> Option<String> {
        if self.is_not_yet_valid(now) {
            return Some(format!("is not valid before {}", timestamp(self.from)));
        }
        expiry_warning(self.to, now)
    }

    /// Returns a text as [`describe_problem`](Self::describe_problem) does, with a remedy.
    ///
    /// It is for `drip check` and the log.
    pub fn warning(self, now: i64) -> Option<String> {
        let remedy = if self.is_not_yet_valid(now) {
            "set the clock, or name one that is valid now"
        } else {
            "renew it"
        };
        let problem = self.describe_problem(now)?;
        Some(format!("{problem}; {remedy}"))
    }

    /// Returns whether the certificate is not valid yet.
    pub fn is_not_yet_valid(self, now: i64) -> bool {
        now < self.from && now <= self.to
    }

    /// Returns whether the certificate is valid `now`.
    pub fn is_valid(self, now: i64) -> bool {
        (self.from..=self.to).contains(&now)
    }
}

/// Returns whether a certificate expires soon, or will count as such within a day.
pub fn is_expiry_near(expires_at: i64, now: i64) -> bool {
    expires_at.saturating_sub(now) < SOON + DAY
}

/// Returns the day of a Unix time, in UTC: `2026-12-08`.
pub fn date(unix_time: i64) -> String {
    timestamp(unix_time).strftime("%Y-%m-%d").to_string()
}

/// Converts a Unix time.
pub(super) fn timestamp(unix_time: i64) -> Timestamp {
    Timestamp::from_second(unix_time).unwrap_or(Timestamp::MAX)
}

/// Returns the current Unix time.
pub fn unix_now() -> i64 {
    #[allow(clippy::disallowed_methods)]
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let seconds = since.unwrap_or_default().as_secs();
    i64::try_from(seconds).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-29 00:00.
    const NOW: i64 = 1_795_910_400;

    #[test]
    fn an_expiry_is_announced_two_weeks_before() {
        for (seconds_left, text) in [
            (SOON - 1, "expires in 14 days, on 2026-12-12"),
            // A certificate made for nine days, in its first second and in the next one.
            (9 * DAY, "expires in 9 days, on 2026-12-08"),
            (9 * DAY - 1, "expires in 9 days, on 2026-12-07"),
            (0, "expires within a day, on 2026-11-29"),
            (-1, "expired on 2026-11-28"),
        ] {
            let warning = expiry_warning(NOW + seconds_left, NOW);
            assert_eq!(warning.as_deref(), Some(text));
        }
        let past = expiry_warning(NOW + i64::MIN / 2, NOW).unwrap();
        assert!(past.starts_with("expired "), "{past}");
    }

    #[test]
    fn a_future_start_is_reported_rather_than_the_expiry() {
        // `from` and `to`: seconds from now.
        let warning = |from, to| {
            let validity = Validity {
                from: NOW + from,
                to: NOW + to,
            };
            validity.warning(NOW).unwrap_or_default()
        };
        assert_eq!(warning(0, SOON), "");
        let not_yet = "is not valid before 2026-11-30T00:00:00Z; set the clock, or name one that is valid now";
        assert_eq!(warning(DAY, 2 * DAY), not_yet);
        assert_eq!(warning(-DAY, -1), "expired on 2026-11-28; renew it");
    }
}
