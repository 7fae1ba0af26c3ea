//! An access log whose disk takes nothing.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::Command;

use crate::abuse::{MB, long_until};
use crate::support::process::Process;
use crate::support::{Client, Gateway, Origin, alone, eventually, one_zone};

/// Length of a line, so that some hundred lines fill the backlog.
const LONG: usize = 30_000;
const REQUESTS: usize = 2000;

#[test]
fn a_log_that_nobody_takes_costs_bounded_memory_and_loses_only_what_it_counts() {
    let _alone = alone();
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("access.log");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("mkfifo runs").success());
    // It holds 64 KB and blocks a writer after that.
    let reader = File::options().read(true).write(true).open(&pipe);
    let reader = reader.expect("the pipe");
    let origin = Origin::start();
    let zone = one_zone(&origin, "1000r/s", "burst = 1000, nodelay = true");
    let gateway = Gateway::start(&format!(
        "workers = 2\n{zone}\n[log]\naccess = \"{}\"\n",
        pipe.display()
    ));
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
