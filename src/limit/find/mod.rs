//! The experiment that finds what an origin can take: which level is tried, when, and what it shows.
//!
//! A gate holds a queue, so a higher rate can be tried on real traffic and taken back at once. An
//! [`Experiment`] raises a level (a rate, or the requests at once) from a lower to an upper bound while
//! an [`Objective`] holds, and finds the highest one that keeps it.
//!
//! - A step counts only while requests wait at the gate, and wait for what is searched: else the
//!   demand or the other limit is measured, not the origin.
//! - A step ends when a sequential test has decided, for each condition of the objective.
//! - After a breach the level is at once one step below the last good one.
//! - Only answers to requests that were sent at a level count for it.
//!
//! The pages of the documentation say which test it is, and what it cannot see (docs/find.md).

mod answer;
mod blocks;
mod evidence;
mod experiment;
mod measurements;
mod objective;
mod observed;
mod report;
mod scale;
mod search;
mod settings;
mod silence;
mod times;
mod trial;

pub use answer::{AnswerEvent, Part};
pub use experiment::Experiment;
pub use objective::{Criterion, ErrorKind, MAX_CONDITIONS, Objective, ObjectiveError};
pub use observed::{Observed, Waited};
pub use report::{
    AbortReason, Figure, FindReport, Found, HeldBack, Level, Levels, Measured, Outcome, Purpose,
    StepRecord, StepVerdict,
};
pub use settings::{FindSettings, MAX_STEP, MIN_STEP, Target, Timing};
