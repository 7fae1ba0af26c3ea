//! Tests of the file watcher.
//!
//! They run in real time, because they need the events of the kernel. Timeouts are generous, so
//! that the tests pass on a busy machine.

use std::fs::{self, File};
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tempfile::TempDir;

use super::*;
use crate::FileKind;

/// Longer than a change takes to be reported, shorter than the interval of checks without events.
const SOON: Duration = Duration::from_secs(1);

/// Long enough for a change to be reported, if there were one.
const A_WHILE: Duration = Duration::from_millis(250);

/// A watched file, and its folder.
struct Fixture {
    folder: TempDir,
    watcher: Watcher,
}

impl Fixture {
    /// Returns the path of the watched file.
    fn path(&self) -> PathBuf {
        self.folder.path().join("gateway.toml")
    }

    /// Writes a file of keys. Returns its path, and the file as the configuration names it.
    fn named_file(&self) -> (PathBuf, NamedFile) {
        let keys = self.folder.path().join("keys");
        fs::write(&keys, "one").unwrap();
        let named = NamedFile::about_to_be_read(keys.clone(), FileKind::PlanKeys);
        (keys, named)
    }

    /// Checks that a change is reported soon, and that the file then has this text.
    async fn expect_change(&mut self, text: &str) {
        let changed = timeout(SOON, self.watcher.changed()).await;
        assert_eq!(changed.expect("no change was reported").unwrap(), text);
    }

    /// Checks that no change is reported for a while.
    async fn expect_no_change(&mut self) {
        let changed = timeout(A_WHILE, self.watcher.changed()).await;
        assert!(changed.is_err(), "reported {changed:?}");
    }
}

/// Returns a watched folder with a file that contains "old".
fn fixture() -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gateway.toml");
    fs::write(&path, "old").unwrap();
    let watcher = Watcher::start(path, "old".to_owned());
    Fixture { folder, watcher }
}

/// A thread that calls a function again and again until it is stopped.
struct Repeated {
    stop: Arc<AtomicBool>,
    thread: thread::JoinHandle<()>,
}

impl Repeated {
    /// Starts the thread. `interval`: time between two calls.
    fn start(interval: Duration, mut call: impl FnMut() + Send + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                call();
                thread::sleep(interval);
            }
        });
        Self { stop, thread }
    }

    fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
    }
}

#[tokio::test]
async fn without_inotify_a_file_is_polled() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gateway.toml");
    fs::write(&path, "old").unwrap();
    let mut watcher = Watcher::new(path.clone(), "old".to_owned(), None, Arc::default());
    for text in ["new", "newer"] {
        fs::write(&path, text).unwrap();
        let changed = timeout(MAX_INTERVAL + SOON, watcher.changed()).await;
        assert_eq!(changed.expect("no change was reported").unwrap(), text);
    }
}

#[tokio::test]
async fn a_file_written_slowly_is_returned_complete() {
    let mut fixture = fixture();
    let path = fixture.path();
    let writer = thread::spawn(move || {
        let mut file = File::create(path).unwrap();
        for _ in 0..20 {
            file.write_all(b"piece ").unwrap();
            thread::sleep(Duration::from_millis(10));
        }
    });
    fixture.expect_change(&"piece ".repeat(20)).await;
    writer.join().unwrap();
    fixture.expect_no_change().await;
}

#[tokio::test]
async fn a_file_that_is_never_quiet_takes_effect_all_the_same() {
    let mut fixture = fixture();
    let (path, other) = (fixture.path(), fixture.folder.path().join("other"));
    let mut version = 0;
    let writer = Repeated::start(Duration::from_millis(20), move || {
        fs::write(&other, format!("version {version}")).unwrap();
        fs::rename(&other, &path).unwrap();
        version += 1;
    });
    // The future may be dropped meanwhile.
    let mut texts = Vec::new();
    let begin = Instant::now();
    while texts.len() < 2 && begin.elapsed() < 4 * MAX_UNREST {
        if let Ok(text) = timeout(SOON, fixture.watcher.changed()).await {
            texts.push(text.unwrap());
        }
    }
    writer.stop();
    let are_whole = texts.iter().all(|text| text.starts_with("version "));
    assert!(texts.len() == 2 && are_whole, "{texts:?}");
}

