use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// A line of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) file: usize,
    pub(super) line: usize,
}

/// Notes on what the user must check, each with its place.
#[derive(Debug, Default)]
pub(super) struct Notes {
    files: Vec<PathBuf>,
    notes: Vec<(Place, String)>,
}

/// Maximum length of a message, in characters. Longer messages are cut off.
const LONGEST: usize = 400;

impl Notes {
    /// Registers a file. Returns its number, which places refer to.
    pub(super) fn file(&mut self, path: &Path) -> usize {
        let known = self.files.iter().position(|known| known == path);
        known.unwrap_or_else(|| {
            self.files.push(path.to_owned());
            self.files.len() - 1
        })
    }

    pub(super) fn add(&mut self, place: Place, message: impl AsRef<str>) {
        let mut line = String::new();
        for c in message.as_ref().chars().take(LONGEST) {
            if c.is_control() {
                line.extend(c.escape_default());
            } else {
                line.push(c);
            }
        }
        self.notes.push((place, line));
    }

    /// The number of notes so far.
    pub(super) fn count(&self) -> usize {
        self.notes.len()
    }

    /// The notes after the first `count`, as comments for the settings they concern.
    pub(super) fn since(&self, count: usize) -> Vec<String> {
        let new = self.notes.get(count..).unwrap_or_default();
        let mut new = new.iter().collect::<Vec<_>>();
        new.sort();
        new.dedup();
        new.into_iter().map(|note| self.show(note)).collect()
    }

    /// All notes, ordered by place, without duplicates.
    pub(super) fn all(&self) -> Vec<String> {
        self.since(0)
    }

    /// A place as text: file name and line number.
    pub(super) fn name(&self, place: Place) -> String {
        let file = self.files.get(place.file);
        let mut name = String::new();
        for c in file
            .into_iter()
            .flat_map(|file| file.to_string_lossy().chars().collect::<Vec<_>>())
        {
            if c.is_control() {
                name.extend(c.escape_default());
            } else {
                name.push(c);
            }
        }
        // Writing to a string does not fail.
        let _ = write!(name, ":{}", place.line);
        name
    }

    fn show(&self, (place, message): &(Place, String)) -> String {
        format!("{}: {message}", self.name(*place))
    }
}
