//! Types of the JSON of headlines and warnings. A warning is a headline about a problem.

use serde::Serialize;

use super::finding::{Finding, Topic};
use crate::status::plain::Plain;

/// Body of `/api/headline`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Headlines {
    /// Present headline.
    pub headline: Headline,
    /// Last warnings, the newest first; the present headline is one of them if it is a warning.
    pub history: Vec<PastHeadline>,
}

/// The most important state now: its cause, its evidence, and the remedy.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Headline {
    /// The most urgent finding.
    #[serde(flatten)]
    pub finding: Finding,
    /// Rate that the remedy names, for the zone that the headline is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advised_rate: Option<Plain>,
    /// Titles of the other findings.
    pub also: Vec<Plain>,
    /// Begin of a warning, in Unix time in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<f64>,
    /// Warning that ended recently, if there is none now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<EndedHeadline>,
    /// Topics of all warnings of this second, also of this headline.
    #[serde(skip)]
    pub found: Vec<Topic>,
    /// Whether the headline is about a zone.
    #[serde(skip)]
    pub is_of_zone: bool,
}

/// Change of the file after which a warning began.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct After {
    /// Sentence that names the change.
    pub sentence: String,
    /// Whether reverting the change may help.
    pub is_suspect: bool,
    /// Instant at which the change came into force, in Unix time in seconds.
    pub at: f64,
    /// Changed fields, such as `zones.api.rate`.
    pub names: Vec<String>,
}

/// Warning that has ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct EndedHeadline {
    /// End, in Unix time in seconds.
    pub at: f64,
    /// Title, in the present tense.
    pub title: Plain,
}

/// Warning that was the headline, with its begin and end.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PastHeadline {
    /// Begin, in Unix time in seconds.
    pub since: f64,
    /// End; `None` while the warning lasts.
    pub until: Option<f64>,
    /// Number of requests, for the causes that docs/operate/headline.md names; else 0.
    pub count: u64,
    /// The headline at its worst.
    pub headline: Headline,
    /// Whether the warning can no longer resume.
    #[serde(skip)]
    pub has_ended: bool,
    /// Change of the file after which the warning began.
    #[serde(skip)]
    pub after: Option<After>,
}
