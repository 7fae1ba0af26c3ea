use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use jiff::civil::{DateTime, Time};
use jiff::tz::Offset;
use thiserror::Error;

use crate::limit::Moment;

/// How the operator classifies the time of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Named by `--good`; any time not named bad if no hours are named good.
    Good,
    /// Named by `--bad`.
    Bad,
    /// Not named, while other hours are named good.
    Other,
}

/// A span of time as in the command line: `2026-11-01T09:00/11:00`, by the clock of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    from: Edge,
    to: Edge,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Edge {
    /// Local time of the machine that wrote the log.
    Wall(DateTime),
    /// Time since the Unix epoch in nanoseconds; written in seconds, as in CSV traces.
    Nanos(u64),
}

/// Error for a text that is not a [`Span`].
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "this is not a span of time; write one such as 2026-11-01T09:00/11:00, 2026-11-01T22:00/2026-11-02T06:00, or 0/60 in seconds"
)]
pub struct SpanError;

impl FromStr for Span {
    type Err = SpanError;

    fn from_str(text: &str) -> Result<Self, SpanError> {
        let (from, to) = text.split_once('/').ok_or(SpanError)?;
        let span = if let (Some(from), Some(to)) = (seconds(from), seconds(to)) {
            Self {
                from: Edge::Nanos(from),
                to: Edge::Nanos(to),
            }
        } else {
            let from: DateTime = from.parse().map_err(|_| SpanError)?;
            let to = if let Ok(to) = to.parse::<DateTime>() {
                to
            } else {
                // A time without a date is the next such time after `from`.
                let time: Time = to.parse().map_err(|_| SpanError)?;
                let to = from.date().to_datetime(time);
                if to > from {
                    to
                } else {
                    let next = from.date().tomorrow().map_err(|_| SpanError)?;
                    next.to_datetime(time)
                }
            };
            Self {
                from: Edge::Wall(from),
                to: Edge::Wall(to),
            }
        };
        let ends = (span.from.at(0), span.to.at(0));
        if ends.0 < ends.1 {
            Ok(span)
        } else {
            Err(SpanError)
        }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.from, self.to)
    }
}

impl fmt::Display for Edge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wall(wall) => wall.fmt(f),
            Self::Nanos(nanos) => write!(f, "{}", nanos / 1_000_000_000),
        }
    }
}

fn seconds(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let whole: u64 = is_number.then(|| text.parse().ok())??;
    whole.checked_mul(1_000_000_000)
}

impl Edge {
    /// The moment of this edge in a log whose clock is `ahead` seconds ahead of UTC.
    fn at(self, ahead: i32) -> Moment {
        match self {
            Self::Nanos(nanos) => Moment::from_nanos(nanos),
            Self::Wall(wall) => {
                let offset = Offset::from_seconds(ahead).unwrap_or(Offset::UTC);
                let nanos = offset
                    .to_timestamp(wall)
                    .map_or(0, Timestamp::as_nanosecond);
                Moment::from_nanos(u64::try_from(nanos).unwrap_or_default())
            }
        }
    }
}

/// The good and the bad hours.
#[derive(Clone, Debug, Default)]
pub struct Hours {
    good: Vec<Span>,
    bad: Vec<Span>,
    /// The same hours as moments, by the log's clock.
    spans: Vec<(Moment, Moment, Class)>,
    /// For each of `spans`, whether a request came in it.
    met: Vec<bool>,
}

impl Hours {
    /// The hours as named on the command line.
    #[must_use]
    pub fn new(good: Vec<Span>, bad: Vec<Span>) -> Self {
        let mut hours = Self {
            good,
            bad,
            spans: Vec::new(),
            met: Vec::new(),
        };
        hours.set_clock(0);
        hours
    }

    /// Reads the hours by a clock that is `ahead` seconds ahead of UTC.
    pub fn set_clock(&mut self, ahead: i32) {
        // Hours that are named both good and bad are bad.
        let bad = self.bad.iter().map(|span| (span, Class::Bad));
        let good = self.good.iter().map(|span| (span, Class::Good));
        let all = bad.chain(good);
        self.spans = all
            .map(|(span, class)| (span.from.at(ahead), span.to.at(ahead), class))
            .collect();
        self.met.resize(self.spans.len(), false);
    }

