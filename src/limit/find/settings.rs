//! Settings of an experiment, which finds the highest level at which an origin keeps an objective.
//!
//! A *level* is a rate, or a number of permits (concurrent requests). A *step* tries one level.

use std::time::Duration;

use super::objective::Objective;
use crate::{Percent, Rate};

/// Smallest step: the sequential test cannot distinguish levels that are nearer.
pub const MIN_STEP: Percent = Percent::from_millionths(10_000);

/// Largest step.
pub const MAX_STEP: Percent = Percent::from_millionths(500_000);

/// Settings of an experiment.
#[derive(Clone, Debug)]
pub struct FindSettings {
    /// Limit to search, and its range.
    pub target: Target,
    /// Objective that must hold.
    pub objective: Objective,
    /// Largest step up, as a part of the level.
    ///
    /// Values outside [`MIN_STEP`] to [`MAX_STEP`] count as the nearest bound.
    pub step: Percent,
    /// Durations of the parts of the experiment.
    pub timing: Timing,
}

/// Limit to search, and its range. `from` is at most `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Rate of the origin.
    Rate {
        /// First rate, and the lowest ever set.
        from: Rate,
        /// Highest rate ever set.
        to: Rate,
    },
    /// Concurrent requests at the origin, `max_in_flight`.
    Permits {
        /// First number, and the lowest ever set. At least 1.
        from: u32,
        /// Highest number ever set.
        to: u32,
    },
}

/// Durations of the parts of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Minimum duration of a good step: 20 s by default, an hour at most.
    ///
    /// Rarer disturbances (garbage collection, a cron job) may appear in no step.
    pub min_step: Duration,
    /// Duration after which the measured shares decide a step that the test has not decided: 60 s
    /// by default.
    pub max_step: Duration,
    /// Duration for which the found level must hold: 60 s by default, an hour at most.
    pub confirm: Duration,
    /// Duration without waiters at the gate after which the experiment ends: 60 s by default.
    pub idle: Duration,
    /// Duration within which the origin must recover after a breach: 60 s by default.
    pub recover: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            min_step: Duration::from_secs(20),
            max_step: Duration::from_secs(60),
            confirm: Duration::from_secs(60),
            idle: Duration::from_secs(60),
            recover: Duration::from_secs(60),
        }
    }
}
