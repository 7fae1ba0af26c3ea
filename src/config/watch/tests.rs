//! Tests of the file watcher.
//!
//! These tests run in real time, because the kernel's events do. Timeouts are generous, so that the
//! tests pass on a busy machine.

use std::fs::{self, File};
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tempfile::TempDir;

use super::*;
use crate::FileKind;

/// Longer than a change takes to be seen, shorter than the interval of checks without events.
const SOON: Duration = Duration::from_secs(1);

/// Long enough for a change to be reported, if there were one.
const A_WHILE: Duration = Duration::from_millis(250);

struct Fixture {
    folder: TempDir,
    watcher: Watcher,
}

impl Fixture {
    fn path(&self) -> PathBuf {
        self.folder.path().join("gateway.toml")
    }

    async fn becomes(&mut self, text: &str) {
        let changed = timeout(SOON, self.watcher.changed()).await;
        assert_eq!(changed.expect("nothing was told").unwrap(), text);
    }

    async fn stays(&mut self) {
        let changed = timeout(A_WHILE, self.watcher.changed()).await;
        assert!(changed.is_err(), "told {changed:?}");
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

#[tokio::test]
async fn without_inotify_a_file_is_polled() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gateway.toml");
    fs::write(&path, "old").unwrap();
    let mut watcher = Watcher::new(path.clone(), "old".to_owned(), None, Arc::default());
    for text in ["new", "newer"] {
        fs::write(&path, text).unwrap();
        let changed = timeout(MAX_INTERVAL + SOON, watcher.changed()).await;
        assert_eq!(changed.expect("nothing was told").unwrap(), text);
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
    fixture.becomes(&"piece ".repeat(20)).await;
    writer.join().unwrap();
    fixture.stays().await;
}

#[tokio::test]
async fn a_file_that_is_never_quiet_takes_effect_all_the_same() {
    let mut fixture = fixture();
    let (path, other) = (fixture.path(), fixture.folder.path().join("other"));
    let done = Arc::new(AtomicBool::new(false));
    let writer = thread::spawn({
        let done = Arc::clone(&done);
        move || {
            for version in 0.. {
                if done.load(Ordering::Relaxed) {
                    break;
                }
                fs::write(&other, format!("version {version}")).unwrap();
                fs::rename(&other, &path).unwrap();
                thread::sleep(Duration::from_millis(20));
            }
        }
    });
    // The future may be dropped meanwhile.
    let mut texts = Vec::new();
    let begin = Instant::now();
    while texts.len() < 2 && begin.elapsed() < 4 * MAX_UNREST {
        if let Ok(text) = timeout(SOON, fixture.watcher.changed()).await {
            texts.push(text.unwrap());
        }
    }
    done.store(true, Ordering::Relaxed);
    writer.join().unwrap();
    assert_eq!(texts.len(), 2);
    assert!(
        texts.iter().all(|text| text.starts_with("version ")),
        "{texts:?}"
    );
}

#[tokio::test]
async fn a_file_missing_for_a_moment_is_no_error() {
    let mut fixture = fixture();
    fixture.stays().await;
    let path = fixture.path();
    let writer = thread::spawn(move || {
        fs::rename(&path, path.with_extension("bak")).unwrap();
        thread::sleep(Duration::from_millis(10));
        fs::write(path, "new").unwrap();
    });
    fixture.becomes("new").await;
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
    fixture.stays().await;
    fs::write(fixture.path(), "old").unwrap();
    fixture.becomes("old").await;
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
        let changed = timeout(MAX_INTERVAL + SOON, watcher.changed())
            .await
            .unwrap();
        assert_eq!(changed.unwrap(), text);
        writer.join().unwrap();
    }
}

#[tokio::test]
async fn a_log_that_grows_beside_the_file_delays_nothing() {
    let mut fixture = fixture();
    let path = fixture.folder.path().join("access.log");
    let done = Arc::new(AtomicBool::new(false));
    let logger = thread::spawn({
        let done = Arc::clone(&done);
        move || {
            let mut log = File::create(path).unwrap();
            while !done.load(Ordering::Relaxed) {
                log.write_all(b"line\n").unwrap();
                thread::sleep(Duration::from_millis(1));
            }
        }
    });
    fixture.stays().await;
    fs::write(fixture.path(), "new").unwrap();
    fixture.becomes("new").await;
    done.store(true, Ordering::Relaxed);
    logger.join().unwrap();
}

#[tokio::test]
async fn a_text_that_read_returned_is_not_returned_again() {
    let mut fixture = fixture();
    fs::write(fixture.path(), "new").unwrap();
    assert_eq!(fixture.watcher.read().unwrap(), "new");
    fixture.stays().await;
    fs::remove_file(fixture.path()).unwrap();
    assert!(fixture.watcher.read().is_err());
    fixture.stays().await;
}

#[tokio::test]
async fn a_write_before_the_watch_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gateway.toml");
    fs::write(&path, "new").unwrap();
    let watcher = Watcher::start(path, "old".to_owned());
    Fixture { folder, watcher }.becomes("new").await;
}

#[tokio::test]
async fn a_named_file_that_changes_while_it_is_read_counts_as_changed() {
    let mut fixture = fixture();
    let keys = fixture.folder.path().join("keys");
    fs::write(&keys, "one").unwrap();
    let named = vec![NamedFile::about_to_be_read(
        keys.clone(),
        FileKind::PlanKeys,
    )];
    // The named file has not been read since its write.
    fs::write(&keys, "two").unwrap();
    fixture.watcher.follow(named.clone());
    fixture.becomes("old").await;
    fixture.stays().await;
    // The named files are unchanged, so nothing has changed.
    fixture.watcher.follow(named);
    fixture.stays().await;
    fs::write(&keys, "three").unwrap();
    fixture.becomes("old").await;
}

#[tokio::test]
async fn an_unchanged_named_file_is_no_change() {
    let mut fixture = fixture();
    let keys = fixture.folder.path().join("keys");
    fs::write(&keys, "one").unwrap();
    let named = NamedFile::about_to_be_read(keys.clone(), FileKind::PlanKeys);
    fixture.watcher.follow(vec![named.clone(), named]);
    fixture.stays().await;
    fs::remove_file(&keys).unwrap();
    fixture.becomes("old").await;
}
