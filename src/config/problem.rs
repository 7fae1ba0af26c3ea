use std::path::{Path, PathBuf};
use std::{fmt, io};

/// One thing wrong with a file: where, what was found, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// One line of text.
    pub message: String,
}

/// Past it a message is cut off, in characters: a file may be something else than was meant, and long in any part.
const LONGEST: usize = 1000;

impl Problem {
    /// What is wrong at bytes of `text`, by place. Takes no longer than it takes to read the text, however many there
    /// are.
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
                line,
                column,
                message,
            }
        };
        found.into_iter().map(place).collect()
    }
}

/// A message as it can be printed: names and values in it are the file's own, and may have any characters.
pub(super) fn on_one_line(message: String) -> String {
    if message.len() <= LONGEST && !message.contains(char::is_control) {
        return message;
    }
    let mut line = String::with_capacity(message.len());
    for (index, c) in message.chars().enumerate() {
        if index == LONGEST {
            line.push_str("...");
            break;
        }
        if c.is_control() {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
    }
    line
}

/// Everything wrong with a file; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems {
    /// The file, as it was named.
    pub file: PathBuf,
    /// In the order of their places.
    pub problems: Vec<Problem>,
}

impl Problems {
    pub(super) fn new(file: &Path, mut problems: Vec<Problem>) -> Self {
        problems.sort();
        problems.dedup();
        Self {
            file: file.to_owned(),
            problems,
        }
    }
}

/// One line a problem: `gateway.toml:12:8: message`.
impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            let line_end = if index == 0 { "" } else { "\n" };
            let Problem {
                line,
                column,
                message,
            } = problem;
            let file = self.file.display();
            write!(f, "{line_end}{file}:{line}:{column}: {message}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

/// Why there are no settings.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file could not be read.
    #[error("{}: cannot be read: {source}", path.display())]
    Read {
        /// The file, as it was named.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file was read, and is wrong.
    #[error(transparent)]
    Wrong(#[from] Problems),
}
