//! Files that the configuration names and that are read with it.

use std::path::{Path, PathBuf};

use super::pattern::Pattern;
use super::stamp::Stamp;

/// Purpose of a file that the configuration names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// An included part of the configuration.
    Included,
    /// Keys of a plan.
    PlanKeys,
    /// Networks of clients.
    Networks,
    /// Keys that verify the tokens of clients.
    KeySet,
    /// Authorities for the servers of an origin, or drip's certificate or key for them.
    OriginTls,
    /// Authorities for Redis.
    RedisTls,
    /// Page that clients get instead of a short text of the gateway.
    Page,
}

impl FileKind {
    /// All kinds. If several files change at once, the first kind in this list is reported.
    pub const ALL: [Self; 7] = [
        Self::Included,
        Self::PlanKeys,
        Self::Networks,
        Self::KeySet,
        Self::OriginTls,
        Self::RedisTls,
        Self::Page,
    ];

    /// Returns the name of the kind as the cause of a reload, in the API and the log.
    pub fn label(self) -> &'static str {
        match self {
            Self::Included => "included file",
            Self::PlanKeys => "plan file",
            Self::Networks => "networks file",
            Self::KeySet => "key set file",
            Self::OriginTls => "origin certificate file",
            Self::RedisTls => "redis certificate file",
            Self::Page => "page file",
        }
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
    /// The file name comes from the environment, so no output shows it.
    pub(super) is_secret: bool,
}

impl NamedFile {
    /// Returns a file, or a pattern of included files, that is about to be read.
    ///
    /// A pattern changes when another file matches it, or one no longer does.
    pub(super) fn about_to_be_read(path: PathBuf, kind: FileKind) -> Self {
        let stamp = Self::stamp_of(&path, kind);
        Self {
            path,
            kind,
            stamp,
            digest: None,
            is_secret: false,
        }
    }

    /// Returns whether a hash of the content is needed and missing.
    pub(super) fn needs_digest(&self) -> bool {
        let is_whole = !matches!(self.kind, FileKind::Included | FileKind::PlanKeys);
        is_whole && self.digest.is_none()
    }

    /// Returns the current stamp of the file.
    pub(super) fn stamp_now(&self) -> Stamp {
        Self::stamp_of(&self.path, self.kind)
    }

    fn stamp_of(path: &Path, kind: FileKind) -> Stamp {
        let pattern = Pattern::of(path).filter(|_| kind == FileKind::Included);
        let Some(pattern) = pattern else {
            return Stamp::of(path);
        };
        // A folder that cannot be listed must differ from a folder without matching files.
        let files = pattern.files();
        files.map_or(Stamp::Missing, |files| Stamp::of_names(&files))
    }
}
