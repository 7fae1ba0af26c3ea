//! Files that the configuration names and that are read with it, such as included files.
//!
//! The watcher reloads the configuration when one of them changes. It compares their stamps: size,
//! times and identity of a file, without its content.

use std::path::{Path, PathBuf};

use super::pattern::Pattern;
use super::stamp::Stamp;
use super::tables::kinds::words;

words! {
    /// Purpose of a file that the configuration names.
    ///
    /// The text names the file as the cause of a reload.
    ///
    /// If several files change at once, the first kind in this list is reported.
    pub enum FileKind {
        /// An included part of the configuration.
        Included = "included file",
        /// Keys of a plan.
        PlanKeys = "plan file",
        /// Networks of clients.
        Networks = "networks file",
        /// Keys that verify the tokens of clients.
        KeySet = "key set file",
        /// Authorities for the servers of an origin, or drip's certificate or key for them.
        OriginTls = "origin certificate file",
        /// Authorities for Redis.
        RedisTls = "redis certificate file",
        /// Page that clients get instead of a short text of the gateway.
        Page = "page file",
    }
}

/// A file that the configuration names and that is read with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedFile {
    /// Absolute path of the file, or a pattern of several files.
    pub path: PathBuf,
    /// Purpose of the file.
    pub kind: FileKind,
    /// Stamp of the file, taken before its content was read.
    pub(super) stamp: Stamp,
    /// Hash of the content, once it is read. `None` for kinds that are compared setting by setting.
    pub(super) digest: Option<u64>,
    /// Whether the path comes from the environment. Then no output shows it.
    pub(super) is_secret: bool,
}

impl NamedFile {
    /// Takes the stamp of a file, or of a pattern of included files, that is about to be read.
    ///
    /// A pattern changes when another file matches it, or one no longer does.
    pub(super) fn about_to_be_read(path: PathBuf, kind: FileKind) -> Self {
        Self {
            stamp: Self::stamp_of(&path, kind),
            path,
            kind,
            digest: None,
            is_secret: false,
        }
    }

    /// Returns whether a hash of the content is needed and missing.
    pub(super) fn needs_digest(&self) -> bool {
        let is_compared_by_content = !matches!(self.kind, FileKind::Included | FileKind::PlanKeys);
        is_compared_by_content && self.digest.is_none()
    }

    /// Returns the current stamp of the file.
    pub(super) fn stamp_now(&self) -> Stamp {
        Self::stamp_of(&self.path, self.kind)
    }

    /// Returns the current stamp of a file, or of the files that match a pattern.
    fn stamp_of(path: &Path, kind: FileKind) -> Stamp {
        let Some(pattern) = Pattern::parse(path).filter(|_| kind == FileKind::Included) else {
            return Stamp::of(path);
        };
        // A folder that cannot be listed must differ from a folder without matching files.
        let files = pattern.files();
        files.map_or(Stamp::Missing, |files| Stamp::of_names(&files))
    }
}
