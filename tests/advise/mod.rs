//! `drip advise`, run as a user runs it.

mod collapse;
mod gate;
mod live;
mod logs;
mod memory;
mod odd;
mod outliers;
mod plans;

use std::fs;
use std::path::Path;
use std::process::Output;

use crate::support::drip;

/// Runs the program in a folder.
fn run(folder: &Path, args: &[&str]) -> Output {
    drip().current_dir(folder).args(args).output().unwrap()
}

/// What `drip advise` prints for a log in a folder.
fn advise(folder: &Path, args: &[&str]) -> String {
    let output = run(folder, &[&["advise"], args].concat());
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The lines to paste.
fn toml(report: &str) -> &str {
    report.split_once("limit:\n\n").expect("lines to paste").1
}

/// A file with an origin and a route, and the lines pasted at its end.
fn pasted(origin: &str, toml: &str) -> String {
    format!(
        "[origins.app]\nservers = [\"http://{origin}\"]\n\n[[routes]]\npath = \"/\"\norigin = \"app\"\n{toml}"
    )
}

/// A row of the table of candidates.
#[derive(Debug)]
struct Row {
    is_chosen: bool,
    rate: String,
    burst: u32,
    /// Shares from 0 to 1, in the order of the table.
    delayed: f64,
    rejected: f64,
    rejected_of: Vec<f64>,
    /// In seconds.
    p99: f64,
    longest: f64,
}

fn table(report: &str) -> Vec<Row> {
    let (_, rest) = report.split_once("p99 wait").expect("a table");
    let rows = rest
        .lines()
        .skip(1)
        .take_while(|line| !line.starts_with('('));
    rows.map(row).collect()
}

fn row(line: &str) -> Row {
    let is_chosen = line.starts_with('>');
    let cells = line.trim_start_matches('>').split("  ").map(str::trim);
    let cells: Vec<&str> = cells.filter(|cell| !cell.is_empty()).collect();
    let share = |cell: &str| match cell.trim_end_matches(" %") {
        "< 0.1" => 0.0005,
        "> 99.9" => 0.9995,
        number => number.parse::<f64>().expect(cell) / 100.0,
    };
    let seconds = |cell: &str| match cell.split_once(' ') {
        None => 0.0,
        Some((number, "ms")) => number.parse::<f64>().expect(cell) / 1000.0,
        Some((number, _)) => number.parse().expect(cell),
    };
    Row {
        is_chosen,
        rate: cells[0].to_owned(),
        burst: cells[1].parse().expect(line),
        delayed: share(cells[2]),
        p99: seconds(cells[3]),
        longest: seconds(cells[4]),
        rejected: share(cells[5]),
        rejected_of: cells[6..].iter().map(|cell| share(cell)).collect(),
    }
}

fn chosen(report: &str) -> Row {
    let chosen = table(report).into_iter().find(|row| row.is_chosen);
    chosen.unwrap_or_else(|| panic!("nothing is recommended:\n{report}"))
}

fn near(found: f64, wanted: f64, slack: f64) -> bool {
    (found - wanted).abs() <= slack
}

fn write(folder: &Path, name: &str, text: impl AsRef<[u8]>) {
    fs::write(folder.join(name), text).unwrap();
}
