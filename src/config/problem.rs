//! Problems of a file, with their locations and messages.

use std::path::{Path, PathBuf};
use std::{fmt, io};

use super::NamedFile;
use super::printable::put_printable;

/// One problem in a file: its location, and a message with the found and the expected value.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// Included file that has the problem; `None`: the configuration file itself.
    pub file: Option<PathBuf>,
    /// Line, from 1; 0 without a location.
    pub line: usize,
    /// Column in characters, from 1; 0 without a location.
    pub column: usize,
    /// The message, on one line.
    pub message: String,
}

/// Maximum length of a message, in characters. A longer message is truncated.
///
/// A message contains parts of the file. The file may not be a configuration at all, and any part
/// of it may be long.
const MAX_CHARACTERS: usize = 1000;

impl Problem {
    /// Returns a problem that has no location in the file.
    pub fn without_location(message: String) -> Self {
        Self {
            message,
            ..Self::default()
        }
    }

    /// Returns one line with the problem as a warning: `gateway.toml:12:8: warning: message`.
    ///
    /// `file`: the configuration file, for a problem that is not in an included file.
    pub fn as_warning(&self, file: &Path) -> String {
        self.as_line(file, "warning: ")
    }

    /// Returns one line with the location, and `kind` before the message.
    fn as_line(&self, file: &Path, kind: &str) -> String {
        let file = self.file_of(file).display();
        let (line, column, message) = (self.line, self.column, &self.message);
        format!("{file}:{line}:{column}: {kind}{message}")
    }

    /// Returns the file that has the problem. `file`: the configuration file.
    pub fn file_of<'p>(&'p self, file: &'p Path) -> &'p Path {
        self.file.as_deref().unwrap_or(file)
    }

    /// Makes problems from pairs of a byte offset in `text` and a message, sorted by location.
    ///
    /// Scans the text once, however many problems there are.
    pub(super) fn locate(text: &str, mut found: Vec<(usize, String)>) -> Vec<Self> {
        found.sort();
        // Line and column at the byte offset `scanned_to`, up to which the text has been read.
        let (mut line, mut column, mut scanned_to) = (1, 1, 0);
        let problem_at = |(offset, message): (usize, String)| {
            let mut offset = offset.min(text.len());
            while !text.is_char_boundary(offset) {
                offset -= 1;
            }
            let scanned = text.get(scanned_to..offset).unwrap_or_default();
            if let Some(newline) = scanned.rfind('\n') {
                line += scanned.matches('\n').count();
                column = 1 + scanned[newline + 1..].chars().count();
            } else {
                column += scanned.chars().count();
            }
            scanned_to = scanned_to.max(offset);
            Self {
                file: None,
                line,
                column,
                message,
            }
        };
        found.into_iter().map(problem_at).collect()
    }
}

/// Makes a message safe to print: escapes unprintable characters, and limits the length.
///
/// Messages contain names and values from the file, which may have any characters.
pub(super) fn on_one_line(message: &str) -> String {
    let mut line = String::with_capacity(message.len());
    put_printable(&mut line, message.chars().take(MAX_CHARACTERS));
    if message.chars().nth(MAX_CHARACTERS).is_some() {
        line.push_str("...");
    }
    line
}

/// All problems in a file; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems {
    /// Path of the file, as given.
    pub file: PathBuf,
    /// Sorted by location.
    pub problems: Vec<Problem>,
    /// Other files that the text names. A change of one may fix a problem.
    pub named: Vec<NamedFile>,
}

impl Problems {
    /// Makes problems of a file from a list in any order.
    pub fn new(file: &Path, mut problems: Vec<Problem>) -> Self {
        problems.sort();
        problems.dedup();
        Self {
            file: file.to_owned(),
            problems,
            named: Vec::new(),
        }
    }
}

/// Writes one line per problem: `gateway.toml:12:8: message`.
impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = self.problems.iter().map(|it| it.as_line(&self.file, ""));
        f.write_str(&lines.collect::<Vec<_>>().join("\n"))
    }
}

impl std::error::Error for Problems {}

impl LoadError {
    /// Returns the problems with their locations. An unreadable file has no location.
    pub fn problems(&self) -> Vec<Problem> {
        match self {
            Self::Wrong(wrong) => wrong.problems.clone(),
            Self::Read { source, .. } => {
                let message = format!("cannot be read: {source}");
                vec![Problem::without_location(message)]
            }
        }
    }

    /// Returns the message for the command line, with a remedy if the file does not exist.
    pub fn with_remedy(&self) -> String {
        match self {
            Self::Read { path, source } if source.kind() == io::ErrorKind::NotFound => {
                let name = Some(path).filter(|path| *path != Path::new(DEFAULT_FILE));
                let name = name.map_or(String::new(), |path| format!(" {}", path.display()));
                format!("{self}; `drip init{name}` writes one")
            }
            _ => self.to_string(),
        }
    }
}

/// Configuration file, if none is given.
pub const DEFAULT_FILE: &str = "gateway.toml";

/// Error of a file that gives no settings.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file could not be read.
    #[error("{}: cannot be read: {source}", path.display())]
    Read {
        /// Path of the file, as given.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// The file was read, and has problems.
    #[error(transparent)]
    Wrong(#[from] Problems),
}
