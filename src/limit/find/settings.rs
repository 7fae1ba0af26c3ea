use std::time::Duration;

use super::objective::Objective;
use crate::{Percent, Rate};

/// The smallest step: the sequential test cannot tell levels apart that are nearer.
pub const MIN_STEP: Percent = Percent::from_millionths(10_000);

/// The largest step.
pub const MAX_STEP: Percent = Percent::from_millionths(500_000);

/// What an experiment is asked for.
#[derive(Clone, Debug)]
pub struct FindSettings {
    /// What is searched.
    pub target: Target,
    /// What must hold.
    pub objective: Objective,
    /// The largest step up, as a part of the level: from [`MIN_STEP`] to [`MAX_STEP`]. Others take the
    /// nearest of both.
    pub step: Percent,
    /// How long things take.
    pub timing: Timing,
}

impl FindSettings {
    /// The largest step up, from 0.01 to 0.5.
    pub(super) fn step_part(&self) -> f64 {
        self.step.clamp(MIN_STEP, MAX_STEP).part()
    }
}

/// What is searched, and between which bounds. `from` is at most `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The rate of the origin.
    Rate {
        /// The first rate, and the lowest ever set.
        from: Rate,
        /// The highest ever set.
        to: Rate,
    },
    /// The requests at the origin at once, `max_in_flight`.
    Places {
        /// The first number, and the lowest ever set. At least 1.
        from: u32,
        /// The highest ever set.
        to: u32,
    },
}

/// How long the parts of an experiment take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// A step is not good before so long: 20 s; an hour at most.
    ///
    /// Trouble that comes less often than that (garbage collection, a cron job) is in no step.
    pub min_step: Duration,
    /// A step that is not decided after so long is decided by its figures: 60 s.
    pub max_step: Duration,
    /// How long the rate that was found must hold: 60 s; an hour at most.
    pub confirm: Duration,
    /// Ends the experiment if so long nobody waits at the gate: 60 s.
    pub idle: Duration,
    /// The origin must have recovered so long after a breach: 60 s.
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
