//! Tests of standard error that is not read, full, or closed.

use std::fs::File;
use std::io::{BufRead, BufReader, PipeReader, Write, pipe};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::launch::launch;
use crate::support::wire::Answer;
use crate::support::{
    Client, Gateway, Origin, PATIENCE, SOON, Site, drip, eventually, fetch, now, one_zone,
};

/// A running program whose standard streams are not held by this test.
struct Running {
    site: Site,
    process: Child,
}

impl Running {
    fn start(rest: &str, run: impl FnOnce(&mut Command)) -> Self {
        let site = Site::new();
        site.write(rest);
        let mut command = drip();
        command.arg("-c").arg(site.file());
        run(&mut command);
        let process = command.spawn().expect("the program starts");
        let running = Self { site, process };
        eventually("it is ready", || {
            TcpStream::connect(running.site.admin).is_ok()
                && fetch(running.site.admin, "/readyz").status == 200
        });
        running
    }

    fn lost(&self) -> u64 {
        let metrics = fetch(self.site.admin, "/metrics").text();
        let line = metrics
            .lines()
            .find_map(|line| line.strip_prefix("drip_stderr_dropped_total "));
        line.expect("a metric").parse().expect("a number")
    }

    fn reload(&self) -> Answer {
        let (mut client, admin) = (Client::connect(self.site.admin), self.site.admin);
        client.send(format!("POST /api/reload HTTP/1.1\r\nHost: {admin}\r\n\r\n").as_bytes());
        client.answer()
    }

    /// Stops the program, and returns its status.
    fn stop(&mut self) -> Option<i32> {
        let id = i32::try_from(self.process.id())
            .ok()
            .and_then(Pid::from_raw);
        kill_process(id.expect("a process"), Signal::TERM).expect("it runs");
        let deadline = now() + PATIENCE;
        while now() < deadline {
            if let Some(status) = self.process.try_wait().expect("a child") {
                return status.code();
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        panic!("it still runs");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The program may have ended by itself.
        let _ended = self.process.kill();
        let _ended = self.process.wait();
    }
}

/// Starts the program with both standard streams on one pipe.
fn on_one_pipe(rest: &str) -> (Running, PipeReader) {
    let (reader, writer) = pipe().expect("a pipe");
    let running = Running::start(rest, |command| {
        let both = writer.try_clone().expect("a descriptor");
        command.stdout(both).stderr(writer);
    });
    (running, reader)
}

const MISTAKES: usize = 1500;

/// Returns a file whose reload logs [`MISTAKES`] lines.
fn mistakes() -> String {
    let lines = (0..MISTAKES).map(|nth| format!("mistake_{nth} = 1\n"));
    lines.collect()
}

#[test]
fn a_pipe_that_nobody_reads_stops_nothing_and_once_it_is_read_whole_lines_come() {
    let origin = Origin::start();
    let file = one_zone(&origin, "1000r/s", "burst = 9");
    let target = format!("/?key=a&long={}", "x".repeat(30_000));
    // Lines of the access log that long are written in pieces.
    for (is_read, log) in [(false, "[log]\naccess = \"stdout\"\n"), (true, "")] {
        let (mut gateway, reader) = on_one_pipe(&format!("shutdown_timeout = \"1s\"\n{file}{log}"));
        // The pipe holds 64 KB.
        for _ in 0..4 {
            assert_eq!(fetch(gateway.site.address, &target).status, 200);
        }
        gateway.site.write(&mistakes());
        while gateway.lost() == 0 {
            assert_eq!(gateway.reload().status, 422);
        }
        assert_eq!(fetch(gateway.site.address, "/?key=a").status, 200);
        assert_eq!(fetch(gateway.site.admin, "/healthz").status, 200);
        let mut lines = BufReader::new(reader).lines();
        if is_read {
            let received = lines.by_ref().map(|line| line.expect("text")).find(|line| {
                let levels = [" INFO ", "ERROR", " WARN "];
                assert!(levels.iter().any(|it| line.contains(it)), "{line:?}");
                line.contains("lines of this log are lost")
            });
            assert!(received.expect("a line").contains(" lost="));
        }
        assert_eq!(gateway.stop(), Some(0));
        if is_read {
            let has_stopped =
                |line: std::io::Result<String>| line.expect("text").contains("stopping");
            assert!(lines.any(has_stopped), "all of the end");
        }
    }
}

#[test]
fn a_full_disk_or_a_closed_log_stream_loses_only_lines() {
    let origin = Origin::start();
    let file = one_zone(&origin, "1000r/s", "burst = 9");
    let full = File::options()
        .write(true)
        .open("/dev/full")
        .expect("a device");
    let (reader, closed_pipe) = pipe().expect("a pipe");
    drop(reader);
    for stream in [Stdio::from(full), Stdio::from(closed_pipe)] {
        let mut gateway = Running::start(&file, |command| {
            command.stderr(stream);
        });
        eventually("its lines are counted", || gateway.lost() > 0);
        assert_eq!(fetch(gateway.site.address, "/?key=a").status, 200);
        assert_eq!(gateway.stop(), Some(0));
    }
    let site = Site::new();
    site.write(&file);
    let mut program = drip();
    program.arg("-c").arg(site.file());
    let command = launch(&program, "no_stderr");
    let mut gateway = Gateway::run_as(site, command);
    gateway.wait_until_ready();
    assert_eq!(gateway.fetch("/?key=a").status, 200);
    gateway.signal(Signal::TERM);
    assert_eq!(gateway.wait(2 * SOON).code(), Some(0));
}

#[test]
fn a_start_that_fails_ends_although_nobody_reads_why() {
    let (reader, mut writer) = pipe().expect("a pipe");
    // As much as the pipe holds.
    writer.write_all(&vec![b'x'; 64 * 1024]).expect("room");
    let site = Site::new();
    site.write(&one_zone(&Origin::start(), "1r/s", "burst = 0"));
    let _taken = TcpListener::bind(site.address).expect("a free address");
    let mut command = drip();
    command.arg("-c").arg(site.file()).stderr(writer);
    let mut process = command.spawn().expect("the program starts");
    drop(command);
    let mut status = None;
    eventually("it ends", || {
        status = process.try_wait().expect("a child");
        status.is_some()
    });
    assert_eq!(status.and_then(|status| status.code()), Some(1));
    drop(reader);
}
