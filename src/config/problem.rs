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

impl Problem {
    /// A problem at a byte of `text`.
    pub(super) fn at(text: &str, byte: usize, message: String) -> Self {
        let before = text.get(..byte).unwrap_or(text);
        let line = before.rsplit('\n').next().unwrap_or(before);
        Self {
            line: before.matches('\n').count() + 1,
            column: line.chars().count() + 1,
            message,
        }
    }
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
