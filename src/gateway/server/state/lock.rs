//! Lock of the state file, so that only one process writes it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::sleep;

use crate::time::clock;

/// Pause between two attempts.
const RETRY_EVERY: Duration = Duration::from_millis(5);

/// Lock of the one process that may write a state file, until this is dropped.
///
/// The kernel releases it when the process ends for any reason.
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    /// Waits for the lock of the state file at `path`; `None` if it is not free within `limit`.
    ///
    /// # Errors
    ///
    /// The lock file, beside the state file, cannot be opened.
    pub(super) async fn take(path: &Path, limit: Duration) -> io::Result<Option<Self>> {
        let deadline = clock::now() + limit;
        let mut lock = Self::try_take(path)?;
        if lock.is_none() {
            tracing::info!(file = %path.display(), "waiting until the previous process has written the state");
        }
        while lock.is_none() && clock::now() < deadline {
            sleep(RETRY_EVERY).await;
            lock = Self::try_take(path)?;
        }
        Ok(lock)
    }

    /// Takes the lock if no other process has it.
    pub(super) fn try_take(path: &Path) -> io::Result<Option<Self>> {
        let mut name = path.as_os_str().to_owned();
        name.push(".lock");
        let mut options = OpenOptions::new();
        // The lock is on a separate file, because each process replaces the state file.
        let file = options.write(true).create(true).truncate(false).mode(0o600);
        let file = file.open(PathBuf::from(name))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}
