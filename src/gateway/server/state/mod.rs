//! State that outlives the process: levels and schedules, in a file for the next process.
//!
//! A *level* is how full the bucket of a key is. A *schedule* is the slots that are taken already.
//!
//! The file is written once, when the gateway stops: after the last request was accepted, while
//! waiters still depart. The next process starts from it, so its first requests depart after these
//! waiters. A lock beside the file shows that another process may still write it.
//!
//! `save` writes the state, `restore` reads it. Both use the lines of `record` in the file of
//! `format`. `rooms` is a second file, for the waiting rooms.

mod format;
mod lock;
mod record;
mod restore;
mod rooms;
mod save;
#[cfg(test)]
mod tests;

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::time::Duration;

use config::check_state_file;

use format::Reader;
use lock::Lock;
pub(super) use rooms::RoomsFile;

use crate::time::clock;

/// After the signal to stop, open connections may still send a request for this long.
///
/// Then the state is written.
const MAX_WAIT_FOR_LAST_REQUESTS: Duration = Duration::from_millis(500);
/// Time limit for writing.
const MAX_WRITING: Duration = Duration::from_secs(8);
/// Time limit of a start for waiting until the previous process has written its state.
const MAX_WAITING_FOR_LOCK: Duration = Duration::from_secs(10);
/// Time limit for checking the saved state, before this process listens.
const MAX_CHECKING: Duration = Duration::from_secs(5);
/// Time limit for reading the saved state, before the first request is served.
const MAX_READING: Duration = Duration::from_secs(5);
/// Time limit for writing the state after a second signal to stop.
pub(super) const MAX_WRITING_IN_HASTE: Duration = Duration::from_millis(500);

/// State file of this process, from its start to its stop.
pub(super) struct StateFile {
    /// Path of the file, with symbolic links resolved.
    path: PathBuf,
    /// Lock of the file; `None` if another process has it.
    lock: Option<Lock>,
    /// Saved state of the previous process, until it is restored.
    saved: Option<Reader>,
    /// File of the waiting rooms.
    rooms: RoomsFile,
}

impl StateFile {
    /// Waits for the previous process, and opens its saved state, if it can be used.
    ///
    /// `None` if the settings name no file, or the state cannot be written there. The second case
    /// is logged.
    pub(super) async fn open(path: Option<&Path>) -> Option<Self> {
        let path = path?;
        let checked = check_state_file(path).map_err(|error| log_unusable(path, &error));
        let path = checked.ok()?;
        let lock = Lock::take(&path, MAX_WAITING_FOR_LOCK).await;
        let lock = lock.map_err(|error| log_unusable(&path, &error)).ok()?;
        let saved = if lock.is_some() {
            Reader::open(&path, clock::now() + MAX_CHECKING)
                .inspect_err(|why| restore::log_ignored(&path, why))
                .unwrap_or_default()
        } else {
            tracing::warn!(
                file = %path.display(),
                "another process uses the state file: this one starts without it"
            );
            None
        };
        let rooms = RoomsFile::beside(&path);
        Some(Self {
            path,
            lock,
            saved,
            rooms,
        })
    }
}

/// Logs that the state can neither be restored nor saved.
fn log_unusable(path: &Path, error: &impl Display) {
    tracing::error!(
        file = %path.display(),
        %error,
        "the state file cannot be used: a restart forgets all levels"
    );
}
