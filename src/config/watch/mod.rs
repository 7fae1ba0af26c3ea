//! Watches the configuration file, and the files that it names, for changes.
//!
//! An event in the folders around the file only triggers a check of the file. Its [`Stamp`] decides
//! whether it changed. So every way of saving a file works, and a log that grows in the same folder
//! has no effect.

mod folders;

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
use super::stamp::Stamp;
use super::{LoadError, NamedFile, read};

/// Duration without changes after which a changed file is read.
const QUIET: Duration = Duration::from_millis(50);

/// Maximum wait for a file that never stops changing. Then it is read between two writes.
const MAX_UNREST: Duration = Duration::from_secs(2);

/// Minimum duration between two checks of the file, however busy its folder is.
const MIN_INTERVAL: Duration = Duration::from_millis(5);

/// Maximum duration between two checks of the file: network file systems send no events.
const MAX_INTERVAL: Duration = Duration::from_secs(2);

/// Watches one file, through renames, removals and symbolic links.
#[derive(Debug)]
pub struct Watcher {
    path: PathBuf,
    /// Text of the file that was returned last; `None` after an error.
    text: Option<String>,
    /// Stamp of the file when it was last read.
    ///
    /// `None`: the file must be read again, because the last text was given to [`Watcher::start`],
    /// or may be incomplete.
    read_stamp: Option<Stamp>,
    /// Stamp of the file at the last check.
    checked_stamp: Stamp,
    /// Instant of the first change that has not settled yet; `None`: the file is settled.
    unrest_since: Option<Instant>,
    /// Files named in the configuration, with their stamps of the last read.
    named_files: Vec<NamedFile>,
    /// Sends events about folders. `None`: the system has no instance left. The file is checked
    /// every [`MAX_INTERVAL`].
    inotify: Option<RecommendedWatcher>,
    /// Folders that inotify watches.
    watched: BTreeSet<PathBuf>,
    /// Notified by events. It keeps one notification, which is enough.
    changed_hint: Arc<Notify>,
}

impl Watcher {
    /// Watches the file at `path`, whose content is known to be `text`.
    ///
    /// A write after `text` was read counts as a change. If the system has no inotify instance or
    /// watch left, a log line reports it, and changes are seen up to 2 s later.
    pub fn start(path: PathBuf, text: String) -> Self {
        let changed_hint = Arc::new(Notify::new());
        let hint = Arc::clone(&changed_hint);
        let inotify = notify::recommended_watcher(move |event: notify::Result<Event>| {
            if !event.is_ok_and(|event| is_read(event.kind)) {
                hint.notify_one();
            }
        });
        let inotify = inotify.inspect_err(|error| warn_of_polling(&path, error));
        Self::new(path, text, inotify.ok(), changed_hint)
    }

    /// Makes a watcher with this source of events. Each event must notify `changed_hint`.
    fn new(
        path: PathBuf,
        text: String,
        inotify: Option<RecommendedWatcher>,
        changed_hint: Arc<Notify>,
    ) -> Self {
        let mut watcher = Self {
            checked_stamp: Stamp::of(&path),
            path,
            text: Some(text),
            read_stamp: None,
            unrest_since: None,
            named_files: Vec::new(),
            inotify,
            watched: BTreeSet::new(),
            changed_hint,
        };
        for folder in folders(&watcher.path) {
            match watch(watcher.inotify.as_mut(), &folder) {
                Ok(()) => _ = watcher.watched.insert(folder),
                Err(error) => warn_of_polling(&folder, &error),
            }
        }
        watcher
    }

    /// Watches these files, too: a change of one counts as a change of the configuration file.
    ///
    /// They replace the files of an earlier call.
    ///
    /// A change since a file was read counts. If a file is named twice, the first entry is used.
    pub fn follow(&mut self, mut named: Vec<NamedFile>) {
        let mut paths = BTreeSet::new();
        named.retain(|file| paths.insert(file.path.clone()));
        for file in &mut named {
            if let Some(known) = self.named_files.iter().find(|it| it.path == file.path) {
                file.stamp = known.stamp;
            }
        }
        self.named_files = named;
        self.check_file();
    }

    /// Waits until the file has changed and settled, and returns its text.
    ///
    /// A file settles after 50 ms without changes, or is read after 2 s of changes. The text always
    /// differs from the last returned one, unless a named file has changed. After an error any text
    /// counts as changed. Dropping the future loses no change.
    ///
    /// # Errors
    ///
    /// Returns an error if the file has become unreadable, or stays missing. The error is returned
    /// once, until the file changes.
    pub async fn changed(&mut self) -> Result<String, LoadError> {
        loop {
            let stamp = self.check_file();
            let has_named_changed = self.named_files.iter().any(|it| it.stamp_now() != it.stamp);
            if Some(stamp) == self.read_stamp && !has_named_changed {
                self.unrest_since = None;
                self.wait_for_hint().await;
                continue;
            }
            let (stamp, named_stamps) = self.settle().await;
            let last_text = self.text.take();
            let found = read(&self.path);
            if Stamp::of(&self.path) != stamp {
                // The file was written to again while it was read.
                self.text = last_text;
                sleep(MIN_INTERVAL).await;
                continue;
            }
            self.unrest_since = None;
            self.read_stamp = Some(stamp);
            self.text = found.as_ref().ok().cloned();
            let has_named_changed = self.record_stamps(named_stamps);
            if self.text.is_none() || self.text != last_text || has_named_changed {
                return found;
            }
        }
    }

