//! Tests of `drip init`: the file that it writes, and a gateway that runs on it.

use std::fs;
use std::path::Path;
use std::process::Output;

use crate::support::{Gateway, Origin, Site, assert_contains, drip};

fn init(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = drip();
    command.arg("init").args(arguments).current_dir(folder);
    command.output().expect("the program")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

/// Checks the file of `site`, moves it to the site's addresses, and starts the gateway with it.
fn start(site: Site, origin: &Origin) -> Gateway {
    let mut check = drip();
    let checked = check.arg("check").arg("-c").arg(site.file()).output();
    let checked = checked.expect("the program");
    assert!(checked.status.success(), "{checked:?}");
    let written = fs::read_to_string(site.file()).expect("a file");
    let moved = written
        .replace("127.0.0.1:8080", &site.address.to_string())
        .replace("\"127.0.0.1:9090\"", &format!("\"{}\"", site.admin))
        .replace("127.0.0.1:9000", &origin.address.to_string());
    assert_ne!(moved, written);
    fs::write(site.file(), moved).expect("a file");
    Gateway::start_at(site)
}

#[test]
fn a_plain_file_is_written_once_and_is_never_overwritten() {
    let site = Site::new();
    let written = init(site.folder(), &[]);
    assert!(written.status.success(), "{written:?}");
    let received = text(&written.stdout);
    assert_contains!(received, "wrote gateway.toml");
    let file = fs::read_to_string(site.file()).expect("a file");
    assert!(file.lines().any(|line| line.starts_with("# ")), "{file}");

    fs::write(site.file(), "mine").expect("a file");
    let again = init(site.folder(), &["--origin", "http://127.0.0.1:9"]);
    assert_eq!(again.status.code(), Some(1), "{again:?}");
    let complaint = text(&again.stderr);
    assert_contains!(complaint, "gateway.toml exists and is not overwritten");
    assert_contains!(complaint, "name another file");
    assert_eq!(fs::read_to_string(site.file()).expect("a file"), "mine");

    let printed = init(site.folder(), &["-"]);
    assert_eq!(text(&printed.stdout), file);
    fs::write(site.file(), file).expect("a file");
    let origin = Origin::start();
    let gateway = start(site, &origin);
    assert_eq!(gateway.fetch("/").status, 200);
}

#[test]
fn the_origin_is_the_one_that_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    // As people write it.
    for (url, expected) in [
        ("http://192.0.2.9:81", "http://192.0.2.9:81"),
        ("http://127.0.0.1:9/", "http://127.0.0.1:9"),
        ("HTTPS://App.example", "https://App.example"),
    ] {
        let file = text(&init(folder.path(), &["--origin", url, "-"]).stdout);
        let servers = format!("servers = [\"{expected}\"]");
        assert_contains!(file, &servers);
        // The comment that names the gate's fields has all of them.
        assert_contains!(file, "# max_in_flight = ");
    }
    for wrong in [
        "nonsense",
        "http://a/b",
        "http://\"a\"",
        "http://bücher.example",
    ] {
        let refused = init(folder.path(), &["--origin", wrong]);
        assert_eq!(refused.status.code(), Some(1), "{wrong}: {refused:?}");
        let complaint = text(&refused.stderr);
        let begin = format!("drip: --origin {wrong}: ");
        assert!(complaint.starts_with(&begin), "{complaint}");
        assert!(!folder.path().join("gateway.toml").exists());
    }
}

