use std::fmt;
use std::time::Duration;

use super::answer::{AnswerEvent, Part};
use crate::{Percent, show_duration};

mod parse;

pub use parse::ObjectiveError;

/// Most conditions of an objective.
pub const MAX_CONDITIONS: usize = 8;

/// An objective without a time gives a request so long to be answered.
const MAX_ANSWER: Duration = Duration::from_secs(10);

/// What answers of an origin must keep: `p95<400ms, errors<0.5%`.
///
/// All of 1 to [`MAX_CONDITIONS`] conditions must hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Objective {
    conditions: Vec<Criterion>,
}

/// One condition of an [`Objective`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Criterion {
    /// So many answers take less than `below`. `p95<400ms` has a `quantile` of 95 %.
    Percentile {
        /// The part of answers that must be faster: above 0 %, below 100 %.
        quantile: Percent,
        /// What is timed.
        part: Part,
        /// The first time that is too long. Above zero.
        below: Duration,
    },
    /// Fewer answers than this are errors.
    Errors {
        /// Which answers are errors.
        kind: ErrorKind,
        /// The first share that is too large. Below 100 %.
        below: Percent,
    },
}

/// Which answers are errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// Status 5xx, and requests without a whole answer: `errors`.
    Failures,
    /// Status 4xx: `4xx`.
    Status4xx,
    /// Status 5xx, but not requests without an answer: `5xx`.
    Status5xx,
}

/// What an event says about a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Judgement {
    Good,
    Bad,
    /// Judged already as good, and bad after all.
    BadAfterAll,
    /// The event says nothing.
    Nothing,
}

impl Objective {
    /// The conditions, as written.
    pub fn conditions(&self) -> &[Criterion] {
        &self.conditions
    }

    /// Whether one of its conditions is about times.
    pub(super) fn has_times(&self) -> bool {
        let mut conditions = self.conditions.iter();
        conditions.any(|it| matches!(it, Criterion::Percentile { .. }))
    }

    /// How long a request may be without an answer before it counts as a slow one.
    ///
    /// The longest time of its conditions; 10 s if it has none.
    pub fn longest(&self) -> Duration {
        let times = self.conditions.iter().filter_map(|it| match it {
            Criterion::Percentile { below, .. } => Some(*below),
            Criterion::Errors { .. } => None,
        });
        times.max().unwrap_or(MAX_ANSWER)
    }
}

impl Criterion {
    /// The figure's name as written before `<`: `p95`, `p99 whole`, `errors`.
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

    /// The part of answers that may be bad, above 0 and below 1.
    pub fn allowed(&self) -> f64 {
        match self {
            Self::Percentile { quantile, .. } => 1.0 - quantile.part(),
            Self::Errors { below, .. } => below.part(),
        }
    }

    /// The part of an answer that the condition is about.
    pub fn part(&self) -> Part {
        match self {
            Self::Percentile { part, .. } => *part,
            Self::Errors { .. } => Part::Head,
        }
    }

    pub(super) fn judge(&self, event: AnswerEvent) -> Judgement {
        match self {
            Self::Percentile { part, below, .. } => judge_time(event, *part, *below),
            Self::Errors { kind, .. } => judge_status(event, *kind),
        }
    }

    /// Whether a request without an answer after [`Objective::longest`] is a bad one.
    pub(super) fn counts_missing(&self, has_times: bool) -> bool {
        match self {
            Self::Percentile { .. } => true,
            Self::Errors { kind, .. } => !has_times && *kind == ErrorKind::Failures,
        }
    }
}

fn of(is_bad: bool) -> Judgement {
    if is_bad {
        Judgement::Bad
    } else {
        Judgement::Good
    }
}

/// An answer that is an error is no answer in time: an origin must not look fast by failing.
fn judge_time(event: AnswerEvent, part: Part, below: Duration) -> Judgement {
    match (event, part) {
        (AnswerEvent::Head { took, status }, Part::Head)
        | (AnswerEvent::Whole { took, status }, Part::Whole) => of(took >= below || status >= 500),
        (AnswerEvent::Failed { had_head }, _) if !had_head || part == Part::Whole => Judgement::Bad,
        (AnswerEvent::Abandoned { had_head, took }, _)
            if (!had_head || part == Part::Whole) && took >= below =>
        {
            Judgement::Bad
        }
        _ => Judgement::Nothing,
    }
}

fn judge_status(event: AnswerEvent, kind: ErrorKind) -> Judgement {
    match (event, kind) {
        (AnswerEvent::Head { status, .. }, ErrorKind::Status4xx) => {
            of((400..500).contains(&status))
        }
        (AnswerEvent::Head { status, .. }, _) => of(status >= 500),
        (AnswerEvent::Failed { had_head: false }, _) => of(kind == ErrorKind::Failures),
        (AnswerEvent::Failed { had_head: true }, ErrorKind::Failures) => Judgement::BadAfterAll,
        _ => Judgement::Nothing,
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
