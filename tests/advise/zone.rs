//! Tests of the advice for a zone whose key is in a file.

use std::fmt::Write as _;

use super::{advise, fit, run, write};
use crate::support::assert_contains;

/// Returns a minute of requests of three keys with different bursts.
///
/// Every second `eve` sends two at once, `alice` ten in groups of five, and `bob` twenty, evenly
/// spread.
fn requests() -> Vec<(u64, &'static str)> {
    let mut requests = Vec::new();
    for second in 0..60 {
        let at = |part: u64| second * 1000 + part;
        requests.extend([(at(0), "eve"); 2]);
        requests.extend((0..10).map(|nth| (at(nth / 5 * 500), "alice")));
        requests.extend((0..20).map(|nth| (at(nth * 50), "bob")));
    }
    requests.sort_unstable();
    requests
}

/// Returns the gateway's own log.
fn own_log() -> String {
    let mut log = String::new();
    for (at, key) in requests() {
        let (second, milli) = (at / 1000, at % 1000);
        writeln!(
            log,
            "{{\"time\":\"2026-11-01T09:00:{second:02}.{milli:03}Z\",\"client\":\"192.0.2.1\",\"method\":\"GET\",\
             \"target\":\"/?key={key}\",\"zone\":\"users\",\"key\":\"{key}\"}}"
        )
        .unwrap();
    }
    log
}

#[test]
fn with_a_file_any_log_has_the_key_of_its_zone() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let file = "[origins.app]\nservers = [\"http://127.0.0.1:9000\"]\n[zones.users]\nkey = \"$arg_key\"\nrate = \"1r/s\"\n\
         [[routes]]\npath = \"/\"\norigin = \"app\"\n";
    write(folder, "gateway.toml", file);
    // Logs with the zone's keys, with the parts of keys, and with keys alone.
    let own = own_log();
    let other = own.replace(",\"zone\":\"users\"", "");
    let mut csv = String::from("time,key\n");
    for (at, key) in requests() {
        writeln!(csv, "{}.{:03},{key}", at / 1000, at % 1000).unwrap();
    }
    for (name, log) in [("own.json", own), ("other.json", other), ("log.csv", csv)] {
        write(folder, name, log);
        let report = advise(folder, &["-c", "gateway.toml", "--zone", "users", name]);
        assert_eq!(fit(&report, "all keys"), ("20r/s", 4), "{report}");
        let keys = "1920 requests of 3 keys ";
        assert_contains!(report, keys, "\n[zones.users]\nkey = \"$arg_key\"\n");
        assert!(!report.contains("that of --key"), "{report}");
    }

    for (arguments, wrong) in [
        (
            ["-c", "gateway.toml", "--zone", "user"],
            "gateway.toml has no zone user: its zones are users",
        ),
        (
            ["-c", "none.toml", "--zone", "users"],
            "none.toml: cannot be read",
        ),
    ] {
        let output = run(
            folder,
            &[&["advise"], &arguments[..], &["log.csv"]].concat(),
        );
        let received = String::from_utf8_lossy(&output.stderr);
        let is_refused = !output.status.success() && received.contains(wrong);
        assert!(is_refused, "{received}");
    }
    let alone = run(folder, &["advise", "-c", "gateway.toml", "log.csv"]);
    assert!(!alone.status.success());
}

#[test]
fn a_file_with_learned_costs_gets_a_note_that_requests_count_as_one() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder, "log", own_log());
    let file = "[origins.app]\nservers = [\"http://127.0.0.1:9000\"]\nrate = \"10r/s\"\nmax_in_flight = 4\n\
        [zones.users]\nkey = \"$arg_key\"\nrate = \"1r/s\"\n[zones.others]\nkey = \"$arg_key\"\nrate = \"1r/s\"\n\
        [[routes]]\npath = \"/\"\norigin = \"app\"\nlimits = [{ zone = \"users\", burst = 99 }]\n\
        cost = { learn = \"time\", unit = \"10ms\", max = 64 }\n\
        [[routes]]\npath = \"/other\"\norigin = \"app\"\nlimits = [{ zone = \"others\", burst = 5 }]\n";
    write(folder, "gateway.toml", file);
    let said = |zone: &str| {
        let args = ["advise", "-c", "gateway.toml", "--zone", zone, "log"];
        String::from_utf8(run(folder, &args).stderr).unwrap()
    };
    let received = said("users");
    let note = "the cost of / is learned by a running gateway: here each request costs 1";
    assert_contains!(received, note);
    let received = said("others");
    assert!(!received.contains("learned"), "{received}");
}
