//! State of the configuration file: its last change, and the problems of a file that is broken.
//!
//! A broken file is one that has problems: the gateway keeps the settings of the file before it.
//! `history` has all recent changes.

use limit::Moment;

use super::Problem;
use super::changes::{LostKeys, NEEDS_RESTART, limit_count};

/// Maximum number of texts that are kept of the last change.
const MAX_TEXTS: usize = 3;

/// State of the file compared with the effective settings.
#[derive(Clone, Debug, Default)]
pub struct FileState {
    /// Instant at which the effective settings were read.
    pub loaded_at: Moment,
    /// Number of reloads of a changed file.
    pub reloads: u64,
    /// Number of reloads that changed a setting.
    pub changes: u64,
    /// Problems of the current file. Until they are fixed, the previous settings stay in effect.
    pub broken: Option<BrokenFile>,
    /// Last reload that changed an effective setting.
    pub last_change: Option<LastChange>,
    /// Names of the settings that take effect only after a restart.
    pub needs_restart: Vec<String>,
}

/// A reload that changed effective settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastChange {
    /// Instant at which the new settings took effect.
    pub at: Moment,
    /// One text per changed setting. Only the first ones are kept.
    pub what: Vec<String>,
    /// Plans that lost at least half of their keys.
    pub lost_keys: Vec<LostKeys>,
}

impl LastChange {
    /// Returns the change that took effect; `None` if each text of `what` needs a restart.
    ///
    /// `what`: texts of [`changes`](crate::changes()). `at`: instant of the reload.
    pub fn of(what: &[String], lost_keys: Vec<LostKeys>, at: Moment) -> Option<Self> {
        let effective = what.iter().filter(|text| !text.ends_with(NEEDS_RESTART));
        let effective: Vec<_> = effective.cloned().collect();
        (!effective.is_empty()).then(|| Self {
            at,
            what: limit_count(effective, MAX_TEXTS),
            lost_keys,
        })
    }
}

/// The problems of a file that cannot be used.
#[derive(Clone, Debug)]
pub struct BrokenFile {
    /// Instant since which the file has been broken. Its text may have changed meanwhile.
    pub since: Moment,
    /// Problems sorted by location; never empty.
    pub problems: Vec<Problem>,
}

impl FileState {
    /// Returns the state after the file was read at process start.
    pub fn at_start(now: Moment) -> Self {
        Self {
            loaded_at: now,
            ..Self::default()
        }
    }

    /// Records that a changed file has taken effect.
    ///
    /// `is_change`: whether a setting changed. `change`: the change that took effect; `None` keeps
    /// the previous one.
    pub fn record_reload(
        &mut self,
        is_change: bool,
        change: Option<LastChange>,
        needs_restart: Vec<String>,
        now: Moment,
    ) {
        *self = Self {
            loaded_at: now,
            reloads: self.reloads + 1,
            changes: self.changes + u64::from(is_change),
            broken: None,
            last_change: change.or_else(|| self.last_change.take()),
            needs_restart,
        };
    }

    /// Records that a changed file was rejected because of these problems.
    pub fn record_refusal(&mut self, problems: Vec<Problem>, now: Moment) {
        let since = self.broken.as_ref().map_or(now, |broken| broken.since);
        self.broken = Some(BrokenFile { since, problems });
    }
}
