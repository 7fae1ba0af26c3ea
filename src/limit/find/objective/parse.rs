use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::{Criterion, ErrorKind, MAX_CONDITIONS, Objective};
use crate::find::answer::Part;
use crate::{Percent, parse_duration};

/// Longest time of a condition.
const MAX_TIME: Duration = Duration::from_secs(600);

/// Why a text is no [`Objective`]: which condition, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectiveError {
    /// The condition as written.
    pub condition: String,
    /// What is wrong.
    pub problem: ObjectiveProblem,
}

/// What is wrong with a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectiveProblem {
    /// No condition at all.
    Empty,
    /// No `<` between a figure and its bound.
    NoBound,
    /// `<=` in place of `<`.
    AtMost,
    /// `>` in place of `<`.
    LowerBound,
    /// Several conditions without a comma between them.
    NoComma,
    /// A figure that is not known.
    Figure,
    /// A percentile that is not above 0 and at most 99.99.
    Quantile,
    /// The bound of a percentile is no time.
    Time,
    /// The bound of a percentile is zero or above 10 minutes.
    TimeRange,
    /// The bound of errors is no percentage below 100 %.
    Share,
    /// The figure has a bound already.
    Twice,
    /// More than [`MAX_CONDITIONS`].
    TooMany,
}

impl fmt::Display for ObjectiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let condition = &self.condition;
        match self.problem {
            ObjectiveProblem::Empty => f.write_str(
                "an objective has at least one condition, such as \"p95<400ms, errors<0.5%\"",
            ),
            ObjectiveProblem::NoBound => write!(
                f,
                "\"{condition}\" has no bound: write a figure, < and its bound, such as \"p95<400ms\""
            ),
            ObjectiveProblem::AtMost => {
                let mended = mended(condition);
                write!(f, "\"{condition}\": write < in place of <=: {mended}")
            }
            ObjectiveProblem::LowerBound => {
                let mended = mended(condition);
                write!(
                    f,
                    "\"{condition}\": an objective is an upper bound: write {mended}"
                )
            }
            ObjectiveProblem::NoComma => write!(
                f,
                "\"{condition}\": write a comma between conditions, as in \"p95<400ms, errors<0.5%\""
            ),
            ObjectiveProblem::Figure => write!(
                f,
                "\"{condition}\" has no known figure: write p50, p95 or another percentile (with \
                 \" whole\" for the time to the last byte), errors, 4xx or 5xx"
            ),
            ObjectiveProblem::Quantile => write!(
                f,
                "\"{condition}\" has no possible percentile: write one above p0 and up to p99.99"
            ),
            ObjectiveProblem::Time => write!(
                f,
                "\"{condition}\" has no time behind <: write a whole number and a unit, such as \
                 400ms or 2s"
            ),
            ObjectiveProblem::TimeRange => {
                write!(f, "\"{condition}\": the time is above 0 and at most 10m")
            }
            ObjectiveProblem::Share => write!(
                f,
                "\"{condition}\" has no share behind <: write a percentage above 0% and below \
                 100%, such as 0.5%"
            ),
            ObjectiveProblem::Twice => write!(
                f,
                "\"{condition}\" bounds a figure that has a bound already: leave one of them out"
            ),
            ObjectiveProblem::TooMany => write!(
                f,
                "\"{condition}\" is one condition too many: an objective has at most \
                 {MAX_CONDITIONS}"
            ),
        }
    }
}

impl std::error::Error for ObjectiveError {}

impl FromStr for Objective {
    type Err = ObjectiveError;

    fn from_str(text: &str) -> Result<Self, ObjectiveError> {
        let mut conditions: Vec<Criterion> = Vec::new();
        if text.trim().is_empty() {
            return Err(error("", ObjectiveProblem::Empty));
        }
        for written in text.split(',').map(str::trim) {
            let condition = parse(written).map_err(|problem| error(written, problem))?;
            if conditions.iter().any(|it| it.name() == condition.name()) {
                return Err(error(written, ObjectiveProblem::Twice));
            }
            if conditions.len() == MAX_CONDITIONS {
                return Err(error(written, ObjectiveProblem::TooMany));
            }
            conditions.push(condition);
        }
        Ok(Self { conditions })
    }
}

fn error(condition: &str, problem: ObjectiveProblem) -> ObjectiveError {
    ObjectiveError {
        condition: condition.to_owned(),
        problem,
    }
}

/// A condition with `<` in place of another sign.
fn mended(text: &str) -> String {
    let mut text = text.to_owned();
    for sign in ["<=", "=<", "≤", ">=", "=>", "≥", ">"] {
        text = text.replace(sign, "<");
    }
    text
}

