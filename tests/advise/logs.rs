//! Logs for which the right recommendation is known.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::process::Stdio;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::{advise, chosen, near, pasted, run, table, toml, write};
use crate::support::drip;

/// Milliseconds since 2026-11-01T09:00:00Z, and a key.
pub type Request = (u64, String);

const NINE: u64 = 1_793_523_600_000;

/// Two minutes: one key comes five times in each 100 ms, at once; others now and then.
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

/// The minute after that: a key comes every 5 ms.
fn flood() -> Vec<Request> {
    let every = (0..12_000).map(|nth| (120_000 + nth * 5, "198.51.100.1".to_owned()));
    every.collect()
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
        // Written when the response ended, 20 ms later.
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
fn fifty_a_second_in_fives_are_rate_50_and_burst_4() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for (name, log) in [("log.csv", csv(&steady())), ("log.json", json(&steady()))] {
        write(folder, name, log);
        let report = advise(folder, &["--all-keys", name]);
        let row = chosen(&report);
        assert_eq!((&*row.rate, row.burst), ("50r/s", 4), "{report}");
        // Of five at once four wait, the last of them 80 ms.
        assert!(near(row.delayed, 4800.0 / 6120.0, 0.001), "{report}");
        assert!(
            near(row.p99, 0.08, 0.0005) && near(row.longest, 0.08, 0.0005),
            "{report}"
        );
        assert!(row.rejected == 0.0, "{report}");
        let key = report
            .lines()
            .find(|line| line.starts_with("192.0.2.1 "))
            .unwrap();
        let told: Vec<&str> = key.split_whitespace().collect();
        assert_eq!(told, ["192.0.2.1", "6000", "50", "5", "5"], "{report}");
        assert!(report.contains("6120 requests of 21 keys"), "{report}");
        assert!(
            report.contains("2026-11-01 09:00:00 to 2026-11-01 09:01:59"),
            "{report}"
        );
        // One less in the queue, and the last of five is rejected each time.
        let half = table(&report)
            .into_iter()
            .find(|row| row.rate == "50r/s" && row.burst == 2);
        assert!(
            near(half.unwrap().rejected, 2400.0 / 6120.0, 0.001),
            "{report}"
        );
    }
}

#[test]
fn whole_seconds_are_the_worst_case_and_the_report_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder, "access.log", combined(&steady()));
    let report = advise(folder, &["--all-keys", "access.log"]);
    let row = chosen(&report);
    assert_eq!((&*row.rate, row.burst), ("50r/s", 49), "{report}");
    assert!(report.contains("The log has whole seconds"), "{report}");
    // Each second's requests come at once in the log: all but the first wait.
    assert!(row.delayed > 0.9, "{report}");
    assert!(report.contains("they are coarse"), "{report}");
    // Above level 47 are the last two of each fifty.
    assert!(
        report.contains("With delay = 47, no more than 5 % do"),
        "{report}"
    );
    let lines = toml(&report);
    for offer in ["delay = 47", "nodelay = true"] {
        let of_offer = |line: &&str| line.starts_with("# limits = [") && line.contains(offer);
        assert!(lines.lines().any(|line| of_offer(&line)), "{report}");
    }
    assert!(
        report.contains("2026-11-01 10:00:00 to 2026-11-01 10:01:59"),
        "{report}"
    );
    let key = report
        .lines()
        .find(|line| line.starts_with("192.0.2.1 "))
        .unwrap();
    let told: Vec<&str> = key.split_whitespace().collect();
    assert_eq!(told, ["192.0.2.1", "6000", "50", "?", "?"], "{report}");
    write(folder, "log.csv", csv(&steady()));
    let fine = advise(folder, &["log.csv"]);
    assert!(fine.contains("what --key says, $remote_addr"), "{fine}");
    assert!(
        fine.contains("The log has milliseconds") && !fine.contains("whole seconds:"),
        "{fine}"
    );
    assert!(
        !fine.contains("coarse") && !fine.contains("nodelay"),
        "{fine}"
    );
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
    // Logs of several hosts.
    let of_host = |host: usize| {
        let mine = requests
            .iter()
            .enumerate()
            .filter(|(nth, _)| nth % 3 == host);
        json(&mine.map(|(_, request)| request.clone()).collect::<Vec<_>>())
    };
    for host in 0..3 {
        write(folder, &format!("host{host}"), of_host(host));
    }
    let whole = advise(folder, &["whole"]);
    assert_eq!(advise(folder, &["members.gz"]), whole);
    let rotated: Vec<String> = (0..pieces.len())
        .map(|number| format!("rotated.{number}.gz"))
        .collect();
    let rotated: Vec<&str> = rotated.iter().map(String::as_str).collect();
    assert_eq!(advise(folder, &rotated), whole);
    assert_eq!(advise(folder, &["host2", "host0", "host1"]), whole);
    let piped = drip()
        .current_dir(folder)
        .args(["advise", "-"])
        .stdin(Stdio::from(
            fs::File::open(folder.join("members.gz")).unwrap(),
        ))
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(piped.stdout).unwrap(), whole);
    // A pipe can be read only once, also together with other logs.
    let piped = drip()
        .current_dir(folder)
        .args(["advise", "host2", "-", "host1"])
        .stdin(Stdio::from(pipe(fs::read(folder.join("host0")).unwrap())))
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(piped.stdout).unwrap(), whole);
}

