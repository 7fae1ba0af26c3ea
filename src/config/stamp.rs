//! Stamps of files, by which the watcher detects a change of a file without reading it.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Identity, size and times of a file.
///
/// It includes the time of the last change of the inode. Tools that reset a file's modification
/// time cannot hide that one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stamp {
    /// There is no file, or it cannot be examined.
    Missing,
    /// Times are pairs of seconds and nanoseconds.
    File {
        device: u64,
        inode: u64,
        size: u64,
        /// Time at which the content changed last.
        modified: (i64, i64),
        /// Time at which the content or the inode changed last.
        changed: (i64, i64),
    },
    /// A list of files, as a hash of their names.
    Names(u64),
}

impl Stamp {
    /// Returns the current stamp of the file that `path` leads to.
    pub(super) fn of(path: &Path) -> Self {
        fs::metadata(path).map_or(Self::Missing, |file| Self::File {
            device: file.dev(),
            inode: file.ino(),
            size: file.size(),
            modified: (file.mtime(), file.mtime_nsec()),
            changed: (file.ctime(), file.ctime_nsec()),
        })
    }

    /// Returns the stamp of a list of files. Only their names count.
    pub(super) fn of_names(files: &[PathBuf]) -> Self {
        let mut hasher = DefaultHasher::new();
        files.hash(&mut hasher);
        Self::Names(hasher.finish())
    }

    /// Returns whether both stamps belong to the same file, perhaps with different content.
    pub(super) fn is_same_file(self, other: Self) -> bool {
        let identity = |stamp| match stamp {
            Self::Missing | Self::Names(_) => None,
            Self::File { device, inode, .. } => Some((device, inode)),
        };
        identity(self) == identity(other)
    }
}