#[tokio::test]
async fn a_file_missing_for_a_moment_is_no_error() {
    let mut fixture = fixture();
    fixture.expect_no_change().await;
    let path = fixture.path();
    let writer = thread::spawn(move || {
        fs::rename(&path, path.with_extension("bak")).unwrap();
        thread::sleep(Duration::from_millis(10));
        fs::write(path, "new").unwrap();
    });
    fixture.expect_change("new").await;
    writer.join().unwrap();
}

#[tokio::test]
async fn a_missing_file_is_reported_once_and_so_is_its_return() {
    let mut fixture = fixture();
    fs::remove_file(fixture.path()).unwrap();
    let missing = timeout(SOON, fixture.watcher.changed()).await.unwrap();
    assert!(
        matches!(missing, Err(LoadError::Read { .. })),
        "{missing:?}"
    );
    fixture.expect_no_change().await;
    fs::write(fixture.path(), "old").unwrap();
    fixture.expect_change("old").await;
}

#[tokio::test]
async fn a_file_in_a_recreated_folder_is_watched() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("etc/gateway.toml");
    fs::create_dir(root.path().join("etc")).unwrap();
    fs::write(&path, "old").unwrap();
    let mut watcher = Watcher::start(path.clone(), "old".to_owned());
    for text in ["new", "newer"] {
        let path = path.clone();
        let writer = thread::spawn(move || {
            fs::remove_dir_all(path.parent().unwrap()).unwrap();
            thread::sleep(Duration::from_millis(20));
            fs::create_dir(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        });
        let changed = timeout(MAX_INTERVAL + SOON, watcher.changed()).await;
        assert_eq!(changed.expect("no change was reported").unwrap(), text);
        writer.join().unwrap();
    }
}

#[tokio::test]
async fn a_log_that_grows_beside_the_file_delays_nothing() {
    let mut fixture = fixture();
    let mut log = File::create(fixture.folder.path().join("access.log")).unwrap();
    let logger = Repeated::start(Duration::from_millis(1), move || {
        log.write_all(b"line\n").unwrap();
    });
    fixture.expect_no_change().await;
    fs::write(fixture.path(), "new").unwrap();
    fixture.expect_change("new").await;
    logger.stop();
}

#[tokio::test]
async fn a_text_that_read_returned_is_not_returned_again() {
    let mut fixture = fixture();
    fs::write(fixture.path(), "new").unwrap();
    assert_eq!(fixture.watcher.read().unwrap(), "new");
    fixture.expect_no_change().await;
    fs::remove_file(fixture.path()).unwrap();
    assert!(fixture.watcher.read().is_err());
    fixture.expect_no_change().await;
}

#[tokio::test]
async fn a_write_before_the_watch_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gateway.toml");
    fs::write(&path, "new").unwrap();
    let watcher = Watcher::start(path, "old".to_owned());
    Fixture { folder, watcher }.expect_change("new").await;
}

#[tokio::test]
async fn a_named_file_that_changes_while_it_is_read_counts_as_changed() {
    let mut fixture = fixture();
    let (keys, named) = fixture.named_file();
    // The named file has not been read since its write.
    fs::write(&keys, "two").unwrap();
    fixture.watcher.follow(vec![named.clone()]);
    fixture.expect_change("old").await;
    fixture.expect_no_change().await;
    // The named file is unchanged, so nothing has changed.
    fixture.watcher.follow(vec![named]);
    fixture.expect_no_change().await;
    fs::write(&keys, "three").unwrap();
    fixture.expect_change("old").await;
}

#[tokio::test]
async fn an_unchanged_named_file_is_no_change() {
    let mut fixture = fixture();
    let (keys, named) = fixture.named_file();
    // A file may be named twice.
    fixture.watcher.follow(vec![named.clone(), named]);
    fixture.expect_no_change().await;
    fs::remove_file(&keys).unwrap();
    fixture.expect_change("old").await;
}
