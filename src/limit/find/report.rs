use std::fmt;
use std::time::Duration;

use super::objective::Criterion;
use crate::Rate;

/// A rate, or a number of requests at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// A rate of an origin.
    Rate(Rate),
    /// A `max_in_flight` of an origin.
    Places(u32),
}

impl fmt::Display for Level {
    /// As the file has it: `212r/s`, or a number of places.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rate(rate) => rate.fmt(f),
            Self::Places(places) => places.fmt(f),
        }
    }
}

/// What the override of the origin must be now; `None` leaves the file's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Levels {
    /// The rate of the origin.
    pub rate: Option<Rate>,
    /// `max_in_flight` of the origin.
    pub places: Option<u32>,
}

/// Why a step is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Up from the level before.
    Climb,
    /// Down after a breach, until the origin is as before.
    Recover,
    /// The level that was found, for longer.
    Confirm,
}

/// What came out of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepVerdict {
    /// The objective held, and requests waited at the gate all the time for what is searched.
    Good,
    /// The objective did not hold.
    Broke,
    /// Too few requests waited at the gate to tell.
    Idle,
    /// The other limit held requests back: `max_in_flight` where the rate is searched, or the rate.
    HeldBack,
    /// The experiment ended before it was decided.
    Undecided,
}

/// What was measured for a condition.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// The condition.
    pub condition: Criterion,
    /// The figure; `None` without an answer.
    pub value: Option<Figure>,
}

impl Measured {
    /// Whether the figure is beyond the bound of its condition. One that is not known is not.
    pub fn is_beyond(&self) -> bool {
        match (self.condition, self.value) {
            (Criterion::Percentile { below, .. }, Some(Figure::Time(time))) => time >= below,
            (Criterion::Errors { below, .. }, Some(Figure::Share(share))) => {
                share * 1e6 >= f64::from(below.millionths())
            }
            _ => false,
        }
    }
}

/// A measured figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Figure {
    /// A percentile of the times of answers without errors, to 3 %.
    Time(Duration),
    /// A part of all answers, from 0 to 1.
    Share(f64),
}

/// One step of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct StepRecord {
    /// The level that was set.
    pub level: Level,
    /// Why.
    pub purpose: Purpose,
    /// What came out of it.
    pub verdict: StepVerdict,
    /// The condition that broke, as written: `p95<400ms`.
    pub broken: Option<String>,
    /// Whether no answer came any more, though requests were at the origin.
    pub hung: bool,
    /// In the order of the objective's conditions.
    pub figures: Vec<Measured>,
    /// How long requests waited at the gate on average; `None` if none was observed.
    pub waited: Option<Duration>,
    /// Most requests at the origin at once.
    pub at_once: u32,
    /// Answers that were counted.
    pub answers: u64,
    /// How long the level was set.
    pub took: Duration,
    /// The level that follows a breach at once.
    pub back_to: Option<Level>,
}

/// The level that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The highest level that held, confirmed.
    pub level: Level,
    /// The lower end of where the origin's end is.
    pub low: Level,
    /// The upper end of where the origin's end is.
    pub high: Level,
    /// Most requests at the origin at once while it was confirmed.
    pub at_once: u32,
    /// Most requests at the origin at once in a step that broke; `None` if no step broke.
    pub at_edge: Option<u32>,
    /// Whether the upper bound of the search held: the origin may take more.
    pub is_upper_bound: bool,
}

/// Why an experiment ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AbortReason {
    /// The configuration file changed.
    FileChanged,
    /// A server came, went, or changed its health.
    ServersChanged,
    /// Back-off cut the rate, the places, or paused.
    BackedOff,
    /// The objective did not hold at the first level.
    BrokenAtFirst,
    /// The origin did not recover after a breach.
    NotRecovered,
    /// The owner stopped renewing: its terminal or connection is gone.
    OwnerLost,
    /// The owner stopped it.
    Stopped,
    /// Too many steps: the origin changes while it is measured.
    Unsteady,
    /// The override of the experiment was undone, or expired.
    Undone,
    /// Somebody else overrides the origin.
    Overridden,
}

/// A level that was not passed, because the other limit held requests back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldBack {
    /// The highest level that was really reached.
    pub level: Level,
    /// The other limit, if its value is known.
    pub by: Option<Level>,
}

/// How the search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The level was found.
    Found(Found),
    /// The origin takes at least so much: nobody asked for more.
    AtLeast(Level),
    /// The origin takes at least so much: the other limit held requests back.
    HeldBack(HeldBack),
    /// Too few requests came at the lowest level to know anything.
    Unknown(Level),
    /// Ended early; the highest level that held before, if any.
    Aborted(AbortReason, Option<Level>),
}

/// What an experiment found.
#[derive(Clone, Debug, PartialEq)]
pub struct FindReport {
    /// How it ended; `None` while it runs.
    pub outcome: Option<Outcome>,
    /// All steps, in their order.
    pub steps: Vec<StepRecord>,
    /// Requests that were sent to the origin meanwhile.
    pub requests: u64,
    /// How long it took.
    pub took: Duration,
}
