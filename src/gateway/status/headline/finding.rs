//! Findings of the headline's rules: cause, severity, evidence, remedy, and their order.
//!
//! Each rule looks at the samples of the last seconds. The most urgent finding is the headline.

use std::cmp::Ordering;

use serde::{Serialize, Serializer};

use crate::observe::metrics::labels;
use crate::status::plain::Plain;

labels! {
    /// Cause of a headline, the most urgent first. docs/operate/headline.md describes each.
    #[derive(Default, PartialOrd, Ord, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Cause {
        ConnectionsFull = "connections_full",
        Certificate = "certificate",
        StoreOut = "store_out",
        StoreRefuses = "store_refuses",
        RoomStuck = "room_stuck",
        OriginFailing = "origin_failing",
        OriginHangs = "origin_hangs",
        OriginErrors = "origin_errors",
        ServerOut = "server_out",
        Paused = "paused",
        BackingOff = "backing_off",
        KeyFlood = "key_flood",
        Leaving = "leaving",
        UntrustedProxy = "untrusted_proxy",
        Rejecting = "rejecting",
        RoomWaits = "room_waits",
        NoKey = "no_key",
        LogLost = "log_lost",
        FileError = "file_error",
        FileDoubtful = "file_doubtful",
        Waiting = "waiting",
        Overridden = "overridden",
        Fine = "fine",
        #[default]
        Idle = "idle",
    }
}

labels! {
    /// Severity of a headline, the lowest first.
    #[derive(Default, PartialOrd, Ord, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Severity {
        /// The gateway has nothing to do.
        #[default]
        None = "none",
        /// Nothing is wrong.
        Fine = "fine",
        /// An operator should look at it.
        Warn = "warn",
        /// Clients suffer now.
        Bad = "bad",
    }
}

impl Severity {
    /// Returns `Bad` if `bad` (clients suffer), else `Warn`.
    pub(crate) fn bad_if(bad: bool) -> Self {
        if bad { Self::Bad } else { Self::Warn }
    }
}

/// Result of one rule. The most urgent one is the headline.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Finding {
    /// Cause, which decides the order.
    pub cause: Cause,
    /// Severity.
    pub severity: Severity,
    /// Zone or origin that the finding is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<Plain>,
    /// Title, in one sentence.
    #[serde(serialize_with = "as_plain")]
    pub title: String,
    /// Facts that show the cause.
    #[serde(serialize_with = "as_plain")]
    pub evidence: String,
    /// Advice to the operator.
    #[serde(serialize_with = "as_plain")]
    pub remedy: String,
    /// Order among findings with the same cause and severity: the largest comes first.
    #[serde(skip)]
    pub weight: f64,
    /// Relation to a change of the file just before it.
    #[serde(skip)]
    pub suspicion: Suspicion,
    /// Number of requests of the last second that the finding is about, where these are counted.
    #[serde(skip)]
    pub count: u64,
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

/// Topic of a warning. Two warnings with the same topic are the same one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topic {
    /// Cause.
    pub cause: Cause,
    /// Zone or origin.
    pub about: Option<Plain>,
}

/// Writes a text with unprintable characters escaped.
fn as_plain<S: Serializer>(text: &str, to: S) -> Result<S::Ok, S::Error> {
    Plain::new(text).serialize(to)
}

impl Finding {
    /// Creates a finding without texts.
    pub(crate) fn new(cause: Cause, severity: Severity) -> Self {
        Self {
            cause,
            severity,
            ..Self::default()
        }
    }

    /// Creates a finding about a zone or an origin, without texts.
    pub(crate) fn about(name: &Plain, cause: Cause, severity: Severity) -> Self {
        Self {
            about: Some(name.clone()),
            ..Self::new(cause, severity)
        }
    }

    /// Returns whether the finding is worth a warning.
    pub fn is_warning(&self) -> bool {
        self.severity >= Severity::Warn
    }

    /// Topic of the finding. While the topic of a headline stays the same, it is the same warning.
    pub(crate) fn topic(&self) -> Topic {
        Topic {
            cause: self.cause,
            about: self.about.clone(),
        }
    }

    /// Compares severity, then weight.
    pub(super) fn cmp_gravity(&self, other: &Self) -> Ordering {
        let by_severity = self.severity.cmp(&other.severity);
        by_severity.then(self.weight.total_cmp(&other.weight))
    }

    /// Returns the rank of the finding in the order of causes: the lower one is more urgent.
    ///
    /// A certificate that is only worth a warning can wait: it comes just before `FileError`.
    /// `false` comes before `true`.
    fn rank(&self) -> (Cause, bool) {
        match (self.cause, self.severity) {
            (Cause::Certificate, Severity::Warn) => (Cause::FileError, false),
            (cause, _) => (cause, true),
        }
    }
}

/// Sorts findings: the most urgent first.
pub(crate) fn in_order(found: &mut [Finding]) {
    found.sort_by(|a, b| {
        // Findings that are no warnings come last, whatever their cause.
        let warnings_first = b.is_warning().cmp(&a.is_warning());
        let by_rank = warnings_first.then(a.rank().cmp(&b.rank()));
        by_rank.then(b.cmp_gravity(a))
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_is_documented_in_its_order() {
        let docs = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../docs/operate/headline.md"
        );
        let docs = std::fs::read_to_string(docs).unwrap();
        let table = docs.split("| cause | when |").nth(1).unwrap();
        let rows: Vec<_> = table
            .lines()
            .filter_map(|it| it.split('|').nth(1))
            .collect();
        let row = |cause: &Cause| {
            let name = format!("`{}`", cause.label());
            let row = rows.iter().position(|row| row.contains(&name));
            row.unwrap_or_else(|| panic!("{name} is missing"))
        };
        assert!(Cause::ALL.is_sorted_by_key(row));
        // The table must stay short enough to be read.
        assert!(Cause::ALL.len() <= 24);
    }
}
