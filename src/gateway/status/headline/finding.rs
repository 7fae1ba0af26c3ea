//! Findings of the headline's rules: cause, severity, evidence, remedy, and their order.

use super::sample::{Headline, Suspicion, Topic};
use crate::status::plain::Plain;

/// Defines the causes with their names in the API.
macro_rules! causes {
    ($($cause:ident = $label:literal,)*) => {
        /// Cause of a headline, the most urgent first.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum Cause {
            $($cause,)*
        }

        impl Cause {
            #[cfg(test)]
            pub(crate) const ALL: &[Self] = &[$(Self::$cause,)*];

            pub(crate) fn label(self) -> &'static str {
                match self {
                    $(Self::$cause => $label,)*
                }
            }
        }
    };
}

causes! {
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
    Idle = "idle",
}

/// Severity of a headline, the lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Severity {
    None,
    Fine,
    Warn,
    Bad,
}

impl Severity {
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Fine => "fine",
            Self::Warn => "warn",
            Self::Bad => "bad",
        }
    }

    /// Returns `Bad` if `bad`, else `Warn`.
    pub(crate) fn bad_if(bad: bool) -> Self {
        if bad { Self::Bad } else { Self::Warn }
    }
}

/// Result of one rule.
pub(crate) struct Finding {
    /// Cause, which decides the order.
    pub(crate) cause: Cause,
    /// Severity.
    pub(crate) severity: Severity,
    /// Order among findings with the same cause and severity: the largest comes first.
    pub(crate) weight: f64,
    /// Zone or origin that the finding is about.
    pub(crate) about: Option<Plain>,
    /// Title, in one sentence.
    pub(crate) title: String,
    /// Facts that show the cause.
    pub(crate) evidence: String,
    /// Advice to the operator.
    pub(crate) remedy: String,
    /// Relation to a change of the file just before it.
    pub(crate) suspicion: Suspicion,
    /// Number of requests of the last second that the finding is about, where these are counted.
    pub(crate) count: u64,
}

impl Finding {
    /// Creates a finding without texts.
    pub(crate) fn new(cause: Cause, severity: Severity) -> Self {
        Self {
            cause,
            severity,
            weight: 0.0,
            about: None,
            title: String::new(),
            evidence: String::new(),
            remedy: String::new(),
            suspicion: Suspicion::Named,
            count: 0,
        }
    }

    /// Creates a finding about a zone or an origin, without texts.
    pub(crate) fn about(name: &Plain, cause: Cause, severity: Severity) -> Self {
        Self {
            about: Some(name.clone()),
            ..Self::new(cause, severity)
        }
    }

    /// Topic of the finding, if it is worth a warning.
    pub(crate) fn topic(&self) -> Option<Topic> {
        (self.severity >= Severity::Warn).then(|| Topic {
            cause: self.cause.label().into(),
            about: self.about.clone(),
        })
    }

    /// Rank of the finding in the order of causes.
    ///
    /// A certificate that is only worth a warning can wait: it comes just before the file.
    fn rank(&self) -> (Cause, bool) {
        match (self.cause, self.severity) {
            (Cause::Certificate, Severity::Warn) => (Cause::FileError, false),
            (cause, _) => (cause, true),
        }
    }

    /// Converts the finding to a headline. `also`: titles of the other findings.
    pub(crate) fn into_headline(self, also: Vec<Plain>) -> Headline {
        Headline {
            cause: self.cause.label().into(),
            severity: self.severity.label().into(),
            about: self.about,
            title: Plain::new(&self.title),
            evidence: Plain::new(&self.evidence),
            remedy: Plain::new(&self.remedy),
            advised_rate: None,
            also,
            since: None,
            ended: None,
            weight: f64::from(self.severity as u8) * 1e12 + self.weight,
            found: Vec::new(),
            count: self.count,
            suspicion: self.suspicion,
            is_of_zone: false,
        }
    }
}

/// Sorts findings: the most urgent first.
pub(crate) fn in_order(found: &mut [Finding]) {
    found.sort_by(|a, b| {
        // Findings that are no warnings come last, whatever their cause.
        let is_fine = |it: &Finding| it.severity < Severity::Warn;
        let urgent = is_fine(a).cmp(&is_fine(b)).then(a.rank().cmp(&b.rank()));
        let urgent = urgent.then(b.severity.cmp(&a.severity));
        urgent.then(b.weight.total_cmp(&a.weight))
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_is_documented_in_its_order() {
        let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operations.md");
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
        assert!(Cause::ALL.len() <= 24);
    }
}