/// A pipe that delivers `bytes`.
fn pipe(bytes: Vec<u8>) -> std::io::PipeReader {
    let (reader, mut writer) = std::io::pipe().unwrap();
    std::thread::spawn(move || writer.write_all(&bytes));
    reader
}

#[test]
fn the_rate_lies_above_the_good_hours_and_below_the_bad_ones() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let all = [steady(), flood()].concat();
    write(folder, "log.csv", csv(&all));
    write(folder, "access.log", combined(&all));
    for bad in ["2026-11-01T09:02/09:03", "1793523720/1793523780"] {
        let report = advise(folder, &["--bad", bad, "log.csv"]);
        let row = chosen(&report);
        assert_eq!((&*row.rate, row.burst), ("50r/s", 4), "{report}");
        assert!(
            report.contains("A key of the bad hours came 200 times in a second"),
            "{report}"
        );
        // Five at first, then three of four.
        assert!(near(row.rejected_of[1], 0.75, 0.002), "{report}");
        assert!(row.rejected_of[0] == 0.0, "{report}");
        let (_, heaviest) = report
            .split_once("keys with the most requests")
            .expect(&report);
        let lines: Vec<Vec<&str>> = heaviest
            .lines()
            .skip(1)
            .map(|line| line.split_whitespace().collect())
            .collect();
        // 9,000 of the flood, as above; and nobody of the others.
        assert_eq!(
            lines[0][..4],
            ["198.51.100.1", "12000", "66.2", "%"],
            "{report}"
        );
        let rejected: f64 = lines[0][4].parse().expect(&report);
        assert!(near(rejected, 9000.0, 30.0), "{report}");
        assert_eq!(
            lines[1],
            ["192.0.2.1", "6000", "33.1", "%", "0"],
            "{report}"
        );
    }
    // By the clock of the log, which is an hour ahead.
    let report = advise(folder, &["--good", "2026-11-01T10:00/10:02", "access.log"]);
    assert_eq!(chosen(&report).rate, "50r/s", "{report}");
    assert!(report.contains("each key, other hours"), "{report}");
    let without = advise(folder, &["--all-keys", "log.csv"]);
    assert_eq!(chosen(&without).rate, "200r/s", "{without}");
    // A wrong date does not count as hours without trouble.
    let mistaken = [
        "--bad",
        "2026-10-01T09:02/09:03",
        "--bad",
        "2026-11-01T09:02/09:03",
        "log.csv",
    ];
    let report = advise(folder, &mistaken);
    assert!(
        report.contains("\nNo request came in 2026-10-01T09:02:00/2026-10-01T09:03:00.\n"),
        "{report}"
    );
}

