//! Tests of `drip advise`, run as a user runs it.

mod clients;
mod gate;
mod logs;
mod memory;
mod odd;
mod zone;

use std::fs;
use std::path::Path;
use std::process::Output;

use crate::support::drip;

/// Runs the program in a folder.
fn run(folder: &Path, args: &[&str]) -> Output {
    drip().current_dir(folder).args(args).output().unwrap()
}

/// Returns the output of `drip advise` for a log in a folder.
fn advise(folder: &Path, args: &[&str]) -> String {
    let output = run(folder, &[&["advise"], args].concat());
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the lines to paste.
fn toml(report: &str) -> &str {
    let (_, rest) = report
        .split_once("zone of this name:\n\n")
        .expect("lines to paste");
    rest.split("\nFor a gate").next().expect("a part")
}

/// Returns a file with an origin and a route, and the lines pasted at its end.
fn pasted(origin: &str, toml: &str) -> String {
    format!(
        "[origins.app]\nservers = [\"http://{origin}\"]\n\n[[routes]]\npath = \"/\"\norigin = \"app\"\n{toml}"
    )
}

/// Returns the cells of a row: requests, share, maximum within each window, rate and burst.
fn row<'r>(report: &'r str, name: &str) -> Vec<&'r str> {
    let is_it = |line: &&str| line.len() > 40 && line[..40].trim_end() == name;
    let row = report.lines().find(is_it);
    let row = row.unwrap_or_else(|| panic!("no {name} in\n{report}"));
    let cells = row[40..].split("  ").map(str::trim);
    cells.filter(|cell| !cell.is_empty()).collect()
}

/// Returns the rate and burst that fit all keys of a row.
fn fit<'r>(report: &'r str, name: &str) -> (&'r str, u32) {
    let cells = row(report, name);
    let [.., rate, burst] = cells[..] else {
        panic!("{cells:?}")
    };
    (rate, burst.parse().expect("a number"))
}

fn write(folder: &Path, name: &str, text: impl AsRef<[u8]>) {
    fs::write(folder.join(name), text).unwrap();
}