#[test]
fn an_nginx_conf_is_translated() {
    let site = Site::new();
    let conf = "limit_req_zone $binary_remote_addr zone=per_ip:1m rate=5r/s;\n\
                server { listen 127.0.0.1:8080; mirror /x;\n\
                location / { limit_req zone=per_ip burst=2 nodelay; proxy_pass http://127.0.0.1:9000; } }\n";
    fs::write(site.folder().join("nginx.conf"), conf).expect("a file");
    let written = init(site.folder(), &["--from", "nginx.conf"]);
    assert!(written.status.success(), "{written:?}");
    let received = text(&written.stderr);
    assert_contains!(received, "nginx.conf:2: mirror");
    let file = fs::read_to_string(site.file()).expect("a file");
    assert!(file.starts_with("# Translated from nginx.conf."), "{file}");
    assert_contains!(file, "[server]\nadmin = \"127.0.0.1:9090\"");
    assert_contains!(file, "burst = 2, nodelay = true");

    let folder = site.folder();
    let origin = ["--origin", "http://127.0.0.1:9"];
    let arguments = [&["--from", "nginx.conf", "-"], &origin[..]].concat();
    let refused = init(folder, &arguments);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(text(&refused.stderr).contains("remove --origin"));
    fs::write(folder.join("other"), "neither\nof them\n").expect("a file");
    let refused = init(folder, &["--from", "other", "-"]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(text(&refused.stderr).contains("other is neither"));
    let refused = init(folder, &["--from", "absent", "-"]);
    assert!(text(&refused.stderr).contains("absent: No such file"));
}

/// Returns a log of two clients: one sends 3 requests per second, the other one.
fn log(minutes: u32) -> String {
    let line = |minute: u32, second: u32, client: u32| {
        let (hour, minute) = (9 + minute / 60, minute % 60);
        format!(
            "192.0.2.{client} - - [01/Nov/2026:{hour:02}:{minute:02}:{second:02} +0000] \"GET / HTTP/1.1\" 200 6 \"-\" \"curl\"\n"
        )
    };
    (0..minutes)
        .flat_map(|minute| (0..10).map(move |second| (minute, second)))
        .flat_map(|(minute, second)| [1, 1, 1, 2].map(|client| line(minute, second, client)))
        .collect()
}

#[test]
fn an_access_log_gives_the_numbers() {
    let site = Site::new();
    fs::write(site.folder().join("access.log"), log(61)).expect("a file");
    let written = init(site.folder(), &["--from", "access.log"]);
    assert!(written.status.success(), "{written:?}");
    let file = fs::read_to_string(site.file()).expect("a file");
    for part in [
        "# Numbers from access.log:\n# 192.0.2.1 made 75.0 % of all requests. 2440 requests of 2 keys by $remote_addr, 2026-11-01 09:00:00 to 2026-11-01 10:00:09.\n",
        "`drip simulate --summary access.log`",
        "# The most requests of one other key within 1 min.\nrate = \"10r/m\"\n",
        "# Made without 192.0.2.1. With it: rate = \"30r/m\", burst = 25.\nlimits = [{ zone = \"per_client\", burst = 8, nodelay = true }]\n",
        "# In 99.9 % of the seconds at most 4 requests arrived. The rate is a quarter more.\nrate = \"5r/s\"\n",
        "share = \"per_client\"\n",
    ] {
        assert!(file.contains(part), "no\n{part}in\n{file}");
    }
    // The numbers are those that `drip advise` recommends.
    let mut advise = drip();
    let advised = advise.arg("advise").arg(site.folder().join("access.log"));
    let advised = text(&advised.output().expect("the program").stdout);
    assert_contains!(advised, "burst = 8, nodelay = true", "\nrate = \"10r/m\"\n");

    let mut replay = drip();
    let replayed = replay
        .args(["simulate", "--summary", "-c"])
        .arg(site.file())
        .arg(site.folder().join("access.log"));
    let replayed = text(&replayed.output().expect("the program").stdout);
    assert_contains!(replayed, "rejected");

    let origin = ["--origin", "http://192.0.2.9:81"];
    let arguments = [&["--from", "access.log", "-"], &origin[..]].concat();
    let named = init(site.folder(), &arguments);
    assert!(text(&named.stdout).contains("servers = [\"http://192.0.2.9:81\"]\n"));
}

#[test]
fn a_log_without_addresses_gives_no_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = "{\"msec\":1795232027.5,\"request\":\"GET / HTTP/1.1\"}\n";
    fs::write(folder.path().join("access.json"), log).expect("a file");
    let refused = init(folder.path(), &["--from", "access.json"]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    let complaint = text(&refused.stderr);
    assert_contains!(complaint, "no request has a client address");
    assert!(!folder.path().join("gateway.toml").exists());
}

#[test]
fn a_short_log_limits_nobody_and_says_how_much_is_needed() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("access.log"), log(1)).expect("a file");
    let written = init(folder.path(), &["--from", "access.log", "mine.toml"]);
    assert!(written.status.success(), "{written:?}");
    let file = fs::read_to_string(folder.path().join("mine.toml")).expect("a file");
    for part in [
        "\n# CAUTION: 40 requests in 9 s are too few to compute limits: use at least 1000\n# requests of an hour or more, better a day with the busiest hour.\n",
        "\ndry_run = true    # rejects and delays nothing",
        "\n# rate = \"5r/s\"\n",
        "`drip simulate -c mine.toml --summary access.log`",
        "`drip check --all -c mine.toml` shows",
    ] {
        assert!(file.contains(part), "no\n{part}in\n{file}");
    }
}
