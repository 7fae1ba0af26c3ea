//! Tests of `drip simulate`, run as a user runs it.

mod gate;

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use crate::support::assert_contains;
use crate::top::pty::terminal;

struct Bench {
    folder: TempDir,
}

impl Bench {
    fn new(settings: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let origin = "[origins.app]\nservers = [\"http://127.0.0.1:9000\"]\n";
        fs::write(
            folder.path().join("gateway.toml"),
            format!("{origin}{settings}"),
        )
        .unwrap();
        Self { folder }
    }

    fn simulate(&self, trace: impl AsRef<[u8]>) -> Output {
        let (file, path) = (
            self.folder.path().join("gateway.toml"),
            self.folder.path().join("trace"),
        );
        fs::write(&path, trace).unwrap();
        let mut drip = Command::new(env!("CARGO_BIN_EXE_drip"));
        let drip = drip.args(["simulate", "-c"]).arg(file).arg(path);
        drip.output().unwrap()
    }

    /// Returns the rows after the header.
    fn rows(&self, trace: &str) -> Vec<String> {
        let output = self.simulate(trace);
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        let mut lines = text.lines().map(ToOwned::to_owned);
        let names = "time,key,verdict,departure,delay,excess";
        assert_eq!(lines.next().unwrap(), names);
        lines.collect()
    }
}

fn one_zone(rate: &str, limit: &str) -> Bench {
    Bench::new(&format!(
        "[zones.z]\nkey = \"$remote_addr\"\nrate = \"{rate}\"\n[[routes]]\npath = \"/\"\norigin = \"app\"\n\
         limits = [{{ zone = \"z\", {limit} }}]\n"
    ))
}

#[test]
fn rows_have_time_key_verdict_departure_delay_and_excess() {
    let rows = one_zone("10r/s", "burst = 1").rows("time,key\n1.5,a\n1.5,a\n1.5,a\n1.5,b\n");
    let expected = [
        "1.500000000,a,passed,1.500000000,0.000000000,0.000000000",
        "1.500000000,a,delayed,1.600000000,0.100000000,1.000000000",
        "1.500000000,a,rejected,,,2.000000000",
        "1.500000000,b,passed,1.500000000,0.000000000,0.000000000",
    ];
    assert_eq!(rows, expected);
}

#[test]
fn what_the_gateway_refuses_counts_for_nothing_and_arguments_are_read_decoded() {
    let bench = Bench::new(
        "[zones.z]\nkey = \"$arg_key\"\nrate = \"1r/m\"\n[[routes]]\npath = \"/\"\norigin = \"app\"\n\
         limits = [{ zone = \"z\", burst = 0 }]\n\
         [[routes]]\npath = \"/\"\norigin = \"app\"\nmatch = { \"query:free\" = \"1\" }\n",
    );
    let log = |requests: &[&str]| -> String {
        let line = |request: &&str| {
            format!(
                "192.0.2.1 - - [21/Nov/2026:03:33:01 +0000] \"{request} HTTP/1.1\" 200 6 \"-\" \"curl\"\n"
            )
        };
        requests.iter().map(line).collect()
    };
    let refused = [
        "post /?key=a",
        "POST /?key=a&key=b",
        "POST /?key=a&free=0&free=1",
    ];
    let counted = ["POST /?%6Bey=a", "POST /?key=%61", "POST /"];
    let rows = bench.rows(&log(&[&refused[..], &counted[..]].concat()));
    let verdicts = rows.iter().map(|row| row.split(',').nth(2).unwrap());
    let expected = ["passed", "rejected", "passed"];
    assert_eq!(verdicts.collect::<Vec<_>>(), expected);
}

#[test]
fn bad_lines_are_named_and_the_rest_goes_on() {
    let long = "x".repeat(3 << 20);
    let trace = format!("0,a\nnonsense\nx,b\n{long}\n1,a\n");
    let output = one_zone("1r/s", "burst = 0").simulate(trace);
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 3);
    let received = String::from_utf8_lossy(&output.stderr).into_owned();
    let first = "line 2: this is not time_seconds,key[,route_path[,cost]]";
    assert_contains!(received, first, "line 3: \"x\" is not a time");
    let long = "line 4: this line is longer than 1 MB";
    assert_contains!(received, long, "3 lines could not be read");
}

