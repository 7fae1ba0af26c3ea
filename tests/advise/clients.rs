//! Tests of `drip advise` with a dominant client, and with logs of other programs.

use std::fmt::Write;

use crate::advise::{advise, fit, row, run, toml, write};
use crate::support::assert_contains;

/// Returns CSV lines of two minutes. Each key sends this many requests every 10 s, in one second.
fn bursts(keys: &[(&str, u32)]) -> String {
    let mut text = String::new();
    for second in (600..=720).step_by(10) {
        for (key, count) in keys {
            for _ in 0..*count {
                writeln!(text, "{second}.125,{key}").expect("memory");
            }
        }
    }
    text
}

const OTHERS: [(&str, u32); 3] = [("192.0.2.1", 4), ("192.0.2.2", 3), ("192.0.2.3", 1)];

#[test]
fn a_key_with_most_requests_is_named_first_and_the_numbers_are_made_without_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let all = [&OTHERS[..], &[("203.0.113.9", 32)]].concat();
    write(folder, "log.csv", bursts(&all));
    let report = advise(folder, &["log.csv"]);
    let first = "203.0.113.9 made 80.0 % of all requests.\n520 requests of 4 keys ";
    assert!(report.starts_with(first), "{report}");
    // A minute has six bursts. All but one request of each burst exceed the rate.
    let with = ["520", "100.0 %", "32", "32", "192", "3.2r/s", "31"];
    assert_eq!(row(&report, "all keys"), with, "{report}");
    let without = ["104", "20.0 %", "4", "4", "24", "24r/m", "3"];
    assert_eq!(row(&report, "without 203.0.113.9"), without, "{report}");
    let of_third = ["39", "7.5 %", "3", "3", "18", "18r/m", "2"];
    assert_eq!(row(&report, "192.0.2.2"), of_third, "{report}");
    assert_eq!(
        toml(&report),
        "# Made without 203.0.113.9. With it: rate = \"3.2r/s\", burst = 31.\n\
         limits = [{ zone = \"per_client\", burst = 3, nodelay = true }]\n\n\
         [zones.per_client]\nkey = \"$remote_addr\"\nrate = \"24r/m\"\n"
    );
    // The numbers equal those of a log without the key. No key has more requests than all others.
    let close = [&OTHERS[..], &[("192.0.2.4", 4)]].concat();
    write(folder, "others.csv", bursts(&close));
    let others = advise(folder, &["others.csv"]);
    assert_eq!(fit(&others, "all keys"), ("24r/m", 3), "{others}");
    let received = "# Made for all. Without 192.0.2.1: rate = \"24r/m\", burst = 3.\n";
    assert!(toml(&others).starts_with(received), "{others}");
    // Without other keys there are no numbers without it.
    write(folder, "one.csv", bursts(&OTHERS[..1]));
    let one = advise(folder, &["one.csv"]);
    assert!(!one.contains("ithout"), "{one}");
}

#[test]
fn a_log_that_is_too_short_for_a_window_has_no_column_for_it() {
    let folder = tempfile::tempdir().expect("a folder");
    for (seconds, header, rate) in [
        (9, "1 s        rate", "2r/s"),
        (40, "1 s    10 s        rate", "1.1r/s"),
        (70, "1 s    10 s   1 min        rate", "1.1r/s"),
    ] {
        // One request every other second, and two in the first second of each minute.
        let lines = (600..=600 + seconds).map(|at| {
            let line = format!("{at},a\n");
            line.repeat(if at % 60 == 0 { 2 } else { 1 })
        });
        write(folder.path(), "log.csv", lines.collect::<String>());
        let report = advise(folder.path(), &["log.csv"]);
        assert!(report.contains(header) && !report.contains('?'), "{report}");
        assert_eq!(fit(&report, "all keys").0, rate, "{report}");
    }
}

