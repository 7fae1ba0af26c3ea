use serde::Serialize;

use super::Plain;

/// `/api/headline`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Headlines {
    pub headline: Headline,
    /// The last warnings, the newest first; the present headline is among them if it is one.
    pub history: Vec<PastHeadline>,
}

/// What matters most now: its cause, what shows it, and what helps.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Headline {
    /// Such as `store_out` or `rejecting`; docs/operations.md lists them.
    pub cause: Plain,
    /// `bad`, `warn`, `fine` or `none`.
    pub severity: Plain,
    /// The zone or origin that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<Plain>,
    pub title: Plain,
    pub evidence: Plain,
    pub remedy: Plain,
    /// The rate that the remedy names, for the zone that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advised_rate: Option<Plain>,
    /// The titles of the other findings.
    pub also: Vec<Plain>,
    /// When it began, in Unix time in seconds, if it is a warning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<f64>,
    /// The warning before it, while there is none and it has ended lately.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<EndedHeadline>,
    /// How bad it is, among headlines with the same cause.
    #[serde(skip)]
    pub weight: f64,
    /// What all warnings of this second are about, with its own.
    #[serde(skip)]
    pub found: Vec<Topic>,
    /// How many requests of the last second it is about.
    #[serde(skip)]
    pub count: u64,
    /// What a change of the file just before it means.
    #[serde(skip)]
    pub suspicion: Suspicion,
    /// Whether it is about a zone.
    #[serde(skip)]
    pub is_of_zone: bool,
}

/// What a change of the file just before a warning means for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Suspicion {
    /// The change is not shown: the warning is about an override, or about the file itself.
    Unnamed,
    /// The change is shown as evidence only.
    #[default]
    Named,
    /// The remedy begins with taking the change back.
    Suspected,
    /// The remedy is to take the change back; the finding's own remedy is left out.
    SuspectedAlone,
}

/// The change of the file after which a warning began.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct After {
    /// The sentence that names it.
    pub sentence: Plain,
    /// Whether to take it back may help.
    pub is_suspect: bool,
    /// When it came into force, in Unix time in seconds.
    pub at: f64,
    /// The fields that it changed, such as `zones.api.rate`.
    pub names: Vec<String>,
}

impl Headline {
    /// Whether it is worth a warning.
    pub fn is_warning(&self) -> bool {
        ["warn", "bad"].contains(&self.severity.as_str())
    }

    /// Whether its severity is `bad`.
    pub fn is_bad(&self) -> bool {
        self.severity.as_str() == "bad"
    }
}

/// What a warning is about. Two warnings with the same topic are the same one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topic {
    pub cause: Plain,
    /// The zone or origin.
    pub about: Option<Plain>,
}

/// A warning that is over.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct EndedHeadline {
    /// When it ended, in Unix time in seconds.
    pub at: f64,
    /// Its title, in the present tense.
    pub title: Plain,
}

/// A warning that was the headline, and how long it lasted.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PastHeadline {
    /// When it began, in Unix time in seconds.
    pub since: f64,
    /// When it ended; `None` while it lasts.
    pub until: Option<f64>,
    /// How many requests it was about, for the causes that docs/operations.md names; else 0.
    pub count: u64,
    /// As it was at its worst.
    pub headline: Headline,
    /// Whether it can no longer come back.
    #[serde(skip)]
    pub has_ended: bool,
    /// The change of the file after which it began.
    #[serde(skip)]
    pub after: Option<After>,
}
