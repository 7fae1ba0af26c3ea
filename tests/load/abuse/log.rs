//! An access log whose disk takes nothing, or whose reader has gone.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use rustix::process::Signal;
use tempfile::TempDir;

use crate::load::abuse::{MB, long_until};
use crate::support::process::Process;
use crate::support::{
    Client, Gateway, Origin, SOON, eventually, fetch, half_alone, make_fifo, one_zone,
};

/// Length of a line, so that some hundred lines fill the backlog.
const LONG: usize = 30_000;
const REQUESTS: usize = 2000;

/// A named pipe, and the folder that it is in.
fn pipe() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("access.log");
    make_fifo(&pipe);
    (folder, pipe)
}

/// The reading end. The pipe holds 64 KB, and blocks a writer of more until something is read.
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
    assert_eq!(fetch(gateway.address(), "/?key=a").status, 200);
    drop(first);
    gateway.signal(Signal::HUP);
    gateway.wait_for_line("no program reads this named pipe");
    assert_eq!(fetch(gateway.address(), "/?key=a").status, 200);
    let mut second = BufReader::new(reader(&pipe)).lines();
    gateway.signal(Signal::HUP);
    gateway.wait_for_line("the changed file is in force");
    assert_eq!(fetch(gateway.address(), "/?key=b").status, 200);
    // The line before may still be in the pipe.
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
        let mut client = Client::connect(gateway.address());
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

#[test]
#[ignore = "loads both cores: tests/run.sh long"]
fn a_log_that_nobody_takes_costs_bounded_memory_and_loses_only_what_it_counts() {
    let _alone = half_alone();
    let (_folder, pipe) = pipe();
    let reader = reader(&pipe);
    let origin = Origin::start();
    let gateway = Gateway::start(&logging_to(&origin, &pipe));
    let process = Process::of(gateway.id());
    let mut client = Client::connect(gateway.address());
    let target = format!("/?key=a&long={}", "x".repeat(LONG));
    let mut ask = |times: usize| {
        for _ in 0..times {
            client.send(format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes());
            assert!([200, 429].contains(&client.answer().status));
        }
    };
    let dropped = || {
        let dropped = gateway.metrics().count("drip_log_dropped_total", &[]);
        usize::try_from(dropped).expect("it only grows")
    };
    ask(10);
    assert_eq!(dropped(), 0);
    let before = process.memory();
    ask(REQUESTS - 10);
    eventually("lines are dropped", || dropped() > REQUESTS / 2);
    let more = process.memory().saturating_sub(before);
    assert!(more < 32 * MB, "{} MB more", more / MB);

    let mut lines = BufReader::new(reader).lines();
    let written = REQUESTS - dropped();
    for nth in 0..written {
        let line = lines.next().expect("a line").expect("text");
        assert!(line.contains("duration="), "line {nth} is cut: {line:.100}");
    }
    // There is room again, and no further line was lost.
    ask(1);
    let last = lines.next().expect("a line").expect("text");
    assert!(last.contains("duration="));
    long_until("the numbers agree", || written + dropped() == REQUESTS);
}
