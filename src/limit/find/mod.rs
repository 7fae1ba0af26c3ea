//! Experiment that finds the capacity of an origin: its levels, its test, its result.
//!
//! A gate has a queue, so a higher rate can be tried on real traffic and lowered at once. An
//! [`Experiment`] raises a level (a rate, or a number of concurrent requests) from a lower to an
//! upper bound while an [`Objective`] holds, and finds the highest level that keeps it.
//! - A step counts only while requests wait at the gate, and wait for the limit that is searched.
//!   Otherwise it measures the demand or the other limit, not the origin.
//! - A step ends when a sequential test has decided on each condition of the objective.
//! - After a breach the level falls at once to one step below the last good level.
//! - A level is decided only by responses to requests that were sent at it.
//!
//! Files: `experiment` is the entry point, `search` chooses levels, `trial` tries one level with
//! `blocks`, `evidence` (the test) and `measurements`. `report` has the results.
//!
//! docs/understand/find.md explains the test, and docs/operate/find.md its limits.

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
