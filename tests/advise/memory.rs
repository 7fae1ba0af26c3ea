//! Tests that tools read any log in bounded memory, and report what they left out.
//!
//! The logs have any number of keys, paths and seconds, and lines of any length.

use std::io::{self, BufWriter, Read, Write};
use std::process::{ChildStdin, Stdio};
use std::thread;
use std::time::Duration;

use crate::support::night::day_or_night;
use crate::support::process::Process;
use crate::support::{assert_contains, drip};

const MB: u64 = 1 << 20;

/// Runs the program on a log that `write` writes to its standard input.
///
/// Returns both outputs, and the peak memory.
fn on_log(
    args: &[&str],
    write: impl FnOnce(&mut BufWriter<ChildStdin>) -> io::Result<()>,
) -> (String, u64) {
    let mut child = drip()
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program");
    let process = Process::of(child.id());
    let peak = thread::spawn(move || {
        let mut peak = 0;
        while let Some(now) = process.peak_memory() {
            peak = now;
            thread::sleep(Duration::from_millis(5));
        }
        peak
    });
    let read = |output: Option<Box<dyn Read + Send>>| {
        thread::spawn(move || {
            let mut text = String::new();
            let mut output = output.expect("a pipe");
            output.read_to_string(&mut text).expect("text");
            text
        })
    };
    let stdout = read(child.stdout.take().map(|it| Box::new(it) as _));
    let stderr = read(child.stderr.take().map(|it| Box::new(it) as _));
    let mut log = BufWriter::with_capacity(1 << 20, child.stdin.take().expect("a pipe"));
    write(&mut log).expect("the program reads all of it");
    drop(log.into_inner().expect("the program reads all of it"));
    let received = [stdout, stderr].map(|it| it.join().expect("its output"));
    child.wait().expect("it ends");
    (received.concat(), peak.join().expect("its memory"))
}

/// Number of keys remembered at once.
const KNOWN: u32 = 1 << 20;
/// Length of keys and paths that are not shortened.
const LONG: usize = 110;

/// Writes an endless line that no real log has.
fn write_long_line(log: &mut impl Write) -> io::Result<()> {
    for _ in 0..64 {
        log.write_all(&vec![b'x'; 1 << 20])?;
    }
    log.write_all(b"\n")
}

/// A million long keys and paths and an endless line take less than 700 MB.
///
/// By night there are more keys than are remembered at once.
#[test]
#[ignore = "loads both cores: tests/run.sh long"]
fn a_million_long_keys_and_paths_and_an_endless_line_take_less_than_700_mb() {
    let (keys, most) = day_or_night((100_000_u32, 150 * MB), (2_100_000, 700 * MB));
    let (received, peak) = on_log(&["advise", "-"], |log| {
        let long = "x".repeat(LONG);
        for nth in 0..keys {
            let (second, micros) = (nth / 8000, nth % 8000);
            writeln!(log, "{second}.{micros:06},{nth:07}{long},/{nth:07}{long}")?;
        }
        write_long_line(log)
    });
    println!("{} MB", peak / MB);
    let bad = format!("line {}: this line is longer than 1 MB", keys + 1);
    assert_contains!(received, &bad);
    let forgotten = format!(
        "{} times a key was forgotten",
        keys.saturating_sub(KNOWN).max(1)
    );
    assert_eq!(received.contains(&forgotten), keys > KNOWN, "{received}");
    assert!(peak < most, "{} MB", peak / MB);
}
