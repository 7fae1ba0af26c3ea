//! One key that comes much faster than all others, and logs of other programs.

use std::fmt::Write;

use crate::advise::{advise, chosen, run, toml, write};

/// CSV lines: each key sends so many requests in one second, evenly.
fn seconds(keys: &[(&str, u32)]) -> String {
    let mut lines: Vec<(u32, String)> = Vec::new();
    for (key, count) in keys {
        for nth in 0..*count {
            lines.push((nth * 1000 / count, (*key).to_owned()));
        }
    }
    lines.sort();
    let mut text = String::new();
    for (millis, key) in lines {
        writeln!(text, "100.{millis:03},{key}").expect("memory");
    }
    text
}

const OTHERS: [(&str, u32); 6] = [
    ("192.0.2.1", 13),
    ("192.0.2.2", 12),
    ("192.0.2.3", 8),
    ("192.0.2.4", 8),
    ("192.0.2.5", 5),
    ("192.0.2.6", 1),
];

#[test]
fn a_key_that_stands_out_is_told_and_no_limit_is_made_for_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let all = [&OTHERS[..], &[("203.0.113.9", 120)]].concat();
    write(folder, "log.csv", seconds(&all));
    let report = advise(folder, &["log.csv"]);
    assert!(
        report.contains(
            "One key is 9 times the next: 203.0.113.9 came 120 times in a second, the next one 13."
        ),
        "{report}"
    );
    assert!(
        report.contains("The numbers are made without it: 13r/s, burst ")
            && report.contains("With it they would be 120r/s, burst "),
        "{report}"
    );
    assert!(toml(&report).contains("rate = \"13r/s\""), "{report}");
    // It is in the log all the same, and is what the recommendation rejects.
    assert!(chosen(&report).rejected > 0.4, "{report}");

    let for_all = advise(folder, &["--all-keys", "log.csv"]);
    assert!(!for_all.contains("times the next"), "{for_all}");
    assert!(toml(&for_all).contains("rate = \"120r/s\""), "{for_all}");
    assert!(chosen(&for_all).rejected == 0.0, "{for_all}");

    // The same numbers as without it.
    write(folder, "others.csv", seconds(&OTHERS));
    let others = advise(folder, &["others.csv"]);
    assert!(!others.contains("times the next"), "{others}");
    assert_eq!(toml(&others), toml(&report));
}

#[test]
fn several_keys_may_stand_out_among_many() {
    let folder = tempfile::tempdir().expect("a folder");
    let names: Vec<String> = (1..=18).map(|n| format!("192.0.2.{n}")).collect();
    let mut all: Vec<(&str, u32)> = names.iter().map(|name| (&**name, 4)).collect();
    all.extend([("203.0.113.1", 90), ("203.0.113.2", 60)]);
    write(folder.path(), "log.csv", seconds(&all));
    let report = advise(folder.path(), &["log.csv"]);
    assert!(
        report.contains("2 keys are at least 3 times the next in a second: 203.0.113.1 (90), 203.0.113.2 (60); the next one 4."),
        "{report}"
    );
    assert!(report.contains("made without them: 4r/s, "), "{report}");
}

#[test]
fn among_few_keys_or_slow_ones_or_with_named_hours_none_stands_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let few = [("192.0.2.1", 3), ("203.0.113.9", 120)];
    let slow = OTHERS.map(|(key, _)| (key, 1));
    let slow = [&slow[..], &[("203.0.113.9", 9)]].concat();
    let close = [&OTHERS[..], &[("203.0.113.9", 38)]].concat();
    for keys in [&few[..], &slow, &close] {
        write(folder, "log.csv", seconds(keys));
        let report = advise(folder, &["log.csv"]);
        assert!(!report.contains("times the next"), "{report}");
        let most = keys.iter().map(|(_, count)| count).max().expect("a key");
        assert!(
            toml(&report).contains(&format!("rate = \"{most}r/s\"")),
            "{report}"
        );
    }
    let far = [&OTHERS[..], &[("203.0.113.9", 120)]].concat();
    write(folder, "log.csv", seconds(&far));
    let hours = ["--good", "1970-01-01T00:01/00:02", "log.csv"];
    let report = advise(folder, &hours);
    assert!(toml(&report).contains("rate = \"120r/s\""), "{report}");
}