/// Returns the output of `drip simulate`, run in a folder.
fn said(folder: &Path, args: &[&str]) -> String {
    let mut drip = Command::new(env!("CARGO_BIN_EXE_drip"));
    let output = drip
        .current_dir(folder)
        .arg("simulate")
        .args(args)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_summary_counts_and_names_the_keys_that_are_limited() {
    let bench = one_zone("1r/s", "burst = 1");
    let folder = bench.folder.path();
    // a: one passes, one waits, one is rejected; b: one waits; c and d are not limited.
    fs::write(folder.join("trace"), "0,a\n0,a\n0,a\n0,b\n0,b\n5,c\n6,d\n").unwrap();
    let text = said(folder, &["--summary", "trace"]);
    for line in [
        "passed at once                       4 (57.1 %)",
        "delayed                              2 (28.6 %)",
        "rejected                             1 (14.3 %)",
        "2 of 4 keys are limited",
        "  a                                                1         1.000 s",
        "  b                                                0         1.000 s",
    ] {
        assert!(text.contains(line), "no {line:?} in\n{text}");
    }
    assert!(!text.contains("time,key,verdict"), "{text}");
    assert!(!text.contains("  c "), "{text}");
    // A 404 is no better for the client than a rejection.
    fs::write(folder.join("unrouted"), "0,a,x\n").unwrap();
    let unrouted = said(folder, &["--summary", "unrouted"]);
    let row = "  a                                                1";
    assert_contains!(unrouted, row, "requests without a route count as rejected");
    assert_eq!(said(folder, &["--rows", "trace"]), said(folder, &["trace"]));
}

/// Returns the program's output on a terminal.
fn said_on_terminal(folder: &Path, args: &[&str]) -> String {
    let (master, terminal) = terminal();
    let mut drip = Command::new(env!("CARGO_BIN_EXE_drip"));
    drip.arg("simulate").args(args).current_dir(folder);
    drip.stdout(terminal).stdin(Stdio::null());
    let mut process = drip.spawn().unwrap();
    // The test's own handle of the terminal must be closed. Otherwise reading would not end.
    drop(drip);
    let mut shown = Vec::new();
    // Reading a terminal that all programs have closed is an error, not an end.
    let _end = { master }.read_to_end(&mut shown);
    assert!(process.wait().unwrap().success());
    String::from_utf8(shown).unwrap()
}

#[test]
fn a_terminal_gets_the_summary_and_a_pipe_gets_the_rows() {
    let bench = one_zone("1r/s", "burst = 1");
    let folder = bench.folder.path();
    fs::write(folder.join("trace"), "0,a\n0,a\n").unwrap();
    let shown = said_on_terminal(folder, &["trace"]);
    assert_contains!(shown, "1 of 1 keys are limited");
    assert!(!shown.contains("time,key,verdict"), "{shown}");
    let rows = said_on_terminal(folder, &["--rows", "trace"]);
    assert!(rows.starts_with("time,key,verdict"), "{rows}");
    assert!(said(folder, &["trace"]).starts_with("time,key,verdict"));
}

#[test]
fn a_plot_changes_nothing_of_the_rows_and_is_the_same_each_time() {
    let bench = one_zone("10r/s", "burst = 5");
    let folder = bench.folder.path();
    let trace = "0,a\n".repeat(9);
    let rows = bench.rows(&trace).join("\n");
    let plotted = said(folder, &["--plot", "one.svg", "trace"]);
    let expected = format!("time,key,verdict,departure,delay,excess\n{rows}\n");
    assert_eq!(plotted, expected);
    said(folder, &["--plot", "two.svg", "trace"]);
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    assert_eq!(read("one.svg"), read("two.svg"));
    assert!(read("one.svg").starts_with("<svg ") && read("one.svg").contains("requests waiting"));
    let mut drip = Command::new(env!("CARGO_BIN_EXE_drip"));
    let args = ["simulate", "--plot", "no/such/folder.svg", "trace"];
    let failed = drip.current_dir(folder).args(args).output().unwrap();
    assert_eq!(failed.status.code(), Some(1));
}

#[test]
fn nothing_readable_is_a_failure() {
    let bench = one_zone("1r/s", "burst = 0");
    let ended = bench.simulate("nonsense\nmore of it\n");
    assert_eq!(ended.status.code(), Some(1));
    assert_eq!(bench.simulate("").status.code(), Some(0));
    let mut drip = Command::new(env!("CARGO_BIN_EXE_drip"));
    drip.args(["simulate", "-c"])
        .arg(bench.folder.path().join("gateway.toml"));
    let missing = drip.arg("no such trace").output().unwrap();
    assert_eq!(missing.status.code(), Some(1));
}

#[test]
fn late_lines_are_decided_at_the_time_of_earlier_ones() {
    let bench = one_zone("1r/s", "burst = 0");
    let rows = bench.rows("5,a\n3,b\n6,a\n");
    assert!(rows[1].starts_with("5.000000000,b,passed"), "{rows:?}");
    let received = String::from_utf8(bench.simulate("5,a\n3,b\n6,a\n").stderr).unwrap();
    assert_contains!(received, "1 requests are out of order");
}

#[test]
fn a_full_zone_forgets_the_least_recently_used_key_that_nobody_waits_for() {
    let bench = Bench::new(
        "[zones.z]\nkey = \"$remote_addr\"\nrate = \"1r/d\"\nmax_keys = 2\n\
         [[routes]]\npath = \"/\"\norigin = \"app\"\nlimits = [{ zone = \"z\", burst = 9, nodelay = true }]\n\
         [[routes]]\npath = \"/wait\"\norigin = \"app\"\nlimits = [{ zone = \"z\", burst = 9 }]\n",
    );
    let excess = |trace: &str| -> Vec<String> {
        bench
            .rows(trace)
            .iter()
            .map(|row| row.rsplit(',').next().unwrap()[..1].to_owned())
            .collect()
    };
    let found = excess("0,a\n0,b\n0,a\n0,c\n0,a\n0,b\n");
    assert_eq!(found, ["0", "0", "1", "0", "2", "0"]);
    let waiting = bench.rows("0,a\n0,b\n0,a,/wait\n0,b,/wait\n0,c\n");
    assert!(waiting[4].contains(",rejected,"), "{waiting:?}");
}

/// A zone counts by its algorithm. `limit::meter::tests` has the examples of each algorithm.
#[test]
fn a_zone_counts_by_its_algorithm() {
    let bench = Bench::new(
        "[zones.z]\nkey = \"$remote_addr\"\nalgorithm = \"fixed_window\"\nrate = \"10r/m\"\n\
         [[routes]]\npath = \"/\"\norigin = \"app\"\nlimits = [{ zone = \"z\" }]\n",
    );
    // Twenty in two seconds, across the edge of a minute.
    let rows = bench.rows(&("59,a\n".repeat(11) + &"60,a\n".repeat(11)));
    let rejected = |row: &String| row.contains(",rejected,");
    let rejected: Vec<usize> = (0..22).filter(|nth| rejected(&rows[*nth])).collect();
    assert_eq!(rejected, [10, 21]);
}
