use std::path::PathBuf;

use super::stamp::Stamp;

/// A file that the text of the configuration names and that is read with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedFile {
    /// Where it is.
    pub path: PathBuf,
    /// What it was when the text was read: before its own content was.
    pub(super) stamp: Stamp,
}

impl NamedFile {
    /// The file at `path`, which is about to be read.
    pub(super) fn about_to_be_read(path: PathBuf) -> Self {
        let stamp = Stamp::of(&path);
        Self { path, stamp }
    }
}