#[test]
fn where_no_rate_tells_bad_from_good_it_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // A crowd in which each key comes once.
    let crowd = (0..3000).map(|nth| (120_000 + nth, format!("203.0.113.{}", nth % 250)));
    write(
        folder,
        "log.csv",
        csv(&[steady(), crowd.collect()].concat()),
    );
    let bad = ["--bad", "2026-11-01T09:02/09:03", "log.csv"];
    let report = advise(folder, &bad);
    assert_eq!(chosen(&report).rate, "50r/s", "{report}");
    assert!(
        report.contains("There is no rate above the good hours and below the bad ones"),
        "{report}"
    );
    // As one key they can be separated. A trace names its keys, so this needs an access log.
    let crowd = (0..3000).map(|nth| (120_000 + nth, format!("203.0.113.{}", nth % 250)));
    write(
        folder,
        "log.json",
        json(&[steady(), crowd.collect()].concat()),
    );
    let report = advise(
        folder,
        &[
            "--key",
            "all",
            "--bad",
            "2026-11-01T09:02/09:03",
            "log.json",
        ],
    );
    let row = chosen(&report);
    assert!(!report.contains("There is no rate"), "{report}");
    assert!(
        row.rejected_of[1] > 0.9 && row.rejected_of[0] == 0.0,
        "{report}"
    );
    let named = run(
        folder,
        &["advise", "--good", "2026-12-01T09:00/10:00", "log.csv"],
    );
    assert_eq!(named.status.code(), Some(1));
    let said = String::from_utf8(named.stderr).unwrap();
    assert!(said.contains("no request in the good hours"), "{said}");
}

#[test]
fn a_full_bucket_at_the_begin_of_the_good_hours_is_reckoned_with() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut requests: Vec<Request> = (0..40).map(|_| (59_990, "a".to_owned())).collect();
    requests.extend((0..10).map(|nth| (60_000 + nth * 1000, "a".to_owned())));
    requests.extend((0..10).map(|nth| (80_000 + nth, "a".to_owned())));
    write(folder, "log.csv", csv(&requests));
    let report = advise(folder, &["--good", "2026-11-01T09:01/09:02", "log.csv"]);
    let row = chosen(&report);
    assert_eq!(&*row.rate, "10r/s", "{report}");
    assert!(row.rejected_of[0] == 0.0, "{report}");
}

#[test]
fn where_nobody_comes_twice_in_a_second_the_rate_is_one_a_minute() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let log = |times: &mut dyn Iterator<Item = u64>| -> String {
        let lines = times.map(|second| format!("{},a", 1_793_523_600 + second));
        lines.collect::<Vec<_>>().join("\n")
    };
    // Each twelve seconds; each ten, and each third a second too early; once a day; each second.
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
        let row = chosen(&report);
        assert_eq!((&*row.rate, row.burst), (rate, burst), "{report}");
        assert!(row.rejected == 0.0 && row.longest <= 2.0, "{report}");
        assert!(
            report.contains("as no key came twice in a second"),
            "{report}"
        );
        let file = pasted("127.0.0.1:9000", toml(&report));
        write(folder, "gateway.toml", &file);
        assert!(run(folder, &["check"]).status.success(), "{file}");
    }
    // Bad hours with a request each four seconds can be separated from good ones with one each twelve.
    let good = (0..100).map(|nth| nth * 12);
    write(
        folder,
        "log.csv",
        log(&mut good.chain((0..100).map(|nth| 3600 + nth * 4))),
    );
    let report = advise(folder, &["--bad", "2026-11-01T10:00/11:00", "log.csv"]);
    assert_eq!(chosen(&report).rate, "5r/m", "{report}");
    assert!(
        report.contains("A key of the bad hours came as fast as 15r/m"),
        "{report}"
    );
    assert!(chosen(&report).rejected_of[1] > 0.6, "{report}");
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
    assert_eq!(chosen(&report).rate, "20r/s", "{report}");
    assert!(
        report.contains("225 requests of 2 keys as zone users logged them"),
        "{report}"
    );
    assert!(
        report.contains("\n75 requests were not decided on by this zone"),
        "{report}"
    );
    assert!(
        report.contains("[zones.users]\nkey = \"$http_user\"\n"),
        "{report}"
    );
    let line = |key: &str| {
        format!(
            "192.0.2.1 - - [01/Nov/2026:09:00:00 +0000] \"GET / HTTP/1.1\" 200 6 \"-\" \"-\" zone=\"users\" key=\"{key}\" \
             limit_status=passed\n"
        )
    };
    write(
        folder,
        "log.text",
        line("a").repeat(3) + &line("b").repeat(4),
    );
    let text = advise(folder, &["--zone", "users", "log.text"]);
    assert_eq!(chosen(&text).rate, "4r/s", "{text}");
    let nobody = run(folder, &["advise", "--zone", "nobody", "log.json"]);
    assert_eq!(nobody.status.code(), Some(1));
    let said = String::from_utf8(nobody.stderr).unwrap();
    assert!(said.contains("zone nobody"), "{said}");
}

