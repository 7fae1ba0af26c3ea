//! Parser of objectives, such as `p95<400ms, errors<0.5%`: a *figure*, `<` and its *bound*.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::{Criterion, ErrorKind, MAX_CONDITIONS, Objective};
use crate::find::answer::Part;
use crate::{Percent, parse_duration};

/// Longest duration of a condition.
const MAX_TIME: Duration = Duration::from_secs(600);

/// Error of a text that is not an [`Objective`]: the condition, the problem, and what to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectiveError(String);

impl fmt::Display for ObjectiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ObjectiveError {}

impl FromStr for Objective {
    type Err = ObjectiveError;

    fn from_str(text: &str) -> Result<Self, ObjectiveError> {
        let mut conditions: Vec<Criterion> = Vec::new();
        if text.trim().is_empty() {
            let example = "such as \"p95<400ms, errors<0.5%\"";
            let error = format!("an objective has at least one condition, {example}");
            return Err(ObjectiveError(error));
        }
        for written in text.split(',').map(str::trim) {
            let error = |problem: &str| ObjectiveError(format!("\"{written}\"{problem}"));
            let condition = parse(written).map_err(|problem| error(&problem))?;
            if conditions.iter().any(|it| it.name() == condition.name()) {
                return Err(error(
                    " bounds a figure that has a bound already: leave one of them out",
                ));
            }
            if conditions.len() == MAX_CONDITIONS {
                return Err(error(&format!(
                    " is one condition too many: an objective has at most {MAX_CONDITIONS}"
                )));
            }
            conditions.push(condition);
        }
        Ok(Self { conditions })
    }
}

/// Parses one condition. The error is the text that follows the condition in the message.
///
/// Only `<` is allowed. For another sign of comparison, the error shows the condition to write.
fn parse(text: &str) -> Result<Criterion, String> {
    let other_signs = ["<=", "=<", "≤", ">=", "=>", "≥", ">"].iter();
    let mended = other_signs.fold(text.to_owned(), |text, sign| text.replace(sign, "<"));
    // If the condition has other errors, too, they come first.
    let condition = parse_mended(&mended)?;
    if mended == text {
        Ok(condition)
    } else if text.contains(['>', '≥']) {
        Err(format!(": an objective is an upper bound: write {mended}"))
    } else {
        Err(format!(": write < in place of <=: {mended}"))
    }
}

/// Removes the space between a bound's number and its unit: `150 ms`.
fn join_unit(bound: &str) -> String {
    match bound.split_once(char::is_whitespace) {
        Some((number, unit)) if !unit.trim_start().starts_with(|c: char| c.is_ascii_digit()) => {
            format!("{number}{}", unit.trim_start())
        }
        _ => bound.to_owned(),
    }
}

/// Parses a condition in which `<` is the only sign.
fn parse_mended(text: &str) -> Result<Criterion, &'static str> {
    let (figure, bound) = text
        .split_once('<')
        .ok_or(" has no bound: write a figure, < and its bound, such as \"p95<400ms\"")?;
    if bound.contains(['<', ';']) {
        return Err(": write a comma between conditions, as in \"p95<400ms, errors<0.5%\"");
    }
    let figure = figure.trim().to_ascii_lowercase();
    let bound = &*join_unit(bound.trim());
    let kind = match &*figure {
        "errors" => Some(ErrorKind::Failures),
        "4xx" => Some(ErrorKind::Status4xx),
        "5xx" => Some(ErrorKind::Status5xx),
        _ => None,
    };
    if let Some(kind) = kind {
        let below = bound.parse::<Percent>().ok();
        let below = below.filter(|below| *below < Percent::ALL).ok_or(
            " has no share after <: write a percentage above 0% and below 100%, such as 0.5%",
        )?;
        return Ok(Criterion::Errors { kind, below });
    }
    let unknown = " has no known figure: write p50, p95 or another percentile (with \" whole\" for the time to the last byte), errors, 4xx or 5xx";
    let mut words = figure.split_ascii_whitespace();
    let number = words.next().and_then(|it| it.strip_prefix('p'));
    let number = number.filter(|it| it.starts_with(|c: char| c.is_ascii_digit()));
    let number = number.ok_or(unknown)?;
    let part = match (words.next(), words.next()) {
        (None | Some("head"), None) => Part::Head,
        (Some("whole"), None) => Part::Whole,
        _ => return Err(unknown),
    };
    let quantile = format!("{number}%").parse::<Percent>().ok();
    let quantile = quantile.filter(|it| it.millionths() <= 999_900);
    let quantile =
        quantile.ok_or(" has no possible percentile: write one above p0 and up to p99.99")?;
    let below = parse_duration(bound)
        .ok_or(" has no time after <: write a whole number and a unit, such as 400ms or 2s")?;
    if below.is_zero() || below > MAX_TIME {
        return Err(": the time is above 0 and at most 10m");
    }
    Ok(Criterion::Percentile {
        quantile,
        part,
        below,
    })
}
