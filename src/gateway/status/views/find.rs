use serde::{Deserialize, Serialize};

use super::Plain;

/// An experiment that finds what an origin can take.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Find {
    /// Its number, below 2^53. No other start of the gateway has given it.
    pub id: u64,
    /// The name of the origin.
    pub origin: Plain,
    /// The objective.
    pub slo: Plain,
    /// `running` or `ended`.
    pub state: Plain,
    /// Who started it: the name of a token, or the address of the admin port's client.
    pub by: Plain,
    /// When it began; in UTC.
    pub began: Plain,
    /// How long it has taken, in seconds.
    pub took: f64,
    /// Requests that were sent to the origin meanwhile.
    pub requests: u64,
    /// What it does now; `None` once it has ended.
    pub current: Option<FindLevel>,
    /// What it has tried, in order.
    pub steps: Vec<FindStep>,
    /// What was found; `None` while it runs.
    pub result: Option<FindOutcome>,
    /// The result as lines of the file, with comments; empty while it runs.
    pub lines: Vec<Plain>,
}

/// A level that is set, and why.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FindLevel {
    /// As the file has it: `212r/s`, or a number of places.
    pub level: Plain,
    /// `rate` or `places`.
    pub find: Plain,
    /// The level in requests a second, or at once.
    pub value: f64,
    /// `climb`, `recover` or `confirm`.
    pub purpose: Plain,
}

/// A step of an experiment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FindStep {
    #[serde(flatten)]
    pub at: FindLevel,
    /// `ok`, `broke`, `idle` or `undecided`.
    pub verdict: Plain,
    pub figures: Vec<FindFigure>,
    /// How long requests waited at the gate on average, in seconds.
    pub waited: Option<f64>,
    /// Most requests at the origin at once.
    pub at_once: u64,
    pub answers: u64,
    /// In seconds.
    pub took: f64,
    /// The level that followed a breach at once.
    pub back_to: Option<Plain>,
    /// All of it as a line of text.
    pub line: Plain,
}

/// What was measured for a condition of the objective.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FindFigure {
    /// Such as `p95` or `errors`.
    pub name: Plain,
    /// `seconds`, or `share`: a part from 0 to 1.
    pub unit: Plain,
    /// `None` if there was no answer.
    pub value: Option<f64>,
    /// The objective wants less than this.
    pub below: f64,
}

/// How the search ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FindOutcome {
    /// `found`, `at_least`, `unknown` or `aborted`.
    pub outcome: Plain,
    /// The level that was found, that the origin takes at least, for which nobody asked, or that held
    /// before the end.
    pub level: Option<Plain>,
    /// The origin's end lies between these.
    pub low: Option<Plain>,
    pub high: Option<Plain>,
    /// Most requests at the origin at once, there and where it broke.
    pub at_once: Option<u64>,
    pub at_edge: Option<u64>,
    /// Why it ended early, or which other limit held requests back.
    pub reason: Option<Plain>,
}