/// Returns logs in two formats with three requests of one client and one of another client.
///
/// The three requests are within a second, the other one a second later. `src/gateway/replay/line`
/// tests what is read of each format.
fn logs() -> [(&'static str, String); 2] {
    let requests = [(7, 47, 100), (7, 47, 200), (7, 47, 300), (8, 48, 300)];
    let log = |line: &dyn Fn(u32, u32, u32) -> String| -> String {
        let lines = requests
            .iter()
            .map(|(client, second, millis)| line(*client, *second, *millis));
        lines.map(|line| line + "\n").collect()
    };
    let haproxy = log(&|client, second, millis| {
        format!(
            "Nov 21 03:33:{second} lb haproxy[1]: 192.0.2.{client}:5000 [21/Nov/2026:03:33:{second}.{millis}] in app/srv1 0/0/1/20/50 200 66 - - ---- 1/1/1/1/0 0/0 \"GET /a HTTP/1.1\""
        )
    });
    let combined = log(&|client, second, _| {
        format!(
            "192.0.2.{client} - - [21/Nov/2026:03:33:{second} +0000] \"GET /a?q=\\\"b\\\" HTTP/1.1\" 200 66 \"-\" \"an \\\"agent\\\"\""
        )
    });
    [("haproxy", haproxy), ("combined", combined)]
}

#[test]
fn logs_of_other_programs_are_known_by_their_lines() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let file = "[origins.app]\nservers = [\"http://127.0.0.1:9000\"]\n[zones.z]\nkey = \"$remote_addr\"\nrate = \"1r/s\"\n\
                [[routes]]\npath = \"/a\"\norigin = \"app\"\nlimits = [{ zone = \"z\", burst = 1 }]\n";
    write(folder, "gateway.toml", file);
    for (form, log) in logs() {
        write(folder, "access.log", &log);
        for format in [&[][..], &["--format", form]] {
            let report = advise(folder, &[format, &["access.log"]].concat());
            let first = "192.0.2.7 made 75.0 % of all requests.\n\
                         4 requests of 2 keys by $remote_addr, 2026-11-21 03:33:4";
            assert!(report.starts_with(first), "{form}: {report}");
            assert_eq!(fit(&report, "all keys").0, "3r/s", "{form}: {report}");
            // The advice has a rate for the whole origin, and permits if durations are known.
            assert!(report.contains("[origins.NAME]"), "{form}: {report}");
            let has_permits = report.contains("max_in_flight");
            assert_eq!(has_permits, form != "combined", "{form}: {report}");

            let replay = [&["simulate", "--rows"], format, &["access.log"]].concat();
            let rows = run(folder, &replay);
            assert!(rows.status.success(), "{form}: {rows:?}");
            let rows = String::from_utf8(rows.stdout).expect("text");
            let verdicts: Vec<&str> = rows
                .lines()
                .skip(1)
                .filter_map(|row| row.split(',').nth(2))
                .collect();
            let expected = ["passed", "delayed", "rejected", "passed"];
            assert_eq!(verdicts, expected, "{form}: {rows}");
        }
    }
}

#[test]
fn what_does_not_fit_the_log_is_refused_with_its_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let [_, (_, combined)] = logs();
    write(folder, "access.log", combined);
    write(folder, "log.csv", "1,a\n1,a\n");
    for (args, code, reason) in [
        (
            &["advise", "--format", "haproxy", "access.log"][..],
            1,
            "this is not HAProxy's HTTP log",
        ),
        (
            &["simulate", "--format", "iis", "access.log"],
            2,
            "haproxy, caddy, traefik, alb",
        ),
        (
            &["advise", "--zone", "z", "log.csv"],
            1,
            "--zone needs drip's own log",
        ),
    ] {
        let refused = run(folder, args);
        assert_eq!(refused.status.code(), Some(code), "{refused:?}");
        let complaint = String::from_utf8(refused.stderr).expect("text");
        assert_contains!(complaint, reason);
    }
}
