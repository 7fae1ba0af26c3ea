use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::{Criterion, ErrorKind, MAX_CONDITIONS, Objective};
use crate::limit::find::answer::Part;
use crate::limit::{Percent, parse_duration};

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

fn parse(text: &str) -> Result<Criterion, ObjectiveProblem> {
    let (figure, bound) = text.split_once('<').ok_or(ObjectiveProblem::NoBound)?;
    let (figure, bound) = (figure.trim(), bound.trim());
    let kind = match figure {
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
