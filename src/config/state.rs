use super::{LoadError, Problem};
use crate::limit::Moment;

/// How the file and the settings in force stand to each other.
#[derive(Clone, Debug)]
pub struct FileState {
    /// When the settings in force were read.
    pub loaded_at: Moment,
    /// How often a changed file has come into force.
    pub reloads: u64,
    /// What is wrong with the file as it stands; the settings in force are those before.
    pub broken: Option<Broken>,
}

/// What is wrong with the file.
#[derive(Clone, Debug)]
pub struct Broken {
    /// Since when it has been broken, whatever was wrong at first.
    pub since: Moment,
    /// In the order of their places; never empty.
    pub problems: Vec<Problem>,
}

impl FileState {
    /// The file was read when the process started.
    #[must_use]
    pub fn loaded(now: Moment) -> Self {
        Self {
            loaded_at: now,
            reloads: 0,
            broken: None,
        }
    }

    /// The changed file is in force.
    pub fn reloaded(&mut self, now: Moment) {
        *self = Self {
            loaded_at: now,
            reloads: self.reloads + 1,
            broken: None,
        };
    }

    /// The changed file is not taken.
    pub fn refused(&mut self, problems: Vec<Problem>, now: Moment) {
        let since = self.broken.as_ref().map_or(now, |broken| broken.since);
        self.broken = Some(Broken { since, problems });
    }
}

impl LoadError {
    /// What is wrong, each with its place: of a file that cannot be read, its beginning.
    #[must_use]
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
    /// Something that has no place in the file.
    #[must_use]
    pub fn of_file(message: String) -> Self {
        Self {
            line: 1,
            column: 1,
            message,
        }
    }
}
