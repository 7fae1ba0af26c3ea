//! Tests of the error log if standard error is the journal.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Origin, Site, drip, eventually, one_zone};

/// Returns the program's log until it listens, with this `JOURNAL_STREAM`.
fn log(rest: &str, stream: impl Fn(u64, u64) -> String) -> String {
    let origin = Origin::start();
    let site = Site::new();
    site.write(&(one_zone(&origin, "1r/s", "burst = 1") + rest));
    let path = site.folder().join("log");
    let file = File::create(&path).expect("a file");
    let of = file.metadata().expect("a file");
    let mut process = drip()
        .arg("-c")
        .arg(site.file())
        .env("JOURNAL_STREAM", stream(of.dev(), of.ino()))
        .stderr(Stdio::from(file))
        .spawn()
        .expect("the program starts");
    let read = || fs::read_to_string(&path).expect("a log");
    eventually("it listens", || read().contains("listening"));
    let id = i32::try_from(process.id()).ok().and_then(Pid::from_raw);
    kill_process(id.expect("a process"), Signal::TERM).expect("it runs");
    process.wait().expect("a child");
    read()
}

#[test]
fn lines_have_a_priority_if_they_go_to_the_journal_which_adds_the_time() {
    let here = |device, inode| format!("{device}:{inode}");
    let text = log("", here);
    assert!(!text.is_empty());
    for line in text.lines() {
        let is_right = line.starts_with("<6> INFO ") && !line.contains('\x1b');
        assert!(is_right, "{line:?}");
    }
    for line in log("\n[log]\nformat = \"json\"\n", here).lines() {
        let json = line.strip_prefix("<6>").expect("a priority");
        let json: serde_json::Value = serde_json::from_str(json).expect("JSON");
        assert!(json["timestamp"].is_string(), "{line}");
    }
    let elsewhere = log("", |device, inode| format!("{device}:{}", inode + 1));
    for line in elsewhere.lines() {
        let has_time = line.starts_with("20") && line.contains("Z  INFO ");
        assert!(has_time, "{line:?}");
    }
}
