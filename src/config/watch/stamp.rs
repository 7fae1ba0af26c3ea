use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What tells, without reading a file, that it is not what it was.
///
/// The time of the last change of the inode is in it, which tools that set a file's own time back cannot hide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stamp {
    Missing,
    File {
        device: u64,
        inode: u64,
        size: u64,
        modified: (i64, i64),
        changed: (i64, i64),
    },
}

impl Stamp {
    /// Of the file that `path` leads to now.
    pub(super) fn of(path: &Path) -> Self {
        fs::metadata(path).map_or(Self::Missing, |file| Self::File {
            device: file.dev(),
            inode: file.ino(),
            size: file.size(),
            modified: (file.mtime(), file.mtime_nsec()),
            changed: (file.ctime(), file.ctime_nsec()),
        })
    }

    /// Whether it is one file with perhaps another content.
    pub(super) fn is_same_file(self, other: Self) -> bool {
        let identity = |stamp| match stamp {
            Self::Missing => None,
            Self::File { device, inode, .. } => Some((device, inode)),
        };
        identity(self) == identity(other)
    }
}
