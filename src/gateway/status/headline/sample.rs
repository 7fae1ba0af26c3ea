//! Types of the JSON of headlines and warnings.

use serde::Serialize;

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
    /// Cause, such as `store_out` or `rejecting`; docs/operations.md lists all causes.
    pub cause: Plain,
    /// Severity: `bad`, `warn`, `fine` or `none`.
    pub severity: Plain,
    /// Zone or origin that the headline is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<Plain>,
    /// Title, in one sentence.
    pub title: Plain,
    /// Facts that show the cause.
    pub evidence: Plain,
    /// Advice to the operator.
    pub remedy: Plain,
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
    /// Order among headlines with the same cause: the largest comes first.
    #[serde(skip)]
    pub weight: f64,
    /// Topics of all warnings of this second, its own included.
    #[serde(skip)]
    pub found: Vec<Topic>,
    /// Number of requests of the last second that the headline is about.
    #[serde(skip)]
    pub count: u64,
    /// Relation to a change of the file just before it.
    #[serde(skip)]
    pub suspicion: Suspicion,
    /// Whether the headline is about a zone.
    #[serde(skip)]
    pub is_of_zone: bool,
}

/// Relation of a warning to a change of the file just before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Suspicion {
    /// The change is not shown: the warning is about an override, or about the file itself.
    Unnamed,
    /// The change is shown as evidence only.
    #[default]
    Named,
    /// The remedy begins with reverting the change.
    Suspected,
    /// The remedy is to revert the change; the finding's own remedy is left out.
    SuspectedAlone,
}

/// Change of the file after which a warning began.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct After {
    /// Sentence that names the change.
    pub sentence: Plain,
    /// Whether reverting the change may help.
    pub is_suspect: bool,
    /// Instant at which the change came into force, in Unix time in seconds.
    pub at: f64,
    /// Changed fields, such as `zones.api.rate`.
    pub names: Vec<String>,
}

impl Headline {
    /// Returns whether the severity is that of a warning.
    pub fn is_warning(&self) -> bool {
        ["warn", "bad"].contains(&self.severity.as_str())
    }

    /// Returns whether the severity is `bad`.
    pub fn is_bad(&self) -> bool {
        self.severity.as_str() == "bad"
    }
}

/// Topic of a warning. Two warnings with the same topic are the same one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topic {
    /// Cause, as in [`Headline`].
    pub cause: Plain,
    /// Zone or origin.
    pub about: Option<Plain>,
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
    /// Number of requests, for the causes that docs/operations.md names; else 0.
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
