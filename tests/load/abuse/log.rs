//! Tests of an access log whose disk is stuck, or whose reader has closed.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use rustix::process::Signal;
use tempfile::TempDir;

use crate::support::{Gateway, Origin, SOON, make_fifo, one_zone};

/// Length of a line: some hundred lines fill the backlog.
const LONG: usize = 30_000;

/// Creates a named pipe. Returns its folder and path.
fn pipe() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("access.log");
    make_fifo(&pipe);
    (folder, pipe)
}

/// Opens the reading end. The pipe holds 64 KB, and then blocks writers until something is read.
fn reader(pipe: &Path) -> File {
    let reader = File::options().read(true).write(true).open(pipe);
    reader.expect("the pipe")
}

fn logging_to(origin: &Origin, pipe: &Path) -> String {
    let zone = one_zone(origin, "1000r/s", "burst = 1000, nodelay = true");
    let pipe = pipe.display();
    format!("workers = 2\nshutdown_timeout = \"3s\"\n{zone}\n[log]\naccess = \"{pipe}\"\n")
}

#[test]
fn a_pipe_that_nobody_reads_stops_neither_a_reload_nor_the_end() {
    let (_folder, pipe) = pipe();
    let first = reader(&pipe);
    let origin = Origin::start();
    let mut gateway = Gateway::start(&logging_to(&origin, &pipe));
    assert_eq!(gateway.fetch("/?key=a").status, 200);
    drop(first);
    gateway.signal(Signal::HUP);
    gateway.wait_for_line("no program reads this named pipe");
    assert_eq!(gateway.fetch("/?key=a").status, 200);
    let mut second = BufReader::new(reader(&pipe)).lines();
    gateway.signal(Signal::HUP);
    gateway.wait_for_line("the changed file is in force");
    assert_eq!(gateway.fetch("/?key=b").status, 200);
    // The previous line may still be in the pipe.
    assert!(second.any(|line| line.expect("text").contains("key=\"b\"")));
    drop(second);
    gateway.signal(Signal::TERM);
    assert_eq!(gateway.wait(2 * SOON).code(), Some(0));
}

#[test]
fn at_a_stop_the_lines_that_wait_are_written_or_counted() {
    for is_read in [true, false] {
        let (_folder, pipe) = pipe();
        let reader = reader(&pipe);
        let origin = Origin::start();
        let mut gateway = Gateway::start(&logging_to(&origin, &pipe));
        let mut client = gateway.connect();
        let target = format!("/?key=a&long={}", "x".repeat(LONG));
        for _ in 0..100 {
            client.send(format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes());
            client.answer();
        }
        drop(client);
        gateway.signal(Signal::TERM);
        gateway.wait_for_line("stopping");
        let mut lines = BufReader::new(reader).lines();
        if is_read {
            for _ in 0..100 {
                lines.next().expect("a line").expect("text");
            }
        }
        assert_eq!(gateway.wait(2 * SOON).code(), Some(0));
        let log = gateway.log();
        let lost = log.contains("lines of the access log were not written in time");
        assert_eq!(lost, !is_read, "{log}");
    }
}
