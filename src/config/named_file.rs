use std::path::{Path, PathBuf};

use super::pattern::Pattern;
use super::stamp::Stamp;

/// A file that the text of the configuration names and that is read with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedFile {
    /// Where it is.
    pub path: PathBuf,
    /// Whether its text is a part of the configuration.
    pub is_included: bool,
    /// What it was when the text was read: before its own content was.
    pub(super) stamp: Stamp,
}

impl NamedFile {
    /// The file at `path`, which is about to be read.
    pub(super) fn about_to_be_read(path: PathBuf) -> Self {
        let stamp = Stamp::of(&path);
        Self {
            path,
            is_included: false,
            stamp,
        }
    }

    /// The file at `path`, or the files of a pattern there, which are about to be included.
    ///
    /// A pattern changes when another file fits it, or one no longer does.
    pub(super) fn about_to_be_included(path: PathBuf) -> Self {
        let stamp = Self::stamp_of(&path, true);
        Self {
            path,
            is_included: true,
            stamp,
        }
    }

    /// What it is now.
    pub(super) fn stamp_now(&self) -> Stamp {
        Self::stamp_of(&self.path, self.is_included)
    }

    fn stamp_of(path: &Path, is_included: bool) -> Stamp {
        let pattern = Pattern::of(path).filter(|_| is_included);
        let Some(pattern) = pattern else {
            return Stamp::of(path);
        };
        // A folder that cannot be listed differs from one without files.
        let files = pattern.files();
        files.map_or(Stamp::Missing, |files| Stamp::of_names(&files))
    }
}
