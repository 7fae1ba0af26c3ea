use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use thiserror::Error;

use super::crowd::VisitorCrowd;
use crate::limit::{Percent, Rate, RateError, parse_duration, show_duration};

/// Most visitors of a run.
const MAX_VISITORS: u64 = 1_000_000;

/// Longest time that an option takes.
const MAX_SPAN: Duration = Duration::from_secs(24 * 3600);

/// The options that describe visitors.
#[derive(Debug, Args)]
pub(in crate::tools::simulate) struct VisitorArguments {
    /// Instead of a trace: simulate so many visitors before the waiting room of an origin; or
    /// visitors at a rate such as 80r/s, for the time of --within
    #[arg(long, value_name = "COUNT", conflicts_with_all = ["trace", "format"])]
    visitors: Option<VisitorCount>,
    /// The time in which the visitors come, evenly and at random [default: 0, all at once]
    #[arg(
        long, value_name = "TIME", value_parser = span,
        requires = "visitors", conflicts_with = "trace"
    )]
    within: Option<Duration>,
    /// How long a visitor is inside on average, from the first to the last request [default: 5m]
    #[arg(
        long, value_name = "TIME", value_parser = span,
        requires = "visitors", conflicts_with = "trace"
    )]
    stay: Option<Duration>,
    /// How many of those who wait never come back, such as 30% [default: 0%]
    #[arg(
        long, value_name = "SHARE", value_parser = share,
        requires = "visitors", conflicts_with = "trace"
    )]
    leave: Option<f64>,
    /// How long before the room opens the first visitors come [default: it is open]
    #[arg(
        long, value_name = "TIME", value_parser = span,
        requires = "visitors", conflicts_with = "trace"
    )]
    early: Option<Duration>,
    /// The origin whose room is simulated, if several have one
    #[arg(
        long,
        value_name = "NAME",
        requires = "visitors",
        conflicts_with = "trace"
    )]
    room: Option<String>,
}

/// Why the options describe no crowd.
#[derive(Debug, Error)]
pub(super) enum CrowdError {
    #[error("{0} needs the time in which visitors come; add --within 10m")]
    NoTime(Rate),
    #[error("{rate} for {within} is {count} visitors; from 1 to {MAX_VISITORS} can be simulated")]
    Count {
        rate: Rate,
        within: String,
        count: u64,
    },
}

impl VisitorArguments {
    /// The name of the origin.
    pub(super) fn room(&self) -> Option<&str> {
        self.room.as_deref()
    }

    /// What the options describe; `None` without `--visitors`.
    pub(super) fn crowd(&self) -> Result<Option<VisitorCrowd>, CrowdError> {
        let within = self.within.unwrap_or_default();
        let visitors = match self.visitors {
            None => return Ok(None),
            Some(VisitorCount::Count(count)) => count,
            Some(VisitorCount::Rate(rate)) if within.is_zero() => {
                return Err(CrowdError::NoTime(rate));
            }
            Some(VisitorCount::Rate(rate)) => {
                let count = rate.count_in(within);
                let fits = (1..=MAX_VISITORS).contains(&count);
                let within = show_duration(within);
                fits.then_some(count).ok_or(CrowdError::Count {
                    rate,
                    within,
                    count,
                })?
            }
        };
        Ok(Some(VisitorCrowd {
            visitors,
            within,
            stay: self.stay.unwrap_or(Duration::from_secs(5 * 60)),
            leave: self.leave.unwrap_or_default(),
            early: self.early,
        }))
    }
}

/// How many visitors come.
#[derive(Clone, Copy, Debug, PartialEq)]
enum VisitorCount {
    Count(u64),
    Rate(Rate),
}

/// Why a text is no number of visitors.
#[derive(Debug, Error)]
enum VisitorCountError {
    #[error("a number of visitors is from 1 to {MAX_VISITORS}")]
    Range,
    #[error("{0}; or write a number of visitors, such as 50000")]
    Rate(#[from] RateError),
}

impl FromStr for VisitorCount {
    type Err = VisitorCountError;

    fn from_str(text: &str) -> Result<Self, VisitorCountError> {
        if text.bytes().all(|byte| byte.is_ascii_digit()) {
            let count = text.parse().ok();
            let fits = count.filter(|count| (1..=MAX_VISITORS).contains(count));
            return fits.map(Self::Count).ok_or(VisitorCountError::Range);
        }
        Ok(Self::Rate(text.parse()?))
    }
}

fn span(text: &str) -> Result<Duration, String> {
    let span = parse_duration(text).filter(|span| *span <= MAX_SPAN);
    span.ok_or_else(|| "a time such as 90s or 10m, at most 24h".to_owned())
}

fn share(text: &str) -> Result<f64, String> {
    if ["0", "0%"].contains(&text) {
        return Ok(0.0);
    }
    let share = text.parse::<Percent>().map_err(|error| error.to_string())?;
    Ok(f64::from(share.millionths()) / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_visitors_is_a_count_or_a_rate() {
        assert_eq!(
            "50000".parse::<VisitorCount>().unwrap(),
            VisitorCount::Count(50_000)
        );
        let rate = "80r/s".parse::<VisitorCount>().unwrap();
        assert_eq!(rate, VisitorCount::Rate("80r/s".parse().unwrap()));
        for wrong in ["", "0", "1000001", "-1", "x", "80"] {
            assert_eq!(
                wrong.parse::<VisitorCount>().is_err(),
                wrong != "80",
                "{wrong}"
            );
        }
    }

    #[test]
    fn a_share_may_be_none() {
        for (text, expected) in [("0", 0.0), ("0%", 0.0), ("30%", 0.3), ("100%", 1.0)] {
            assert!((share(text).unwrap() - expected).abs() < 1e-9, "{text}");
        }
        assert!(share("101%").is_err() && share("30").is_err());
        assert!(span("25h").is_err() && span("10").is_err());
    }
}
