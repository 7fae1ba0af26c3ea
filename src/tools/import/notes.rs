//! Collects notes for the user about lines of the imported files.
//!
//! A limit is lost if it is not translated. Notes on lost limits come first and are never dropped,
//! because a location without its limits is open to floods.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use config::put_printable;

/// Number of a file, and of a line in it.
pub(super) type Position = (usize, usize);

/// A line of an imported file, and the notes to which it can add.
#[derive(Clone, Copy, Debug)]
pub(super) struct SourceLocation<'n> {
    pub(super) notes: &'n Notes,
    /// Number of the file.
    file: usize,
    line: usize,
}

impl SourceLocation<'_> {
    /// Adds a note.
    pub(super) fn note(self, message: impl AsRef<str>) {
        self.push(message, false);
    }

    /// Adds a note that says why limits are lost, but does not count a lost limit.
    pub(super) fn note_of_limit(self, message: impl AsRef<str>) {
        self.push(message, true);
    }

    /// Counts a lost limit, and adds a note on it.
    pub(super) fn lose(self, message: impl AsRef<str>) {
        self.notes.lost.borrow_mut().push(self.position());
        self.push(message, true);
    }

    /// Returns another line of the same file.
    pub(super) fn at_line(self, line: usize) -> Self {
        Self { line, ..self }
    }

    pub(super) fn position(self) -> Position {
        (self.file, self.line)
    }

    /// Adds a note. Drops it if there are too many and `is_of_limit` is false.
    fn push(self, message: impl AsRef<str>, is_of_limit: bool) {
        let mut all = self.notes.all.borrow_mut();
        if all.len() >= MAX_NOTES && !is_of_limit {
            return self.notes.dropped.set(self.notes.dropped.get() + 1);
        }
        all.push(Note {
            position: self.position(),
            message: on_one_line(message.as_ref(), MAX_CHARACTERS),
            is_of_limit,
        });
    }
}

impl fmt::Display for SourceLocation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.notes.name(self.position()))
    }
}

/// Notes on what the user must check, each with its source location.
#[derive(Debug, Default)]
pub(super) struct Notes {
    /// Names of the imported files. The number of a file is its index.
    files: RefCell<Vec<PathBuf>>,
    all: RefCell<Vec<Note>>,
    /// Number of notes that were dropped because there were too many.
    dropped: Cell<usize>,
    /// Positions of lost limits. One that would apply to several locations is there several times.
    lost: RefCell<Vec<Position>>,
    /// Locations that have lost all their limits, as nginx writes them.
    ///
    /// Each has its host if there are several servers.
    unlimited: RefCell<Vec<String>>,
}

/// A note. Notes are ordered by their positions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Note {
    position: Position,
    message: String,
    /// Whether it says that a limit is lost, or why.
    is_of_limit: bool,
}

/// Maximum number of unlimited locations that are listed by name.
const MAX_NAMED: usize = 5;

/// Maximum number of notes that are not about limits. Further notes are counted.
const MAX_NOTES: usize = 100_000;

/// Maximum length of a message in characters. Longer messages are truncated.
const MAX_CHARACTERS: usize = 400;

impl Notes {
    /// Returns the first line of a file.
    pub(super) fn start_of(&self, path: &Path) -> SourceLocation<'_> {
        let mut files = self.files.borrow_mut();
        let known = files.iter().position(|known| known == path);
        let file = known.unwrap_or(files.len());
        if known.is_none() {
            files.push(path.to_owned());
        }
        SourceLocation {
            notes: self,
            file,
            line: 1,
        }
    }

    /// Returns the number of lost limits so far.
    pub(super) fn lost_limits(&self) -> usize {
        self.lost.borrow().len()
    }

    /// Registers a location that has lost all its limits.
    pub(super) fn add_unlimited(&self, location: String) {
        let mut unlimited = self.unlimited.borrow_mut();
        if !unlimited.contains(&location) {
            unlimited.push(location);
        }
    }

    /// Describes the lost limits: "2 limits are lost, /api/ is unlimited"; `None` if none is lost.
    pub(super) fn loss(&self) -> Option<String> {
        let unlimited = self.unlimited.borrow();
        let lost: BTreeSet<_> = self.lost.borrow().iter().copied().collect();
        let mut text = match lost.len() {
            0 => return None,
            1 => "1 limit is lost".to_owned(),
            count => format!("{count} limits are lost"),
        };
        let first = unlimited.iter().take(MAX_NAMED);
        let first: Vec<_> = first.map(|it| on_one_line(it, MAX_CHARACTERS)).collect();
        let names = first.join(", ");
        text += &match unlimited.len() {
            0 => String::new(),
            1 => format!(", {names} is unlimited"),
            2..=MAX_NAMED => format!(", {names} are unlimited"),
            count => format!(", {names} and {} more are unlimited", count - MAX_NAMED),
        };
        Some(text)
    }

    /// Returns the number of notes so far.
    pub(super) fn count(&self) -> usize {
        self.all.borrow().len()
    }

    /// Returns the notes after the first `count`, as comments for a table of the settings.
    pub(super) fn since(&self, count: usize) -> Vec<String> {
        let all = self.all.borrow();
        let new: BTreeSet<&Note> = all.iter().skip(count).collect();
        new.into_iter().map(|note| self.show(note)).collect()
    }

    /// Returns all notes without duplicates: lost limits first, then by source location.
    pub(super) fn all(&self) -> Vec<String> {
        let all = self.all.borrow();
        // `false` comes before `true`.
        let sorted: BTreeSet<_> = all.iter().map(|it| (!it.is_of_limit, it)).collect();
        let dropped = self.dropped.get();
        let more = (dropped > 0).then(|| format!("{dropped} more notes are left out"));
        let shown = sorted.into_iter().map(|(_, note)| self.show(note));
        shown.chain(more).collect()
    }

    /// Formats a position: file name and line number.
    fn name(&self, (file, line): Position) -> String {
        let name = self.files.borrow()[file].to_string_lossy().into_owned();
        format!("{}:{line}", on_one_line(&name, usize::MAX))
    }

    /// Formats a note: its position and its message.
    fn show(&self, note: &Note) -> String {
        format!("{}: {}", self.name(note.position), note.message)
    }
}

/// Returns at most `max_characters` of a text, with non-printable characters escaped.
///
/// A truncated text ends with an ellipsis.
fn on_one_line(text: &str, max_characters: usize) -> String {
    let mut line = String::new();
    put_printable(&mut line, text.chars().take(max_characters));
    if text.chars().nth(max_characters).is_some() {
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_truncated_text_ends_with_an_ellipsis() {
        assert_eq!(on_one_line("abc", 3), "abc");
        assert_eq!(on_one_line("abcd", 3), "abc…");
    }

    #[test]
    fn notes_are_bounded_except_those_on_limits() {
        let notes = Notes::default();
        let at = |line| notes.start_of(Path::new("")).at_line(line);
        for line in 0..MAX_NOTES + 3 {
            at(line).note("a ; without a directive before it");
        }
        at(7).lose("a limit");
        let all = notes.all();
        assert_eq!(all.len(), 1 + MAX_NOTES + 1);
        assert_eq!(all[0], ":7: a limit");
        assert_eq!(all[MAX_NOTES + 1], "3 more notes are left out");
    }
}
