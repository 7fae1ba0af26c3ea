//! Tests of `drip advise` with logs that contain errors.

use super::logs::{combined, csv, json, packed, steady};
use super::{advise, fit, run, write};
use crate::support::assert_contains;

/// Lines that cannot be sorted are reported. `tools::advise::order` does the sorting.
#[test]
fn lines_that_cannot_be_sorted_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut requests = steady();
    // A hundred seconds too late.
    requests.push((10_000, "192.0.2.1".to_owned()));
    write(folder, "late", csv(&requests));
    let report = advise(folder, &["late"]);
    let received = "\n1 requests are more than 60 s";
    assert_contains!(report, received);
    // Newest line first: the report warns that its numbers cannot be right.
    requests.reverse();
    write(folder, "reversed", csv(&requests));
    let report = advise(folder, &["reversed"]);
    assert_contains!(report, "sort the log by time first");
}

#[test]
fn a_log_that_is_named_twice_counts_once() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder, "access.log", combined(&steady()));
    let once = advise(folder, &["access.log"]);
    let output = run(folder, &["advise", "access.log", "./access.log"]);
    assert_eq!(String::from_utf8(output.stdout).unwrap(), once);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said, "./access.log: listed twice, read once\n");
}

#[test]
fn what_comes_a_nanosecond_too_early_is_not_rejected_either() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder, "log.csv", "0.000000002,a\n0.5,a\n");
    let report = advise(folder, &["log.csv"]);
    assert_eq!(fit(&report, "all keys"), ("2r/s", 1), "{report}");
}

#[test]
fn bad_lines_are_named_by_log_and_line_and_the_rest_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let good = csv(&steady());
    write(folder, "good.csv", &good);
    write(
        folder,
        "bad.csv",
        good.replacen('\n', "\nnonsense\nx,192.0.2.9\n", 1),
    );
    let output = run(folder, &["advise", "bad.csv"]);
    assert!(output.status.success());
    let said = String::from_utf8(output.stderr).unwrap();
    let first = "bad.csv: line 2: this is not time_seconds,key[,route_path[,cost]]\n";
    assert_contains!(said, first, "bad.csv: line 3: \"x\" is not a time");
    assert!(said.ends_with("2 lines could not be read\n"), "{said}");
    let report = String::from_utf8(output.stdout).unwrap();
    assert_eq!(report, advise(folder, &["good.csv"]));

    // A log that cannot be opened or is truncated is reported, and the others are read.
    let mut cut = packed(&good);
    cut.truncate(cut.len() - 9);
    write(folder, "cut.gz", cut);
    let output = run(folder, &["advise", "no such log", "cut.gz"]);
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert_contains!(said, "no such log: ", "cut.gz: ", ", after line 6");

    write(folder, "nonsense", "nonsense\n".repeat(50));
    write(folder, "empty", "");
    write(folder, "zeros.gz", [0x1f, 0x8b, 0, 0, 0, 0, 0, 0]);
    for log in ["nonsense", "empty", "no such log", "zeros.gz", "."] {
        let output = run(folder, &["advise", log]);
        assert_eq!(output.status.code(), Some(1), "{log}");
        let only_complains = output.stdout.is_empty() && !output.stderr.is_empty();
        assert!(only_complains, "{log}");
        let is_short = output.stderr.len() < 2000;
        assert!(is_short, "{log}: too many lines are reported");
    }
}

#[test]
fn a_first_line_that_was_cut_off_is_one_bad_line() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for (name, log) in [
        ("access.log", combined(&steady())),
        ("log.json", json(&steady())),
        ("log.csv", csv(&steady())),
    ] {
        write(folder, name, &log);
        let whole = advise(folder, &[name]);
        // The output of `tail -c` begins in the middle of a line.
        let header = log.find('\n').filter(|_| name == "log.csv");
        let begin = header.map_or("", |header| &log[..=header]);
        write(
            folder,
            name,
            format!("{begin}Gecko) /5.0\" x, y\n{}", &log[begin.len()..]),
        );
        let output = run(folder, &["advise", name]);
        let said = String::from_utf8(output.stderr).unwrap();
        let end = "\n1 lines could not be read\n";
        assert!(said.ends_with(end), "{name}: {said}");
        assert_eq!(String::from_utf8(output.stdout).unwrap(), whole, "{name}");
    }
}
