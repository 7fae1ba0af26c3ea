//! Objectives of an experiment: bounds of percentiles and of errors, such as `p95<400ms`.
//!
//! An experiment searches the highest rate at which the responses of an origin keep the objective.

use std::fmt;
use std::time::Duration;

use super::answer::{AnswerEvent, Part};
use crate::{Percent, show_duration};

mod parse;

pub use parse::ObjectiveError;

/// Upper bound of the conditions of an objective.
pub const MAX_CONDITIONS: usize = 8;

/// Duration after which a request without a response is bad, if the objective has no percentile.
const MAX_ANSWER: Duration = Duration::from_secs(10);

/// Objective that responses of an origin must keep: `p95<400ms, errors<0.5%`.
///
/// It has 1 to [`MAX_CONDITIONS`] conditions. All must hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Objective {
    conditions: Vec<Criterion>,
}

/// One condition of an [`Objective`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Criterion {
    /// A share `quantile` of responses takes less than `below`.
    ///
    /// `p95<400ms` has a `quantile` of 95 %.
    Percentile {
        /// Share of responses that must be faster: above 0 %, below 100 %.
        quantile: Percent,
        /// Part of the response that is timed.
        part: Part,
        /// Shortest duration that is too long. Above zero.
        below: Duration,
    },
    /// A smaller share than this of responses are errors.
    Errors {
        /// Kind of response that counts as an error.
        kind: ErrorKind,
        /// Smallest share that is too large. Below 100 %.
        below: Percent,
    },
}

/// Kind of response that counts as an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// `errors`: status 5xx, and requests without a whole response.
    Failures,
    /// `4xx`: status 4xx.
    Status4xx,
    /// `5xx`: status 5xx, but not requests without a response.
    Status5xx,
}

/// Verdict of an event on a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResponseVerdict {
    Good,
    Bad,
    /// Bad, although an earlier event of the same request counted as good.
    TurnedBad,
    /// The event does not concern the condition.
    Nothing,
}

impl Objective {
    /// Returns the conditions, in the order of the text.
    pub fn conditions(&self) -> &[Criterion] {
        &self.conditions
    }

    /// Returns whether one of its conditions is a percentile.
    pub(super) fn has_times(&self) -> bool {
        let mut conditions = self.conditions.iter();
        conditions.any(|it| matches!(it, Criterion::Percentile { .. }))
    }

    /// Returns the duration after which a request without a response counts as slow.
    ///
    /// This is the longest duration of the percentiles, or 10 s without a percentile.
    pub fn longest(&self) -> Duration {
        let times = self.conditions.iter().filter_map(|it| match it {
            Criterion::Percentile { below, .. } => Some(*below),
            Criterion::Errors { .. } => None,
        });
        times.max().unwrap_or(MAX_ANSWER)
    }
}

impl Criterion {
    /// Returns the figure's name as written before `<`: `p95`, `p99 whole`, `errors`.
    pub fn name(&self) -> String {
        match self {
            Self::Percentile { quantile, part, .. } => {
                let number = quantile.to_string();
                let number = number.trim_end_matches('%');
                match part {
                    Part::Head => format!("p{number}"),
                    Part::Whole => format!("p{number} whole"),
                }
            }
            Self::Errors { kind, .. } => match kind {
                ErrorKind::Failures => "errors",
                ErrorKind::Status4xx => "4xx",
                ErrorKind::Status5xx => "5xx",
            }
            .to_owned(),
        }
    }

    /// Returns the share of responses that may be bad, above 0 and below 1.
    pub fn allowed(&self) -> f64 {
        match self {
            Self::Percentile { quantile, .. } => 1.0 - quantile.part(),
            Self::Errors { below, .. } => below.part(),
        }
    }

    /// Returns what an event of a request says about this condition.
    pub(super) fn verdict(&self, event: AnswerEvent) -> ResponseVerdict {
        match self {
            Self::Percentile { part, below, .. } => verdict_by_time(event, *part, *below),
            Self::Errors { kind, .. } => verdict_by_status(event, *kind),
        }
    }

    /// Returns the part of a response without which a request is bad after [`Objective::longest`].
    ///
    /// `None`: a request without a response does not count. `has_times`: the objective has a
    /// percentile.
    pub(super) fn needed_part(&self, has_times: bool) -> Option<Part> {
        match self {
            Self::Percentile { part, .. } => Some(*part),
            Self::Errors { kind, .. } => {
                (!has_times && *kind == ErrorKind::Failures).then_some(Part::Head)
            }
        }
    }
}

fn bad_if(is_bad: bool) -> ResponseVerdict {
    if is_bad {
        ResponseVerdict::Bad
    } else {
        ResponseVerdict::Good
    }
}

/// Decides by duration. An error response is bad: an origin must not look fast by failing.
fn verdict_by_time(event: AnswerEvent, part: Part, below: Duration) -> ResponseVerdict {
    if !event.ends(part) {
        return ResponseVerdict::Nothing;
    }
    match event {
        AnswerEvent::Head { took, status } | AnswerEvent::Whole { took, status } => {
            bad_if(took >= below || status >= 500)
        }
        AnswerEvent::Failed { .. } => ResponseVerdict::Bad,
        AnswerEvent::Abandoned { took, .. } if took >= below => ResponseVerdict::Bad,
        AnswerEvent::Abandoned { .. } => ResponseVerdict::Nothing,
    }
}

/// Decides by status. A request without a whole response is an error, too, for `errors`.
fn verdict_by_status(event: AnswerEvent, kind: ErrorKind) -> ResponseVerdict {
    match (event, kind) {
        (AnswerEvent::Head { status, .. }, ErrorKind::Status4xx) => {
            bad_if((400..500).contains(&status))
        }
        (AnswerEvent::Head { status, .. }, _) => bad_if(status >= 500),
        (AnswerEvent::Failed { had_head: false }, _) => bad_if(kind == ErrorKind::Failures),
        (AnswerEvent::Failed { had_head: true }, ErrorKind::Failures) => ResponseVerdict::TurnedBad,
        _ => ResponseVerdict::Nothing,
    }
}

impl fmt::Display for Objective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let conditions: Vec<_> = self.conditions.iter().map(Criterion::to_string).collect();
        f.write_str(&conditions.join(", "))
    }
}

impl fmt::Display for Criterion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let below = match self {
            Self::Percentile { below, .. } => show_duration(*below),
            Self::Errors { below, .. } => below.to_string(),
        };
        write!(f, "{}<{below}", self.name())
    }
}

#[cfg(test)]
mod tests;
