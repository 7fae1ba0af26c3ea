//! Results of an experiment, which finds the highest level at which an origin keeps an objective.
//!
//! A *level* is a rate, or a number of permits (concurrent requests). A *step* tries one level. A
//! *breach* is a step at which the objective did not hold. The *other limit* is the one of rate and
//! permits that is not searched.

use std::fmt;
use std::time::Duration;

use super::objective::Criterion;
use crate::Rate;

/// Level of an origin: a rate, or a number of concurrent requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Rate of an origin.
    Rate(Rate),
    /// `max_in_flight` of an origin.
    Permits(u32),
}

impl Level {
    /// Returns the level as a number: requests per second, or concurrent requests.
    pub(super) fn number(self) -> f64 {
        match self {
            Self::Rate(rate) => rate.per_second(),
            Self::Permits(permits) => permits.into(),
        }
    }
}

impl fmt::Display for Level {
    /// Formats the level as in the file: `212r/s`, or a number of permits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rate(rate) => rate.fmt(f),
            Self::Permits(permits) => permits.fmt(f),
        }
    }
}

/// Values to which the origin must be set; `None` leaves the configured value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Levels {
    /// Rate of the origin.
    pub rate: Option<Rate>,
    /// `max_in_flight` of the origin.
    pub permits: Option<u32>,
}

/// Purpose of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Raise the level.
    Climb,
    /// Lower the level after a breach, until the origin has recovered.
    Recover,
    /// Try the found level for longer.
    Confirm,
}

/// Verdict on a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepVerdict {
    /// The objective held, and requests waited at the gate all the time for the searched limit.
    Good,
    /// The objective did not hold.
    Broke,
    /// Too few requests waited at the gate to decide.
    Idle,
    /// The other limit held requests back: `max_in_flight` where the rate is searched, or the rate.
    HeldBack,
    /// The experiment ended before the step was decided.
    Undecided,
}

/// Condition of the objective, such as `p95<400ms`, with its measured figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// Condition.
    pub condition: Criterion,
    /// Measured figure; `None` without a response.
    pub value: Option<Figure>,
}

impl Measured {
    /// Returns whether the figure exceeds the bound of its condition. An unknown figure does not.
    pub fn is_beyond(&self) -> bool {
        match (self.condition, self.value) {
            (Criterion::Percentile { below, .. }, Some(Figure::Time(time))) => time >= below,
            (Criterion::Errors { below, .. }, Some(Figure::Share(share))) => {
                // In millionths, which are exact.
                share * 1e6 >= f64::from(below.millionths())
            }
            _ => false,
        }
    }
}

/// Value of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Figure {
    /// Percentile of the durations of responses without errors, within 3 %.
    Time(Duration),
    /// Share of all responses, from 0 to 1.
    Share(f64),
}

/// One step of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct StepRecord {
    /// Level that was set.
    pub level: Level,
    /// Purpose of the step.
    pub purpose: Purpose,
    /// Verdict on the step.
    pub verdict: StepVerdict,
    /// Condition that broke, as written: `p95<400ms`.
    pub broken: Option<String>,
    /// Whether responses stopped while requests were in flight.
    pub hung: bool,
    /// Figures, in the order of the objective's conditions.
    pub figures: Vec<Measured>,
    /// Mean duration that requests waited at the gate; `None` if none was observed.
    pub waited: Option<Duration>,
    /// Largest number of concurrent requests at the origin.
    pub at_once: u32,
    /// Number of counted responses.
    pub answers: u64,
    /// Duration for which the level was set.
    pub took: Duration,
    /// Level that is set after this step, if the step was a breach.
    pub back_to: Option<Level>,
}

/// Result of a search that succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Highest level that held, confirmed.
    pub level: Level,
    /// Lower end of the range that contains the origin's capacity.
    pub low: Level,
    /// Upper end of the range that contains the origin's capacity.
    pub high: Level,
    /// Largest number of concurrent requests at the origin during confirmation.
    pub at_once: u32,
    /// Largest number of concurrent requests in a step that broke; `None` if no step broke.
    pub at_edge: Option<u32>,
    /// Whether the upper bound of the search held: the capacity may be higher.
    pub is_upper_bound: bool,
}

/// Reason why an experiment ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AbortReason {
    /// The configuration file changed.
    FileChanged,
    /// A server was added, removed, or changed its health.
    ServersChanged,
    /// Backoff lowered the rate or the permits, or paused the gate.
    BackedOff,
    /// The objective did not hold at the first level.
    BrokenAtFirst,
    /// The origin did not recover after a breach.
    NotRecovered,
    /// The owner stopped renewing: its terminal or connection is closed.
    OwnerLost,
    /// The owner stopped the experiment.
    Stopped,
    /// There were too many steps: the origin changes while it is measured.
    Unsteady,
    /// The override of the experiment was removed, or expired.
    Undone,
    /// Somebody else overrides the origin.
    Overridden,
}

/// Level beyond which the other limit held requests back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldBack {
    /// Highest level that was actually reached.
    pub level: Level,
    /// The other limit, if its value is known.
    pub by: Option<Level>,
}

/// Outcome of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The level was found.
    Found(Found),
    /// The capacity is at least this: there was no demand for more.
    AtLeast(Level),
    /// The capacity is at least this: the other limit held requests back.
    HeldBack(HeldBack),
    /// Too few requests came at the lowest level to know anything.
    Unknown(Level),
    /// The search ended early. The highest level that held before, if any.
    Aborted(AbortReason, Option<Level>),
}

/// Report of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct FindReport {
    /// Outcome; `None` while the experiment runs.
    pub outcome: Option<Outcome>,
    /// All steps, in order.
    pub steps: Vec<StepRecord>,
    /// Requests that were sent to the origin meanwhile.
    pub requests: u64,
    /// Duration of the experiment.
    pub took: Duration,
}
