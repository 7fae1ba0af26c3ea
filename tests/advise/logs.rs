//! Tests of `drip advise` with logs for which the right recommendation is known.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::process::Stdio;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::{advise, fit, pasted, row, run, toml, write};
use crate::support::{assert_contains, drip};

/// Time in milliseconds since 2026-11-01T09:00:00Z, and a key.
pub type Request = (u64, String);

const NINE: u64 = 1_793_523_600_000;

/// Returns two minutes of requests: one key sends five every 100 ms, the others a few.
pub fn steady() -> Vec<Request> {
    let mut requests = Vec::new();
    for second in 0..120 {
        for nth in 0..50 {
            requests.push((second * 1000 + nth / 5 * 100, "192.0.2.1".to_owned()));
        }
        requests.push((
            second * 1000 + second * 37 % 1000,
            format!("192.0.2.{}", second % 20 + 2),
        ));
    }
    requests.sort();
    requests
}

/// Returns the same requests, with those of the busy key divided between two keys.
pub fn shared() -> Vec<Request> {
    let mut requests = steady();
    let busy = requests.iter_mut().filter(|(_, key)| key == "192.0.2.1");
    for (_, key) in busy.step_by(2) {
        "192.0.2.100".clone_into(key);
    }
    requests
}

pub fn csv(requests: &[Request]) -> String {
    let mut text = String::from("time,key\n");
    for (at, key) in requests {
        let at = NINE + at;
        writeln!(text, "{}.{:03},{key}", at / 1000, at % 1000).unwrap();
    }
    text
}

pub fn json(requests: &[Request]) -> String {
    let mut text = String::new();
    for (at, key) in requests {
        // nginx writes the line when the response has ended, 20 ms later.
        let at = at + 20;
        let (minute, second, milli) = (at / 60_000, at / 1000 % 60, at % 1000);
        writeln!(
            text,
            "{{\"time\":\"2026-11-01T09:{minute:02}:{second:02}.{milli:03}Z\",\"client\":\"{key}\",\"method\":\"GET\",\
             \"target\":\"/\",\"status\":200,\"origin_seconds\":0.019,\"duration_seconds\":0.02}}"
        )
        .unwrap();
    }
    text
}

pub fn combined(requests: &[Request]) -> String {
    let mut text = String::new();
    for (at, key) in requests {
        let (minute, second) = (at / 60_000, at / 1000 % 60);
        writeln!(
            text,
            "{key} - - [01/Nov/2026:10:{minute:02}:{second:02} +0100] \"GET /?user={key} HTTP/1.1\" 200 6 \"-\" \"curl\""
        )
        .unwrap();
    }
    text
}

pub fn packed(text: &str) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    packer.write_all(text.as_bytes()).unwrap();
    packer.finish().unwrap()
}

#[test]
fn the_rate_is_that_of_the_minutes_and_the_burst_rejects_none() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for (name, log) in [("log.csv", csv(&steady())), ("log.json", json(&steady()))] {
        write(folder, name, log);
        let report = advise(folder, &[name]);
        let begin = "192.0.2.1 made 98.0 % of all requests.\n6120 requests of 21 keys ";
        assert!(report.starts_with(begin), "{report}");
        let busy = ["6000", "98.0 %", "50", "500", "3000", "50r/s", "4"];
        assert_eq!(row(&report, "192.0.2.1"), busy, "{report}");
        assert_eq!(fit(&report, "all keys"), ("50r/s", 4), "{report}");
        // Three requests per minute, sometimes a little less than 20 s apart.
        let others = ["120", "2.0 %", "1", "1", "3", "3r/m", "1"];
        assert_eq!(row(&report, "without 192.0.2.1"), others, "{report}");
        assert_contains!(report, "2026-11-01 09:00:00 to 2026-11-01 09:01:59");
        assert!(!report.contains("whole seconds"), "{report}");
    }
}

#[test]
fn whole_seconds_are_the_worst_case_and_the_report_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder, "access.log", combined(&steady()));
    let report = advise(folder, &["access.log"]);
    // In the log, the requests of a second all have the same time.
    assert_eq!(fit(&report, "all keys"), ("50r/s", 49), "{report}");
    let span = "2026-11-01 10:00:00 to 2026-11-01 10:01:59";
    assert_contains!(report, "The log has whole seconds", span);
    write(folder, "log.csv", csv(&steady()));
    let fine = advise(folder, &["log.csv"]);
    assert_contains!(fine, "that of --key, $remote_addr");
}

#[test]
fn packed_logs_and_logs_in_pieces_are_the_same_log() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let requests = steady();
    let pieces: Vec<String> = requests.chunks(2000).map(json).collect();
    write(folder, "whole", json(&requests));
    let members: Vec<Vec<u8>> = pieces.iter().map(|piece| packed(piece)).collect();
    write(folder, "members.gz", members.concat());
    // Rotated logs: the highest number is the oldest.
    for (number, piece) in pieces.iter().rev().enumerate() {
        write(folder, &format!("rotated.{number}.gz"), packed(piece));
    }
    let whole = advise(folder, &["whole"]);
    assert_eq!(advise(folder, &["members.gz"]), whole);
    let rotated: Vec<String> = (0..pieces.len())
        .map(|number| format!("rotated.{number}.gz"))
        .collect();
    let rotated: Vec<&str> = rotated.iter().map(String::as_str).collect();
    assert_eq!(advise(folder, &rotated), whole);
    // A pipe can be read only once, also together with other logs.
    let oldest = format!("rotated.{}.gz", pieces.len() - 1);
    let others = rotated.iter().filter(|name| **name != oldest);
    let piped = drip()
        .current_dir(folder)
        .args(["advise", "-"])
        .args(others)
        .stdin(Stdio::from(pipe(fs::read(folder.join(&oldest)).unwrap())))
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(piped.stdout).unwrap(), whole);
}