fn parse(text: &str) -> Result<Criterion, ObjectiveProblem> {
    let mended = mended(text);
    let condition = parse_mended(&mended)?;
    if mended == text {
        return Ok(condition);
    }
    Err(if text.contains(['>', '≥']) {
        ObjectiveProblem::LowerBound
    } else {
        ObjectiveProblem::AtMost
    })
}

/// A bound without the space between its number and its unit: `150 ms`.
fn joined(bound: &str) -> String {
    match bound.split_once(char::is_whitespace) {
        Some((number, unit)) if !unit.trim_start().starts_with(|c: char| c.is_ascii_digit()) => {
            format!("{number}{}", unit.trim_start())
        }
        _ => bound.to_owned(),
    }
}

/// A condition in which `<` is the only sign.
fn parse_mended(text: &str) -> Result<Criterion, ObjectiveProblem> {
    let (figure, bound) = text.split_once('<').ok_or(ObjectiveProblem::NoBound)?;
    if bound.contains(['<', ';']) {
        return Err(ObjectiveProblem::NoComma);
    }
    let figure = figure.trim().to_ascii_lowercase();
    let bound = &*joined(bound.trim());
    let kind = match &*figure {
        "errors" => Some(ErrorKind::Failures),
        "4xx" => Some(ErrorKind::Status4xx),
        "5xx" => Some(ErrorKind::Status5xx),
        _ => None,
    };
    if let Some(kind) = kind {
        let below = bound.parse::<Percent>().ok();
        let below = below.filter(|it| *it < Percent::ALL);
        let below = below.ok_or(ObjectiveProblem::Share)?;
        return Ok(Criterion::Errors { kind, below });
    }
    let mut words = figure.split_ascii_whitespace();
    let number = words.next().and_then(|it| it.strip_prefix('p'));
    let number = number.ok_or(ObjectiveProblem::Figure)?;
    let part = match (words.next(), words.next()) {
        (None | Some("head"), None) => Part::Head,
        (Some("whole"), None) => Part::Whole,
        _ => return Err(ObjectiveProblem::Figure),
    };
    if !number.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(ObjectiveProblem::Figure);
    }
    let quantile = format!("{number}%").parse::<Percent>().ok();
    let quantile = quantile.filter(|it| it.millionths() <= 999_900);
    let quantile = quantile.ok_or(ObjectiveProblem::Quantile)?;
    let below = parse_duration(bound).ok_or(ObjectiveProblem::Time)?;
    if below.is_zero() || below > MAX_TIME {
        return Err(ObjectiveProblem::TimeRange);
    }
    Ok(Criterion::Percentile {
        quantile,
        part,
        below,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_signs_and_separators_are_named_with_what_to_write() {
        use ObjectiveProblem as P;
        for (text, problem, says) in [
            ("p95<=150ms", P::AtMost, "write < in place of <=: p95<150ms"),
            ("p95 ≤ 150ms", P::AtMost, "in place of <=: p95 < 150ms"),
            (
                "p95>150ms",
                P::LowerBound,
                "an objective is an upper bound: write p95<150ms",
            ),
            ("errors >= 1%", P::LowerBound, "write errors < 1%"),
            ("mean>150ms", P::Figure, "no known figure"),
            ("p95<=150", P::Time, "no time behind <"),
            (
                "p95<150ms;errors<1%",
                P::NoComma,
                "write a comma between conditions",
            ),
            ("p95<150ms errors<1%", P::NoComma, "write a comma"),
            ("p95<=150ms;errors>1%", P::NoComma, "write a comma"),
            ("p95<150ms;", P::NoComma, "write a comma"),
        ] {
            let error = text.parse::<Objective>().unwrap_err();
            assert_eq!(error.problem, problem, "{text}");
            assert!(error.to_string().contains(says), "{error}");
        }
    }

    #[test]
    fn capitals_of_figures_and_spaces_before_units_are_read() {
        for (text, printed) in [
            ("P95 < 150 ms", "p95<150ms"),
            (
                "P99.9 Whole < 2  s, ERRORS < 0.5 %",
                "p99.9 whole<2s, errors<0.5%",
            ),
        ] {
            let objective = text.parse::<Objective>().unwrap();
            assert_eq!(objective.to_string(), printed);
        }
        for wrong in ["p95<150 MS", "p95<1 50ms", "p95<15 0 ms", "p 95<150ms"] {
            assert!(wrong.parse::<Objective>().is_err(), "{wrong}");
        }
    }
}