    /// Reads the file now, whether or not it has changed or settled.
    ///
    /// [`Watcher::changed`] does not return the same text again.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read.
    pub fn read(&mut self) -> Result<String, LoadError> {
        let stamp = Stamp::of(&self.path);
        let named_stamps = self.named_stamps();
        self.record_stamps(named_stamps);
        let found = read(&self.path);
        // If the file is being written, the text may be incomplete although `stamp` is that of the
        // complete file. So `changed` must read again after a success.
        self.read_stamp = found.is_err().then_some(stamp);
        self.text = found.as_ref().ok().cloned();
        found
    }

    /// Returns the current stamps of the named files.
    fn named_stamps(&self) -> Vec<Stamp> {
        let named_files = self.named_files.iter();
        named_files.map(NamedFile::stamp_now).collect()
    }

    /// Records the stamps of the named files at a read. Returns whether one has changed.
    fn record_stamps(&mut self, stamps: Vec<Stamp>) -> bool {
        let mut has_changed = false;
        for (file, stamp) in self.named_files.iter_mut().zip(stamps) {
            has_changed |= file.stamp != stamp;
            file.stamp = stamp;
        }
        has_changed
    }

    /// Waits until all files are unchanged for [`QUIET`], and returns their stamps.
    ///
    /// Waits for at most [`MAX_UNREST`] since the first change.
    async fn settle(&mut self) -> (Stamp, Vec<Stamp>) {
        let latest = *self.unrest_since.get_or_insert_with(Instant::now) + MAX_UNREST;
        let mut stamps = (self.check_file(), self.named_stamps());
        let mut quiet_at = Instant::now() + QUIET;
        loop {
            let until = quiet_at.min(latest);
            let is_quiet = timeout_at(until, self.wait_for_hint()).await.is_err();
            let current = (self.check_file(), self.named_stamps());
            if Instant::now() >= latest {
                return current;
            }
            if current != stamps {
                stamps = current;
                quiet_at = Instant::now() + QUIET;
            } else if is_quiet {
                return stamps;
            }
        }
    }

    /// Waits for an event, for at most [`MAX_INTERVAL`].
    async fn wait_for_hint(&self) {
        sleep(MIN_INTERVAL).await;
        // A timeout triggers a check, too.
        let _ = timeout(MAX_INTERVAL, self.changed_hint.notified()).await;
    }

    /// Checks the file, and renews the watches if necessary. Returns its stamp.
    ///
    /// It is necessary if the path leads through other folders, or to another file: then a folder
    /// may have been replaced by another one of the same name.
    fn check_file(&mut self) -> Stamp {
        let mut folders = folders(&self.path);
        for file in &self.named_files {
            folders.extend(self::folders::folders(&file.path));
        }
        let stamp = Stamp::of(&self.path);
        if folders == self.watched && stamp.is_same_file(self.checked_stamp) {
            self.checked_stamp = stamp;
            return stamp;
        }
        if let Some(inotify) = &mut self.inotify {
            for folder in &self.watched {
                // Fails if the folder was removed, and its watch with it.
                let _ = inotify.unwatch(folder);
            }
        }
        self.watched = folders
            .into_iter()
            // A folder that cannot be watched now is tried again at the next check.
            .filter(|folder| watch(self.inotify.as_mut(), folder).is_ok())
            .collect();
        // A write before the new watches existed caused no event.
        self.checked_stamp = Stamp::of(&self.path);
        self.checked_stamp
    }
}

/// Watches a folder. Does nothing without inotify.
fn watch(inotify: Option<&mut RecommendedWatcher>, folder: &Path) -> notify::Result<()> {
    inotify.map_or(Ok(()), |inotify| {
        inotify.watch(folder, RecursiveMode::NonRecursive)
    })
}

/// Logs that changes are seen late, because `path` is checked in intervals only.
fn warn_of_polling(path: &Path, error: &notify::Error) {
    tracing::warn!(
        path = %path.display(),
        %error,
        "the system has no inotify instance or watch left, so changes of files are seen up to {} s later; raise fs.inotify.max_user_instances or \
         fs.inotify.max_user_watches",
        MAX_INTERVAL.as_secs()
    );
}

/// Returns whether an event only reports a read. Each check of the file causes such events.
fn is_read(kind: EventKind) -> bool {
    let closed_after_write = AccessKind::Close(AccessMode::Write);
    matches!(kind, EventKind::Access(access) if access != closed_after_write)
}
