use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// A configuration file that the demo writes, in a folder that is removed with this value.
#[derive(Debug)]
pub(super) struct OwnFile {
    path: PathBuf,
    _folder: TempDir,
}

impl OwnFile {
    pub(super) fn create(text: &str) -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("drip-demo-").tempdir()?;
        let file = Self {
            path: folder.path().join("gateway.toml"),
            _folder: folder,
        };
        file.save(text)?;
        Ok(file)
    }

    /// Replaces its text, as a user does who saves it.
    pub(super) fn save(&self, text: &str) -> io::Result<()> {
        fs::write(&self.path, text)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}
