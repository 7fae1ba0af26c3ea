//! Collects notes for the user about lines of the imported files.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use config::put_printable;

/// A line of an imported file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SourceLocation {
    pub(super) file: usize,
    pub(super) line: usize,
}

impl SourceLocation {
    /// The first line of the main file.
    pub(super) const START: Self = Self { file: 0, line: 1 };
}

/// Notes on what the user must check, each with its source location.
#[derive(Debug, Default)]
pub(super) struct Notes {
    files: Vec<PathBuf>,
    all: Vec<Note>,
    /// Number of notes that were dropped because there were too many.
    left_out: usize,
    /// Source locations of lost limits. A limit that would apply several times counts each time.
    lost: Vec<SourceLocation>,
    /// Locations that have lost all their limits, as nginx writes them.
    ///
    /// Each has its host if there are several servers.
    unlimited: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Note {
    at: SourceLocation,
    message: String,
    is_of_limit: bool,
}

/// Maximum number of unlimited locations that are listed by name.
const MAX_NAMED: usize = 5;

/// Maximum number of notes that are not about limits. Further notes are counted.
const MAX_NOTES: usize = 100_000;

/// Maximum length of a message in characters. Longer messages are truncated.
const MAX_CHARACTERS: usize = 400;

impl Notes {
    /// Registers a file. Returns its number, which source locations refer to.
    pub(super) fn file(&mut self, path: &Path) -> usize {
        let known = self.files.iter().position(|known| known == path);
        known.unwrap_or_else(|| {
            self.files.push(path.to_owned());
            self.files.len() - 1
        })
    }

    pub fn add(&mut self, at: SourceLocation, message: impl AsRef<str>) {
        self.push(at, message, false);
    }

    /// Adds a note on why limits are lost. These notes come before all others.
    pub(super) fn add_of_limit(&mut self, at: SourceLocation, message: impl AsRef<str>) {
        self.push(at, message, true);
    }

    /// Adds a note on a limit that is lost.
    pub(super) fn lose(&mut self, at: SourceLocation, message: impl AsRef<str>) {
        self.lost.push(at);
        self.push(at, message, true);
    }

    /// Returns the number of lost limits so far.
    pub(super) fn lost(&self) -> usize {
        self.lost.len()
    }

    /// Registers a location that has lost all its limits.
    pub(super) fn is_unlimited(&mut self, location: String) {
        if !self.unlimited.contains(&location) {
            self.unlimited.push(location);
        }
    }

    /// Describes the lost limits: "2 limits are lost, /api/ is unlimited"; `None` if none is lost.
    pub(super) fn loss(&self) -> Option<String> {
        let mut lost = self.lost.clone();
        lost.sort();
        lost.dedup();
        let mut text = match lost.len() {
            0 => return None,
            1 => "1 limit is lost".to_owned(),
            count => format!("{count} limits are lost"),
        };
        let named = self.unlimited.iter().take(MAX_NAMED);
        let named: Vec<_> = named.map(|it| printable(it)).collect();
        let more = self.unlimited.len() - named.len();
        if more > 0 {
            let _ = write!(text, ", {} and {more} more are unlimited", named.join(", "));
        } else if let [location] = &*named {
            let _ = write!(text, ", {location} is unlimited");
        } else if !named.is_empty() {
            let _ = write!(text, ", {} are unlimited", named.join(", "));
        }
        Some(text)
    }

    fn push(&mut self, at: SourceLocation, message: impl AsRef<str>, is_of_limit: bool) {
        if self.all.len() >= MAX_NOTES && !is_of_limit {
            self.left_out += 1;
            return;
        }
        let message = printable(message.as_ref());
        self.all.push(Note {
            at,
            message,
            is_of_limit,
        });
    }

    /// Returns the number of notes so far.
    pub(super) fn count(&self) -> usize {
        self.all.len()
    }

    /// Returns the notes after the first `count`, as comments for a table of the settings.
    pub(super) fn since(&self, count: usize) -> Vec<String> {
        let new = self.all.get(count..).unwrap_or_default();
        let mut new = new.iter().collect::<Vec<_>>();
        new.sort();
        new.dedup();
        new.into_iter().map(|note| self.show(note)).collect()
    }

    /// Returns all notes without duplicates: lost limits first, then by source location.
    pub(super) fn all(&self) -> Vec<String> {
        let mut all = self.all.iter().collect::<Vec<_>>();
        all.sort_by_key(|note| (!note.is_of_limit, *note));
        all.dedup();
        let more =
            (self.left_out > 0).then(|| format!("{} more notes are left out", self.left_out));
        let shown = all.into_iter().map(|note| self.show(note));
        shown.chain(more).collect()
    }

    /// Formats a source location: file name and line number.
    pub(super) fn name(&self, at: SourceLocation) -> String {
        let file = self.files.get(at.file);
        let name = file.map_or(String::new(), |file| {
            on_one_line(&file.to_string_lossy(), usize::MAX)
        });
        format!("{name}:{}", at.line)
    }

    fn show(&self, note: &Note) -> String {
        format!("{}: {}", self.name(note.at), note.message)
    }
}

/// Returns a text on one line, truncated if it is too long.
fn printable(text: &str) -> String {
    on_one_line(text, MAX_CHARACTERS)
}

/// Returns the first characters of a text, with non-printable characters escaped.
fn on_one_line(text: &str, most: usize) -> String {
    let mut line = String::new();
    put_printable(&mut line, text.chars().take(most));
    if text.chars().nth(most).is_some() {
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_cut_says_so() {
        assert_eq!(on_one_line("abc", 3), "abc");
        assert_eq!(on_one_line("abcd", 3), "abc…");
    }

    #[test]
    fn notes_are_bounded_but_for_those_on_limits() {
        let mut notes = Notes::default();
        let at = |line| SourceLocation { file: 0, line };
        for line in 0..MAX_NOTES + 3 {
            notes.add(at(line), "a ; without a directive before it");
        }
        notes.lose(at(7), "a limit");
        let all = notes.all();
        assert_eq!(all.len(), 1 + MAX_NOTES + 1);
        assert_eq!(all[0], ":7: a limit");
        assert_eq!(all[MAX_NOTES + 1], "3 more notes are left out");
    }
}