/// Three requests of one client within a second and one of another a second later, as each program logs them.
fn logs() -> [(&'static str, String); 6] {
    let requests = [(7, 47, 100), (7, 47, 200), (7, 47, 300), (8, 48, 300)];
    let log = |line: &dyn Fn(u32, u32, u32) -> String| -> String {
        requests
            .iter()
            .map(|(client, second, millis)| line(*client, *second, *millis) + "\n")
            .collect()
    };
    [
        (
            "haproxy",
            log(&|client, second, millis| {
                format!(
                    "Nov 21 03:33:{second} lb haproxy[1]: 192.0.2.{client}:5000 [21/Nov/2026:03:33:{second}.{millis}] in app/srv1 0/0/1/20/50 200 66 - - ---- 1/1/1/1/0 0/0 \"GET /a HTTP/1.1\""
                )
            }),
        ),
        (
            "caddy",
            log(&|client, second, millis| {
                format!(
                    "{{\"level\":\"info\",\"ts\":\"2026-11-21T03:33:{second}.{millis}Z\",\"msg\":\"handled request\",\"request\":{{\"client_ip\":\"192.0.2.{client}\",\"method\":\"GET\",\"uri\":\"/a\"}},\"duration\":0.05,\"status\":200}}"
                )
            }),
        ),
        (
            "traefik",
            log(&|client, second, millis| {
                format!(
                    "{{\"ClientHost\":\"192.0.2.{client}\",\"Duration\":50000000,\"OriginDuration\":50000000,\"RequestMethod\":\"GET\",\"RequestPath\":\"/a\",\"StartUTC\":\"2026-11-21T03:33:{second}.{millis}Z\"}}"
                )
            }),
        ),
        (
            "traefik",
            log(&|client, second, _| {
                format!(
                    "192.0.2.{client} - - [21/Nov/2026:03:33:{second} +0000] \"GET /a HTTP/1.1\" 200 66 \"-\" \"-\" 1 \"app@file\" \"http://198.51.100.1:80\" 50ms"
                )
            }),
        ),
        (
            "combined",
            log(&|client, second, _| {
                format!(
                    "192.0.2.{client} - - [21/Nov/2026:03:33:{second} +0000] \"GET /a?q=\\\"b\\\" HTTP/1.1\" 200 66 \"-\" \"an \\\"agent\\\"\""
                )
            }),
        ),
        (
            "alb",
            log(&|client, second, millis| {
                format!(
                    "http 2026-11-21T03:33:{second}.{millis}000Z app/edge/1 192.0.2.{client}:5000 198.51.100.1:80 0.000 0.050 0.000 200 200 34 66 \"GET http://www.example:80/a HTTP/1.1\" \"curl/8\" - - arn:1 \"Root=1\" \"-\" \"-\" 0 2026-11-21T03:33:{second}.{millis}000Z \"forward\" \"-\" \"-\" \"-\" \"-\" \"-\" \"-\""
                )
            }),
        ),
    ]
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
            assert!(
                report.starts_with("4 requests of 2 keys by $remote_addr, 2026-11-21 03:33:4"),
                "{form}: {report}"
            );
            assert!(
                report.contains("recommended: rate 3r/s"),
                "{form}: {report}"
            );
            // A rate for the origin as a whole; where durations are known, places, too.
            assert!(report.contains("[origins.NAME]"), "{form}: {report}");
            assert_eq!(
                report.contains("max_in_flight"),
                form != "combined",
                "{form}: {report}"
            );

            let replay = [&["simulate", "--rows"], format, &["access.log"]].concat();
            let rows = run(folder, &replay);
            assert!(rows.status.success(), "{form}: {rows:?}");
            let rows = String::from_utf8(rows.stdout).expect("text");
            let verdicts: Vec<&str> = rows
                .lines()
                .skip(1)
                .filter_map(|row| row.split(',').nth(2))
                .collect();
            assert_eq!(
                verdicts,
                ["passed", "delayed", "rejected", "passed"],
                "{form}: {rows}"
            );
        }
    }
}

#[test]
fn a_format_that_is_named_holds_and_an_unknown_one_is_refused_with_those_there_are() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let (_, combined) = &logs()[4];
    write(folder, "access.log", combined);
    let wrong = run(folder, &["advise", "--format", "haproxy", "access.log"]);
    assert_eq!(wrong.status.code(), Some(1), "{wrong:?}");
    let complaint = String::from_utf8(wrong.stderr).expect("text");
    assert!(
        complaint.contains("this is not HAProxy's HTTP log"),
        "{complaint}"
    );
    for command in ["advise", "simulate"] {
        let unknown = run(folder, &[command, "--format", "iis", "access.log"]);
        assert_eq!(unknown.status.code(), Some(2), "{unknown:?}");
        let complaint = String::from_utf8(unknown.stderr).expect("text");
        assert!(
            complaint.contains("haproxy, caddy, traefik, alb"),
            "{complaint}"
        );
    }
}

#[test]
fn a_zone_does_not_apply_to_lines_that_name_their_keys() {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), "log.csv", "1,a\n1,a\n");
    let refused = run(folder.path(), &["advise", "--zone", "z", "log.csv"]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    let complaint = String::from_utf8(refused.stderr).expect("text");
    assert!(
        complaint.contains("--zone is for drip's own log"),
        "{complaint}"
    );
}
