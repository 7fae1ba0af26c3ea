//! What collapsing would save of the requests of a log.

use std::fmt::Write as _;

use super::logs::{combined, csv, steady};
use super::{advise, toml, write};
use crate::support::drip;

/// A line of drip's own log: when the request came, in milliseconds, and how long it took.
fn line(came: u64, took: u64, asked: [&str; 2], status: u16) -> String {
    let [method, target] = asked;
    let ended = came + took;
    let (minute, second, milli) = (ended / 60_000, ended / 1000 % 60, ended % 1000);
    format!(
        "{{\"time\":\"2026-11-01T09:{minute:02}:{second:02}.{milli:03}Z\",\"client\":\"192.0.2.1\",\"method\":\"{method}\",\
         \"target\":\"{target}\",\"status\":{status},\"origin_seconds\":0.001,\"duration_seconds\":0.{took:03}}}\n"
    )
}

/// A minute in which each second ten ask for the same, 10 ms apart, and five have other wishes.
fn crowd() -> String {
    let mut log = String::new();
    for second in 0..60 {
        let begin = second * 1000;
        for nth in 0..10 {
            log += &line(begin + nth * 10, 50, ["GET", "/news/?page=1"], 200);
        }
        for nth in 0..3 {
            log += &line(begin + 500 + nth, 50, ["POST", "/buy"], 200);
        }
        // The same path, of which each query is another page.
        let target = format!("/news/?page={}", second + 2);
        log += &line(begin + 600, 50, ["GET", &target], 200);
        log += &line(begin + 700, 50, ["GET", "/account"], 302);
    }
    log
}

/// The cells of the row of a path.
fn row<'r>(report: &'r str, path: &str) -> Vec<&'r str> {
    let (_, table) = report.split_once("keep:\n\n").expect("a table");
    let row = table
        .lines()
        .find(|line| line.split_whitespace().next() == Some(path));
    let cells = row.unwrap_or_else(|| panic!("no {path} in\n{report}"));
    let words = cells.split("  ").map(str::trim);
    words.skip(1).filter(|word| !word.is_empty()).collect()
}

#[test]
fn what_collapsing_would_save_is_known_by_path_and_the_lines_are_there_to_paste() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder, "log", crowd());
    let report = advise(folder, &["log"]);
    // In each second two depart: the second one once the first is answered. Kept for 1 s, an answer
    // that came at 1.05 s serves the next second, too, so two depart in three seconds; and for 10 s
    // two in 21 s.
    let others = 300;
    let sent = [others + 120, others + 40, others + 6].map(|sent: u32| sent.to_string());
    let expected = [
        "900", &sent[0], "53.3 %", &sent[1], "62.2 %", &sent[2], "66.0 %",
    ];
    assert_eq!(row(&report, "all"), expected, "{report}");
    let of_news = ["660", "180", "72.7 %", "100", "84.8 %", "66", "90.0 %"];
    assert_eq!(row(&report, "/news/"), of_news, "{report}");
    assert_eq!(
        row(&report, "/buy")[..3],
        ["180", "180", "0.0 %"],
        "{report}"
    );
    assert_eq!(
        row(&report, "/account")[..3],
        ["60", "60", "0.0 %"],
        "{report}"
    );
    assert!(
        report.contains("would save up to 66.0 %\nof 900 requests"),
        "{report}"
    );
    assert!(report.contains("This is an upper bound"), "{report}");
    assert!(!report.contains("less may be saved"), "{report}");
    let table = "[routes.collapse]\n\
        # Of all requests in the log, the departures of others would have answered 53.3 %.\n\
        keep = \"0\"\n";
    assert!(report.contains(table), "{report}");
    let route = "[origins.app]\nservers = [\"http://127.0.0.1:9\"]\n\n[[routes]]\npath = \"/\"\norigin = \"app\"\n\n";
    write(folder, "gateway.toml", format!("{route}{table}"));
    let file = folder.join("gateway.toml");
    let checked = drip().args(["check", "-c"]).arg(file).output().unwrap();
    assert!(checked.status.success(), "{checked:?}");
    assert!(!toml(&report).contains("collapse"), "{report}");
    // In pieces, the later one first, it is the same log.
    let log = crowd();
    let half = log.match_indices('\n').nth(450).unwrap().0 + 1;
    write(folder, "log.1", &log[..half]);
    write(folder, "log.0", &log[half..]);
    assert_eq!(advise(folder, &["log.0", "log.1"]), report);
}

#[test]
fn an_answer_is_to_be_kept_where_that_saves_twice_as_much() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // Four a second, of which none comes while another one is at the origin.
    let lines = (0..240).map(|nth| line(nth * 250, 20, ["GET", "/"], 200));
    write(folder, "log", lines.collect::<String>());
    let report = advise(folder, &["log"]);
    assert_eq!(
        row(&report, "/")[..5],
        ["240", "240", "0.0 %", "48", "80.0 %"],
        "{report}"
    );
    assert!(report.contains("\nkeep = \"1s\"\n"), "{report}");
}

#[test]
fn a_log_without_paths_and_one_that_saves_little_say_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder, "pathless.csv", csv(&steady()));
    let mut different = String::new();
    for nth in 0..600 {
        different += &line(nth * 100, 50, ["GET", &format!("/{}", nth % 580)], 200);
    }
    write(folder, "different", different);
    let private = (0..600).map(|nth| line(nth * 20, 50, ["GET", "/"], 401));
    write(folder, "private", private.collect::<String>());
    for log in ["pathless.csv", "different", "private"] {
        let report = advise(folder, &[log]);
        assert!(!report.contains("ollaps"), "{log}: {report}");
    }
}

#[test]
fn what_the_log_does_not_tell_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder, "seconds", combined(&steady()));
    let report = advise(folder, &["seconds"]);
    assert!(report.contains("so less may be saved"), "{report}");
    let untimed = "6120 requests have no time at the origin in the log; 100ms are assumed\n";
    assert!(report.contains(untimed), "{report}");
    // Without a client there is no key, but there is a target.
    let mut log = String::from("0,a,/x\n");
    for nth in 1..100 {
        writeln!(log, "{}.5,,/x", nth / 50).unwrap();
    }
    write(folder, "log.csv", log);
    let report = advise(folder, &["log.csv"]);
    assert!(report.contains("99 requests have no key"), "{report}");
    assert_eq!(row(&report, "/x")[..3], ["100", "3", "97.0 %"], "{report}");
}
