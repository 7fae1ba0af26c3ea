use limit::Moment;

use super::changes::{LostKeys, NEEDS_RESTART, bounded};
use super::{LoadError, Problem};

/// Number of texts of the last change that are kept.
const TEXTS: usize = 3;

/// State of the file compared with the settings in force.
#[derive(Clone, Debug)]
pub struct FileState {
    /// When the settings in force were read.
    pub loaded_at: Moment,
    /// How often a changed file has come into force.
    pub reloads: u64,
    /// How many of them changed a setting.
    pub changes: u64,
    /// The problems of the current file; the settings in force are then the previous ones.
    pub broken: Option<Broken>,
    /// The last reload that changed a setting in force.
    pub last_change: Option<LastChange>,
    /// Names of the settings that take effect only after a restart.
    pub needs_restart: Vec<String>,
}

/// A reload that changed settings in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastChange {
    /// When they came into force.
    pub at: Moment,
    /// One text for each of the first settings.
    pub what: Vec<String>,
    /// Plans that lost at least half of their keys.
    pub lost_keys: Vec<LostKeys>,
}

impl LastChange {
    /// The change that these texts describe. `None` if it waits for a restart.
    pub fn of(what: &[String], lost_keys: Vec<LostKeys>, at: Moment) -> Option<Self> {
        let in_force = what.iter().filter(|text| !text.ends_with(NEEDS_RESTART));
        let in_force: Vec<_> = in_force.cloned().collect();
        (!in_force.is_empty()).then(|| Self {
            at,
            what: bounded(in_force, TEXTS),
            lost_keys,
        })
    }
}

/// The problems of a file that cannot be used.
#[derive(Clone, Debug)]
pub struct Broken {
    /// Since when the file has had problems, even if they were different ones at first.
    pub since: Moment,
    /// Sorted by place; never empty.
    pub problems: Vec<Problem>,
}

impl FileState {
    /// The state after the file was read at the start of the process.
    pub fn loaded(now: Moment) -> Self {
        Self {
            loaded_at: now,
            reloads: 0,
            changes: 0,
            broken: None,
            last_change: None,
            needs_restart: Vec::new(),
        }
    }

    /// Records that the file that was read anew is in force, and whether a setting changed.
    ///
    /// `change`: what it changed in force. `None` leaves the change before it.
    pub fn reloaded(
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

    /// Records that the changed file was refused.
    pub fn refused(&mut self, problems: Vec<Problem>, now: Moment) {
        let since = self.broken.as_ref().map_or(now, |broken| broken.since);
        self.broken = Some(Broken { since, problems });
    }
}

impl LoadError {
    /// The problems with their places. That a file cannot be read has none.
    pub fn problems(&self) -> Vec<Problem> {
        match self {
            Self::Wrong(wrong) => wrong.problems.clone(),
            Self::Read { source, .. } => {
                vec![Problem::of_file(format!("cannot be read: {source}"))]
            }
        }
    }
}

impl Problem {
    /// A problem that has no place in the file.
    pub fn of_file(message: String) -> Self {
        Self {
            file: None,
            line: 0,
            column: 0,
            message,
        }
    }
}