#[test]
fn any_variable_that_the_log_has_may_be_the_key() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder, "access.log", combined(&steady()));
    let of_user = advise(folder, &["--all-keys", "--key", "$arg_user", "access.log"]);
    assert_eq!(chosen(&of_user).rate, "50r/s", "{of_user}");
    assert!(
        of_user.contains("[zones.per_arg_user]\nkey = \"$arg_user\"\n"),
        "{of_user}"
    );
    let of_all = advise(folder, &["--key", "all", "access.log"]);
    assert_eq!(chosen(&of_all).rate, "51r/s", "{of_all}");
    let untold = run(
        folder,
        &["advise", "--key", "$http_x_api_key", "access.log"],
    );
    assert_eq!(untold.status.code(), Some(1));
    let said = String::from_utf8(untold.stderr).unwrap();
    assert!(
        said.contains("the log does not have $http_x_api_key"),
        "{said}"
    );
    let partly = advise(
        folder,
        &["--key", "$remote_addr$http_x_api_key", "access.log"],
    );
    assert!(
        partly.contains("The log does not have $http_x_api_key"),
        "{partly}"
    );
    for wrong in [["--key", "$nonsense"], ["--good", "yesterday"]] {
        let refused = run(folder, &[&["advise"], &wrong[..], &["access.log"]].concat());
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    }
}

#[test]
fn what_is_to_paste_passes_the_check_and_does_what_was_said() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let all = json(&[steady(), flood()].concat());
    write(folder, "log", &all);
    let args = [
        "--bad",
        "2026-11-01T09:02/09:03",
        "--plot",
        "advice.svg",
        "log",
    ];
    let report = advise(folder, &args);
    let file = pasted("127.0.0.1:9000", toml(&report));
    write(folder, "gateway.toml", &file);
    let check = run(folder, &["check"]);
    assert!(check.status.success(), "{check:?}\n{file}");

    let simulated = run(folder, &["simulate", "log"]);
    let rows = String::from_utf8(simulated.stdout).unwrap();
    let verdicts: Vec<&str> = rows
        .lines()
        .skip(1)
        .filter_map(|row| row.split(',').nth(2))
        .collect();
    let share = |verdict: &str| {
        let count = verdicts.iter().filter(|found| **found == verdict).count();
        f64::from(u32::try_from(count).unwrap()) / f64::from(u32::try_from(verdicts.len()).unwrap())
    };
    let row = chosen(&report);
    // The report is rounded to a thousandth.
    assert!(near(row.delayed, share("delayed"), 0.0006), "{report}");
    assert!(near(row.rejected, share("rejected"), 0.0006), "{report}");
    let longest = rows
        .lines()
        .skip(1)
        .filter_map(|row| row.split(',').nth(4)?.parse().ok());
    assert!(
        near(row.longest, longest.fold(0.0, f64::max), 0.001),
        "{report}"
    );

    let drawn = fs::read_to_string(folder.join("advice.svg")).unwrap();
    assert!(
        drawn.starts_with("<svg ") && drawn.contains("rate 50r/s"),
        "{drawn}"
    );
    advise(folder, &args);
    assert_eq!(
        fs::read_to_string(folder.join("advice.svg")).unwrap(),
        drawn
    );
    for name in ["advice.png", "log"] {
        let refused = run(folder, &["advise", "--plot", name, "log"]);
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    }
    assert_eq!(fs::read_to_string(folder.join("log")).unwrap(), all);
    let nowhere = run(folder, &["advise", "--plot", "no/such/folder.svg", "log"]);
    assert_eq!(nowhere.status.code(), Some(1));
    assert!(!nowhere.stdout.is_empty());
}
