use std::time::Duration;

use crate::{Moment, Percent};

/// What was cut since the last [update](super::Backoff::update).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cuts {
    /// The rate, for trouble.
    pub trouble: bool,
    /// The number in flight, for slow answers.
    pub slow: bool,
    /// All departures, for Retry-After.
    pub retry_after: bool,
}

/// Why something is lower than in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// When it was last cut.
    pub at: Moment,
    /// The answers that were counted then, with the outstanding ones that were past `slow`.
    pub answers: u64,
    /// Those of them that were trouble, or slow.
    pub bad: u64,
    /// It does not grow before. Only a cut of the rate keeps it there, and not each one.
    pub steady_until: Option<Moment>,
    /// Whether another gateway has found it, by its own answers.
    pub is_elsewhere: bool,
}

/// Why the number in flight is not cut, although answers are slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Since when fewer at once are known not to make answers faster.
    pub since: Moment,
    /// It is not cut before.
    pub until: Moment,
}

/// What is lower than in the file, and why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lowered {
    /// The rate, with its present share of the file's.
    pub rate: Option<(Percent, Cut)>,
    /// The number in flight.
    pub max_in_flight: Option<Cut>,
    /// No departures before.
    pub paused_until: Option<Moment>,
    /// Whether another gateway was asked for that pause.
    pub is_paused_elsewhere: bool,
    /// The number in flight was lower, without making answers faster, and they are still slow.
    pub kept: Option<Kept>,
    /// The number in flight is lower, and grows, because answers come in time.
    pub grows: bool,
    /// How long answers took on average before, if any of this is so.
    pub usual: Option<Duration>,
}

impl Cut {
    pub(super) fn of(bad: u64, answers: u64, at: Moment) -> Self {
        Self {
            at,
            answers,
            bad,
            steady_until: None,
            is_elsewhere: false,
        }
    }
}
