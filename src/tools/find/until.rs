use std::fmt;
use std::str::FromStr;

use jiff::civil::Time;
use jiff::{Timestamp, ToSpan, Zoned};

/// The next moment at which it is a time of the day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Until(Timestamp);

impl FromStr for Until {
    type Err = String;

    /// Reads `18:00`, in the time zone of this machine.
    fn from_str(text: &str) -> Result<Self, String> {
        Self::after(text, &Zoned::now())
    }
}

impl Until {
    fn after(text: &str, now: &Zoned) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no time of the day; write it as 18:00");
        let time = Time::strptime("%H:%M", text).map_err(|_| wrong())?;
        let at = |day: &Zoned| {
            day.date()
                .to_datetime(time)
                .to_zoned(day.time_zone().clone())
        };
        let mut next = at(now).map_err(|_| wrong())?;
        if next <= *now {
            let tomorrow = now.checked_add(1.day()).map_err(|_| wrong())?;
            next = at(&tomorrow).map_err(|_| wrong())?;
        }
        Ok(Self(next.timestamp()))
    }

    /// Says the moment in full if it is not today, because a time of the day does not tell that.
    pub(super) fn notice(self, now: &Zoned) -> Option<String> {
        let until = self.0.to_zoned(now.time_zone().clone());
        let is_today = until.date() == now.date();
        (!is_today).then(|| format!("waits until {} at most", until.strftime("%Y-%m-%d %H:%M")))
    }
}

impl fmt::Display for Until {
    /// In UTC, as the API takes it: `2026-12-01T18:00:00Z`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;

    use super::*;

    #[test]
    fn it_is_the_next_such_time_here() {
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        let now: Timestamp = "2026-12-01T15:30:00Z".parse().unwrap();
        let now = now.to_zoned(zone);
        for (text, next) in [
            ("18:00", "2026-12-01T16:00:00Z"),
            ("17:30", "2026-12-02T15:30:00Z"),
            ("09:05", "2026-12-02T07:05:00Z"),
        ] {
            assert_eq!(Until::after(text, &now).unwrap().to_string(), next);
        }
        let notice = |text: &str| Until::after(text, &now).unwrap().notice(&now);
        assert_eq!(notice("18:00"), None);
        let tomorrow = "waits until 2026-12-02 17:29 at most";
        assert_eq!(notice("17:29").as_deref(), Some(tomorrow));
        for wrong in ["", "18", "25:00", "18:00 tomorrow", "soon"] {
            let error = Until::after(wrong, &now).unwrap_err();
            assert!(error.contains("write it as 18:00"), "{error}");
        }
    }
}