/// Returns a pipe that delivers `bytes`.
fn pipe(bytes: Vec<u8>) -> std::io::PipeReader {
    let (reader, mut writer) = std::io::pipe().unwrap();
    std::thread::spawn(move || writer.write_all(&bytes));
    reader
}

#[test]
fn a_slow_key_has_a_rate_a_minute() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let log = |times: &mut dyn Iterator<Item = u64>| -> String {
        let lines = times.map(|second| format!("{},a", 1_793_523_600 + second));
        lines.collect::<Vec<_>>().join("\n")
    };
    // Every twelve seconds; every ten, with each third request a second early; daily; every second.
    let cases = [
        (log(&mut (0..100).map(|nth| nth * 12)), "5r/m", 0),
        (
            log(&mut (0..90).map(|nth| nth * 10 - nth % 3 / 2)),
            "6r/m",
            1,
        ),
        (log(&mut (0..9).map(|nth| nth * 86_400)), "1r/m", 0),
        (log(&mut (0..100)), "1r/s", 0),
    ];
    for (log, rate, burst) in cases {
        write(folder, "log.csv", log);
        let report = advise(folder, &["log.csv"]);
        assert_eq!(fit(&report, "all keys"), (rate, burst), "{report}");
    }
}

#[test]
fn a_zone_of_the_gateways_own_log_brings_its_keys() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // Three keys behind one address, and another zone.
    let mut log = String::new();
    for nth in 0..300 {
        let (zone, key) = [
            ("users", "a"),
            ("users", "b"),
            ("users", "b"),
            ("site", "all"),
        ][nth % 4];
        writeln!(
            log,
            "{{\"time\":\"2026-11-01T09:00:{:02}.{:03}Z\",\"client\":\"192.0.2.1\",\"method\":\"GET\",\"target\":\"/\",\
             \"zone\":\"{zone}\",\"key\":\"{key}\"}}",
            nth / 40,
            nth % 40 * 25
        )
        .unwrap();
    }
    write(folder, "log.json", log);
    let report = advise(
        folder,
        &["--zone", "users", "--key", "$http_user", "log.json"],
    );
    assert_eq!(fit(&report, "all keys").0, "20r/s", "{report}");
    assert_contains!(report, "225 requests of 2 keys as zone users logged them");
    assert_contains!(report, "\n75 requests were not decided by this zone");
    assert_contains!(report, "[zones.users]\nkey = \"$http_user\"\n");
    let nobody = run(folder, &["advise", "--zone", "nobody", "log.json"]);
    assert_eq!(nobody.status.code(), Some(1));
    let said = String::from_utf8(nobody.stderr).unwrap();
    assert_contains!(said, "zone nobody");
}

#[test]
fn any_variable_that_the_log_has_may_be_the_key() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder, "access.log", combined(&steady()));
    let of_user = advise(folder, &["--key", "$arg_user", "access.log"]);
    assert_eq!(fit(&of_user, "all keys").0, "50r/s", "{of_user}");
    assert_contains!(of_user, "[zones.per_arg_user]\nkey = \"$arg_user\"\n");
    let of_all = advise(folder, &["--key", "all", "access.log"]);
    assert_eq!(fit(&of_all, "all keys").0, "51r/s", "{of_all}");
    assert!(!of_all.contains("share ="), "{of_all}");
    let without_variable = run(
        folder,
        &["advise", "--key", "$http_x_api_key", "access.log"],
    );
    assert_eq!(without_variable.status.code(), Some(1));
    let said = String::from_utf8(without_variable.stderr).unwrap();
    assert_contains!(said, "the log does not contain $http_x_api_key");
    let partly = advise(
        folder,
        &["--key", "$remote_addr$http_x_api_key", "access.log"],
    );
    assert_contains!(partly, "The log does not contain $http_x_api_key");
    for wrong in [["--key", "$nonsense"], ["--good", "0/9"]] {
        let refused = run(folder, &[&["advise"], &wrong[..], &["access.log"]].concat());
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    }
}

#[test]
fn what_is_to_paste_rejects_nobody_it_was_made_for() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for (requests, rejects) in [(shared(), &[][..]), (steady(), &["192.0.2.1"])] {
        write(folder, "log", json(&requests));
        let report = advise(folder, &["log"]);
        let file = pasted("127.0.0.1:9000", toml(&report));
        write(folder, "gateway.toml", &file);
        let simulated = run(folder, &["simulate", "--rows", "log"]);
        let rows = String::from_utf8(simulated.stdout).unwrap();
        let rows = rows.lines().skip(1).map(|row| row.split(',').nth(2));
        let mut rejected: Vec<&str> = requests
            .iter()
            .zip(rows)
            .filter(|(_, verdict)| *verdict != Some("passed"))
            .map(|((_, key), verdict)| {
                assert_eq!(verdict, Some("rejected"), "no request waits");
                &**key
            })
            .collect();
        rejected.dedup();
        assert_eq!(rejected, rejects, "{report}");
    }
}
