//! What outlives the process: levels and schedules, in a file for the next one.
//!
//! The file is written once, when the gateway stops: after the last request was accepted, while
//! those that wait still leave. The next process starts from it, so its first requests leave behind
//! them. A lock beside the file says that another process may still write it.

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

/// Time that connections have for their first request after the signal to stop.
const LAST_JOINS: Duration = Duration::from_millis(500);
/// Most time for writing.
const WRITING: Duration = Duration::from_secs(8);
/// How long a start waits for the process before it, from the signal to the end of its writing.
const PREDECESSOR: Duration = Duration::from_secs(10);
/// Most time for checking what it has left, before this process listens.
const CHECKING: Duration = Duration::from_secs(5);
/// Most time for reading it, before the first request is served.
const READING: Duration = Duration::from_secs(5);
/// How long a second signal to stop waits until the state is written.
pub(super) const WRITING_IN_HASTE: Duration = Duration::from_millis(500);

/// The state file of this process, from its start to its stop.
#[derive(Debug)]
pub(super) struct StateFile {
    /// Where the file is, at the end of symbolic links.
    path: PathBuf,
    /// `None` if another process has it.
    lock: Option<Lock>,
    /// What the process before has left, until it is restored.
    left: Option<Reader>,
    /// The file of the waiting rooms.
    rooms: RoomsFile,
}

impl StateFile {
    /// Waits for the process before, and opens what it has left, if that can be used.
    ///
    /// `None` if the settings name no file, or the state cannot be written there: the log says so.
    pub(super) async fn open(path: Option<&Path>) -> Option<Self> {
        let path = path?;
        let checked = check_state_file(path).map_err(|error| tell_unusable(path, &error));
        let path = checked.ok()?;
        let lock = Lock::take(&path, PREDECESSOR).await;
        let lock = lock.map_err(|error| tell_unusable(&path, &error)).ok()?;
        let left = if lock.is_some() {
            Reader::open(&path, clock::now() + CHECKING)
                .inspect_err(|why| restore::tell_ignored(&path, why))
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
            left,
            rooms,
        })
    }
}

fn tell_unusable(path: &Path, error: &impl Display) {
    tracing::error!(
        file = %path.display(),
        %error,
        "the state file cannot be used: a restart forgets all levels"
    );
}
