//! `drip simulate --collapse`: what collapsing would save, by path.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use super::{Bench, one_zone, said};

/// A file that limits nothing.
fn unlimited() -> Bench {
    Bench::new("[[routes]]\npath = \"/\"\norigin = \"app\"\n")
}

fn simulate(folder: &Path, args: &[&str]) -> Output {
    let mut drip = Command::new(env!("CARGO_BIN_EXE_drip"));
    let drip = drip.current_dir(folder).arg("simulate").arg("--collapse");
    drip.args(args).output().unwrap()
}

#[test]
fn each_path_has_its_requests_and_those_that_are_sent_at_each_keep() {
    let bench = unlimited();
    let folder = bench.folder.path();
    let mut log = String::from("time,key,path\n");
    // Five at once each second, which take the assumed 100 ms; for a minute.
    for second in 0..60 {
        log += &format!("{second},a,/page\n").repeat(5);
        writeln!(log, "{second}.5,b,\"/other,{second}\"").unwrap();
    }
    fs::write(folder.join("log"), log).unwrap();
    let rows = said(folder, &["--collapse", "log"]);
    let mut lines = rows.lines();
    assert_eq!(
        lines.next(),
        Some("path,requests,sent_keep_0,sent_keep_1s,sent_keep_10s")
    );
    // The answer of 0.1 s serves until 1.1 s, or 10.1 s.
    assert_eq!(lines.next(), Some("/page,300,60,30,6"));
    assert_eq!(lines.next(), Some("\"/other,0\",1,1,1,1"));
    assert_eq!(lines.count(), 59);
    let table = said(folder, &["--collapse", "--summary", "log"]);
    let line = |begin: &str| -> Vec<&str> {
        let line = table.lines().find(|line| line.starts_with(begin));
        let words = line.unwrap_or_else(|| panic!("no {begin} in\n{table}"));
        words
            .split_whitespace()
            .filter(|word| *word != "%")
            .collect()
    };
    let all = ["all", "360", "120", "66.7", "90", "75.0", "66", "81.7"];
    assert_eq!(line("all "), all);
    let page = ["/page", "300", "60", "80.0", "30", "90.0", "6", "98.0"];
    assert_eq!(line("/page"), page);
    // Twenty paths are shown.
    assert_eq!(line("all other paths")[3..5], ["41", "41"]);
    assert!(
        table.contains("360 requests have no time at the origin in the log; 100ms are assumed"),
        "{table}"
    );
    assert!(table.contains("This is an upper bound"), "{table}");
}

#[test]
fn who_would_follow_for_longer_than_follow_timeout_is_sent() {
    // An answer that takes 8 s, and requests for it each second.
    let mut log = String::new();
    for second in 0..8 {
        let took = 8 - second;
        writeln!(
            log,
            "{{\"msec\":20.0,\"uri\":\"/slow\",\"request_time\":{took}}}"
        )
        .unwrap();
    }
    for (route, sent, told) in [
        // With the default of 5 s, those of the first three seconds would wait for too long.
        ("", 3, "2 requests would wait"),
        (
            "[routes.collapse]\nfollow_timeout = \"2s\"\n",
            6,
            "5 requests would wait",
        ),
        ("[routes.collapse]\nfollow_timeout = \"10s\"\n", 1, ""),
        (
            "max_wait = \"3s\"\n[routes.collapse]\n",
            5,
            "4 requests would wait",
        ),
    ] {
        let bench = Bench::new(&format!(
            "[[routes]]\npath = \"/\"\norigin = \"app\"\n{route}"
        ));
        let folder = bench.folder.path();
        fs::write(folder.join("log"), &log).unwrap();
        let rows = said(folder, &["--collapse", "--rows", "log"]);
        let row = format!("/slow,8,{sent},{sent},{sent}");
        assert_eq!(rows.lines().nth(1), Some(&*row), "{route}");
        let table = said(folder, &["--collapse", "--summary", "log"]);
        assert!(table.contains(told), "{route}: {table}");
        assert_eq!(table.contains("would wait"), !told.is_empty(), "{table}");
    }
}

#[test]
fn only_what_the_zones_let_through_is_shared_when_it_departs() {
    // One a second: of three at once two wait, so that they come for another answer each.
    let bench = one_zone("1r/s", "burst = 2");
    let folder = bench.folder.path();
    fs::write(folder.join("log"), "0,a,/x\n0,a,/x\n0,a,/x\n0,a,/x\n").unwrap();
    let output = simulate(folder, &["log"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().nth(1), Some("/x,3,3,2,1"), "{text}");
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(told, "1 requests are rejected by a zone\n");
}

#[test]
fn hosts_are_told_apart_and_named_if_there_are_several() {
    let bench = unlimited();
    let folder = bench.folder.path();
    let line = |host: &str, method: &str| {
        format!(
            "{{\"msec\":10.5,\"host\":\"{host}\",\"request_method\":\"{method}\",\"uri\":\"/x\",\
             \"status\":200,\"request_time\":0.5}}\n"
        )
    };
    let one = line("a.example", "GET") + &line("a.example", "HEAD");
    fs::write(folder.join("one"), &one).unwrap();
    let rows = said(folder, &["--collapse", "one"]);
    assert_eq!(rows.lines().nth(1), Some("/x,2,1,1,1"), "{rows}");
    fs::write(folder.join("two"), one + &line("b.example", "GET")).unwrap();
    let rows = said(folder, &["--collapse", "two"]);
    let rows: Vec<&str> = rows.lines().skip(1).collect();
    assert_eq!(rows, ["a.example/x,2,1,1,1", "b.example/x,1,1,1,1"]);
}

#[test]
fn what_says_nothing_of_paths_is_refused() {
    let bench = unlimited();
    let folder = bench.folder.path();
    for (log, told) in [
        (
            "0,a\n1,b\n",
            "log: it does not say what was requested; take an access log, or CSV lines \
             time_seconds,key,route_path\n",
        ),
        ("", "log: it has no request\n"),
        (
            "nonsense\n",
            "line 1: this is not time_seconds,key[,route_path[,cost]]\n1 lines could not be read\n\
             log: it has no request\n",
        ),
    ] {
        fs::write(folder.join("log"), log).unwrap();
        let output = simulate(folder, &["log"]);
        assert!(!output.status.success() && output.stdout.is_empty());
        assert_eq!(String::from_utf8(output.stderr).unwrap(), told);
    }
    for args in [
        &["no such log"][..],
        &["--against", "gateway.toml", "log"],
        &["--plot", "x.svg", "log"],
    ] {
        assert!(!simulate(folder, args).status.success(), "{args:?}");
    }
}