    /// Records that a request came at `at`. Returns the class of that time.
    pub(super) fn meet(&mut self, at: Moment) -> Class {
        for (met, (from, to, _)) in self.met.iter_mut().zip(&self.spans) {
            *met |= (*from..*to).contains(&at);
        }
        self.class(at)
    }

    /// The named hours in which no request came.
    pub(super) fn unmet(&self) -> impl Iterator<Item = &Span> {
        let all = self.bad.iter().chain(&self.good).zip(&self.met);
        all.filter(|(_, met)| !**met).map(|(span, _)| span)
    }

    /// The class of the time `at`.
    #[must_use]
    pub fn class(&self, at: Moment) -> Class {
        let named = self
            .spans
            .iter()
            .find(|(from, to, _)| (*from..*to).contains(&at));
        match named {
            Some((.., class)) => *class,
            None if self.good.is_empty() => Class::Good,
            None => Class::Other,
        }
    }

    /// Whether any hour is named good.
    #[must_use]
    pub fn names_good(&self) -> bool {
        !self.good.is_empty()
    }

    /// Whether any hour is named bad.
    #[must_use]
    pub fn names_bad(&self) -> bool {
        !self.bad.is_empty()
    }

    /// The named hours, by the log's clock.
    pub fn spans(&self) -> impl Iterator<Item = (Moment, Moment, Class)> + '_ {
        self.spans.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hours(good: &[&str], bad: &[&str]) -> Hours {
        let spans = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        Hours::new(spans(good), spans(bad))
    }

    fn at(text: &str) -> Moment {
        let at: jiff::Timestamp = text.parse().unwrap();
        Moment::from_nanos(u64::try_from(at.as_nanosecond()).unwrap())
    }

    #[test]
    fn hours_are_those_of_the_logs_clock() {
        let mut hours = hours(&["2026-11-01T09:00/11:00"], &["2026-11-01T22:00/06:00:30"]);
        let cases = [
            ("2026-11-01T08:59:59Z", Class::Other),
            ("2026-11-01T09:00:00Z", Class::Good),
            ("2026-11-01T10:59:59.9Z", Class::Good),
            ("2026-11-01T11:00:00Z", Class::Other),
            ("2026-11-02T06:00:29Z", Class::Bad),
            ("2026-11-02T06:00:30Z", Class::Other),
        ];
        for (time, class) in cases {
            assert_eq!(hours.class(at(time)), class, "{time}");
        }
        hours.meet(at("2026-11-01T09:00:00Z"));
        hours.set_clock(3600);
        let unmet: Vec<String> = hours.unmet().map(ToString::to_string).collect();
        assert_eq!(unmet, ["2026-11-01T22:00:00/2026-11-02T06:00:30"]);
        assert_eq!(hours.class(at("2026-11-01T08:00:00Z")), Class::Good);
        assert_eq!(hours.class(at("2026-11-01T10:00:00Z")), Class::Other);
    }

    #[test]
    fn what_is_not_named_bad_is_good_where_nothing_is_named_good() {
        let bad_alone = hours(&[], &["10/20"]);
        let second = |second: u64| Moment::from_nanos(second * 1_000_000_000);
        let classes = [5, 10, 19, 20].map(|at| bad_alone.class(second(at)));
        assert_eq!(classes, [Class::Good, Class::Bad, Class::Bad, Class::Good]);
        assert_eq!(hours(&[], &[]).class(second(0)), Class::Good);
        // Hours that are named both good and bad are bad.
        assert_eq!(hours(&["0/9"], &["5/9"]).class(second(5)), Class::Bad);
    }

    #[test]
    fn what_is_no_span_is_refused() {
        for text in [
            "",
            "/",
            "2026-11-01T09:00",
            "2026-11-01T09:00/",
            "09:00/11:00",
            "2026-11-01T11:00/2026-11-01T09:00",
            "2026-11-01T11:00/2026-11-01T11:00",
            "20/10",
            "1/-2",
            "99999999999999999999/1",
            "2026-13-01T09:00/11:00",
        ] {
            assert_eq!(text.parse::<Span>(), Err(SpanError), "{text}");
        }
    }
}
