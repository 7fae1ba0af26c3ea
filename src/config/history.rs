//! History of changes of the effective settings and of overrides, for the API and the log.
//!
//! An override is a value that an operator sets through the API, in place of the configured one.
//! The texts of a change come from `changes`.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use limit::Moment;

use super::changes::limit_count;
use super::{FileKind, Words};

/// Maximum number of changes that are kept.
const MAX_CHANGES: usize = 50;

/// Maximum number of texts of one change.
const MAX_TEXTS: usize = 50;

/// Maximum number of texts of one change in a log line.
const MAX_TEXTS_IN_LOG: usize = 10;

/// Last changes of the effective settings and of overrides.
///
/// Clones share the same list.
#[derive(Clone, Debug, Default)]
pub struct History(Arc<Mutex<VecDeque<Change>>>);

/// One change of the effective settings or of overrides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Instant at which the change took effect.
    pub at: Moment,
    /// Cause of the change.
    pub by: ChangedBy,
    /// One text per changed setting.
    pub what: Vec<String>,
}

/// Cause of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangedBy {
    /// The configuration file was saved.
    File,
    /// A file named in the configuration was saved, created or removed.
    Named(FileKind),
    /// SIGHUP was received.
    Signal,
    /// The admin port received a request.
    Api,
    /// An override expired.
    Expiry,
}

impl ChangedBy {
    /// Returns the name of the cause in the API and the log.
    pub fn label(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Named(kind) => kind.word(),
            Self::Signal => "signal",
            Self::Api => "api",
            Self::Expiry => "expiry",
        }
    }
}

impl History {
    /// Adds a change. Removes the oldest one if there are too many.
    pub fn add(&self, at: Moment, by: ChangedBy, what: Vec<String>) {
        let what = limit_count(what, MAX_TEXTS);
        let mut changes = self.lock();
        // The newest change is the first one.
        changes.truncate(MAX_CHANGES - 1);
        changes.push_front(Change { at, by, what });
    }

    /// Returns the last changes, the newest first.
    pub fn latest(&self) -> Vec<Change> {
        self.lock().iter().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Change>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Joins the texts of a change for one log line. Of many texts, it gives the first ones.
pub fn in_one_line(what: Vec<String>) -> String {
    limit_count(what, MAX_TEXTS_IN_LOG).join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_fifty_are_kept_and_each_is_bounded() {
        let history = History::default();
        let shared = history.clone();
        for count in 0..60 {
            let texts = (0..count).map(|text| format!("a.b {text}")).collect();
            shared.add(Moment::from_nanos(count), ChangedBy::Api, texts);
        }
        let changes = history.latest();
        let times: Vec<u64> = changes.iter().map(|change| change.at.as_nanos()).collect();
        assert_eq!(times, (10..60).rev().collect::<Vec<_>>());
        let longest: Vec<usize> = changes.iter().map(|change| change.what.len()).collect();
        assert_eq!(longest.iter().max(), Some(&MAX_TEXTS));
        assert_eq!(changes[0].what[MAX_TEXTS - 1], "and 10 more");
        let fifty_texts = &changes[9].what;
        assert_eq!(fifty_texts[MAX_TEXTS - 1], "a.b 49", "all are kept");
    }
}
