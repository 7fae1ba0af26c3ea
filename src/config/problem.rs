use std::path::{Path, PathBuf};
use std::{fmt, io};

use super::NamedFile;
use super::printable::put_printable;

/// One problem in a file: its place, what was found, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// The included file that it is in; `None`: the file itself.
    pub file: Option<PathBuf>,
    /// Line, from 1; 0 if it has no place.
    pub line: usize,
    /// Column in characters, from 1; 0 if it has no place.
    pub column: usize,
    /// The message, on one line.
    pub message: String,
}

/// Longest message, in characters; a longer one is cut off.
///
/// The file may be a different one than intended, and any part of it may be long.
const MAX_CHARACTERS: usize = 1000;

impl Problem {
    /// One line that tells this as a warning about `file`: `gateway.toml:12:8: warning: message`.
    pub fn as_warning(&self, file: &Path) -> String {
        self.as_line(file, "warning: ")
    }

    /// One line with its place, and `kind` before the message.
    fn as_line(&self, file: &Path, kind: &str) -> String {
        let file = self.file_of(file).display();
        let (line, column, message) = (self.line, self.column, &self.message);
        format!("{file}:{line}:{column}: {kind}{message}")
    }

    /// The file that it is in, of a configuration in `file`.
    pub fn file_of<'p>(&'p self, file: &'p Path) -> &'p Path {
        self.file.as_deref().unwrap_or(file)
    }

    /// Problems from pairs of a byte in `text` and a message, sorted by place.
    ///
    /// Reads the text once, however many problems there are.
    pub(super) fn all(text: &str, mut found: Vec<(usize, String)>) -> Vec<Self> {
        found.sort();
        let (mut line, mut column, mut seen) = (1, 1, 0);
        let place = |(byte, message): (usize, String)| {
            let mut byte = byte.min(text.len());
            while !text.is_char_boundary(byte) {
                byte -= 1;
            }
            let passed = text.get(seen..byte).unwrap_or_default();
            if let Some(newline) = passed.rfind('\n') {
                line += passed.matches('\n').count();
                column = 1 + passed[newline + 1..].chars().count();
            } else {
                column += passed.chars().count();
            }
            seen = seen.max(byte);
            Self {
                file: None,
                line,
                column,
                message,
            }
        };
        found.into_iter().map(place).collect()
    }
}

/// A message that is safe to print: what is not printable is escaped, and its length is limited.
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
    /// The file's path, as given.
    pub file: PathBuf,
    /// Sorted by place.
    pub problems: Vec<Problem>,
    /// Other files that the text names. A change of one may mend it.
    pub named: Vec<NamedFile>,
}

impl Problems {
    /// Problems of a file, in any order.
    pub fn new(file: &Path, mut problems: Vec<Problem>) -> Self {
        problems.sort();
        problems.dedup();
        Self {
            file: file.to_owned(),
            problems,
            named: Vec::new(),
        }
    }

    /// The same problems of a text that names these files.
    pub(super) fn naming(self, named: Vec<NamedFile>) -> Self {
        Self { named, ..self }
    }
}

/// One line for each problem: `gateway.toml:12:8: message`.
impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = self.problems.iter().map(|it| it.as_line(&self.file, ""));
        f.write_str(&lines.collect::<Vec<_>>().join("\n"))
    }
}

impl std::error::Error for Problems {}

impl LoadError {
    /// The error as a command tells it: with what helps if the file is not there.
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

/// The configuration file, if none is named.
pub const DEFAULT_FILE: &str = "gateway.toml";

/// Why a file gives no settings.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file could not be read.
    #[error("{}: cannot be read: {source}", path.display())]
    Read {
        /// The file's path, as given.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file was read, and has problems.
    #[error(transparent)]
    Wrong(#[from] Problems),
}
