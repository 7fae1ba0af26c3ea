//! Says when the file has changed.
//!
//! What happens in the folders around the file is only a reason to look at it: whether it changed is told by
//! its [`Stamp`]. So every style of saving works, and a log that grows in the same folder disturbs nothing.

mod folders;
mod stamp;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use notify::event::{AccessKind, AccessMode, Event, EventKind};
use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use self::folders::folders;
use self::stamp::Stamp;
use super::{LoadError, read};

/// The file is read when nothing has been written to it for so long.
const QUIET: Duration = Duration::from_millis(50);

/// At least so long between two looks, however busy the folder is.
const BREATH: Duration = Duration::from_millis(5);

/// At most so long between two looks: network file systems tell of nothing.
const PATIENCE: Duration = Duration::from_secs(2);

/// Watches one file, through renames, removals and symbolic links.
#[derive(Debug)]
pub struct Watcher {
    path: PathBuf,
    /// The text last told; `None` after an error.
    text: Option<String>,
    /// Of the file when it was last read; `None`: read by others.
    read_at: Option<Stamp>,
    /// Of the file when it was last looked at.
    seen: Stamp,
    inotify: RecommendedWatcher,
    watched: BTreeSet<PathBuf>,
    /// Has room for one notice, which is enough to look.
    stirred: Arc<Notify>,
}

/// Why a file cannot be watched.
#[derive(Debug, thiserror::Error)]
#[error("{}: cannot be watched: {source}", path.display())]
pub struct WatchError {
    /// The file, or the folder of it that cannot be watched.
    pub path: PathBuf,
    /// What the system said.
    pub source: notify::Error,
}

impl Watcher {
    /// Watches the file at `path`, of which `text` is already known. Whatever was written since that was read
    /// counts as a change.
    ///
    /// # Errors
    ///
    /// The system has no watch to give, or the file's folder is not there.
    pub fn start(path: PathBuf, text: String) -> Result<Self, WatchError> {
        let stirred = Arc::new(Notify::new());
        let bell = Arc::clone(&stirred);
        let failed = |path: &Path, source| WatchError {
            path: path.to_owned(),
            source,
        };
        let inotify = notify::recommended_watcher(move |event: notify::Result<Event>| {
            if !event.is_ok_and(|event| only_read(event.kind)) {
                bell.notify_one();
            }
        })
        .map_err(|error| failed(&path, error))?;
        let mut this = Self {
            seen: Stamp::of(&path),
            path,
            text: Some(text),
            read_at: None,
            inotify,
            watched: BTreeSet::new(),
            stirred,
        };
        for folder in folders(&this.path) {
            let result = this.inotify.watch(&folder, RecursiveMode::NonRecursive);
            result.map_err(|error| failed(&folder, error))?;
            this.watched.insert(folder);
        }
        Ok(this)
    }

    /// Waits until the file has changed and been quiet for 50 ms; gives its text, never the one it gave last.
    /// After an error the next text counts as changed whatever it says. Dropping the future loses nothing.
    ///
    /// # Errors
    ///
    /// The file has become unreadable, or stays missing: told once, until that changes.
    pub async fn changed(&mut self) -> Result<String, LoadError> {
        loop {
            if Some(self.look()) == self.read_at {
                self.stir().await;
                continue;
            }
            let stamp = self.settle().await;
            let told = self.text.take();
            let found = read(&self.path);
            if Stamp::of(&self.path) != stamp {
                // It was written to again while it was read.
                self.text = told;
                continue;
            }
            self.read_at = Some(stamp);
            self.text = found.as_ref().ok().cloned();
            if self.text.is_none() || self.text != told {
                return found;
            }
        }
    }

    /// Reads the file now, changed or not, quiet or not; [`Watcher::changed`] does not tell that text again.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn read(&mut self) -> Result<String, LoadError> {
        let stamp = Stamp::of(&self.path);
        let found = read(&self.path);
        // What was read may be half of what is being written, and its stamp that of the whole.
        self.read_at = found.is_err().then_some(stamp);
        self.text = found.as_ref().ok().cloned();
        found
    }

    /// Waits until nothing has happened to the file for a while.
    async fn settle(&mut self) -> Stamp {
        let mut stamp = self.look();
        let mut quiet_at = Instant::now() + QUIET;
        loop {
            let quiet = timeout_at(quiet_at, self.stir()).await.is_err();
            let now = self.look();
            if now != stamp {
                stamp = now;
                quiet_at = Instant::now() + QUIET;
            } else if quiet {
                return stamp;
            }
        }
    }

    /// Waits for a reason to look.
    async fn stir(&self) {
        sleep(BREATH).await;
        // That the time ran out is a reason, too.
        let _ = timeout(PATIENCE, self.stirred.notified()).await;
    }

    /// Looks at the file, and after the watches: they hang on folders, which may have been replaced.
    fn look(&mut self) -> Stamp {
        let folders = folders(&self.path);
        let stamp = Stamp::of(&self.path);
        if folders == self.watched && stamp.is_same_file(self.seen) {
            self.seen = stamp;
            return stamp;
        }
        for folder in &self.watched {
            // Fails where the folder is gone, and its watch with it.
            let _ = self.inotify.unwatch(folder);
        }
        let inotify = &mut self.inotify;
        self.watched = folders
            .into_iter()
            // What cannot be watched now is tried again at the next look.
            .filter(|folder| inotify.watch(folder, RecursiveMode::NonRecursive).is_ok())
            .collect();
        // What was written before the new watches were there has rung no bell.
        self.seen = Stamp::of(&self.path);
        self.seen
    }
}

/// Whether an event says no more than that somebody read something; we do so at every look.
fn only_read(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(access) => access != AccessKind::Close(AccessMode::Write),
        _ => false,
    }
}
