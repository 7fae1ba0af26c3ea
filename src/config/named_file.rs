use std::path::{Path, PathBuf};

use super::pattern::Pattern;
use super::stamp::Stamp;

/// What a file is for that the text of the configuration names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// Its text is a part of the configuration.
    Included,
    /// The keys of a plan.
    PlanKeys,
    /// Networks of clients.
    Networks,
    /// The keys that sign tokens of clients.
    KeySet,
    /// Authorities of the servers of an origin, a certificate for them, or its key.
    OriginTls,
    /// Authorities of Redis.
    RedisTls,
    /// What clients get in place of a short text of the gateway.
    Page,
}

impl FileKind {
    /// All kinds. Of files that change at once, the first one is told.
    pub const ALL: [Self; 7] = [
        Self::Included,
        Self::PlanKeys,
        Self::Networks,
        Self::KeySet,
        Self::OriginTls,
        Self::RedisTls,
        Self::Page,
    ];

    /// Its name as the cause of a reload, in the API and the log.
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

/// A file that the text of the configuration names and that is read with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedFile {
    /// Where it is.
    pub path: PathBuf,
    /// What it is for.
    pub kind: FileKind,
    /// What it was when the text was read: before its own content was.
    pub(super) stamp: Stamp,
    /// A hash of its content, once it is read. None of a kind whose content is compared setting by setting.
    pub(super) digest: Option<u64>,
    /// Whether its name comes from the environment, so that nothing shows it.
    pub(super) is_secret: bool,
}

impl NamedFile {
    /// The file at `path`, which is about to be read, or the files of a pattern there, which are
    /// about to be included.
    ///
    /// A pattern changes when another file fits it, or one no longer does.
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

    /// Whether a hash of its content is missing.
    pub(super) fn needs_digest(&self) -> bool {
        let is_whole = !matches!(self.kind, FileKind::Included | FileKind::PlanKeys);
        is_whole && self.digest.is_none()
    }

    /// What it is now.
    pub(super) fn stamp_now(&self) -> Stamp {
        Self::stamp_of(&self.path, self.kind)
    }

    fn stamp_of(path: &Path, kind: FileKind) -> Stamp {
        let pattern = Pattern::of(path).filter(|_| kind == FileKind::Included);
        let Some(pattern) = pattern else {
            return Stamp::of(path);
        };
        // A folder that cannot be listed differs from one without files.
        let files = pattern.files();
        files.map_or(Stamp::Missing, |files| Stamp::of_names(&files))
    }
}
