//! Tests of tokens of the admin port: for reading, for named changes, and for metrics.

use std::path::Path;

use crate::support::live::Listener;
use crate::support::operator::{ask, send_with};
use crate::support::{
    Answer, Client, Gateway, Origin, Site, assert_contains, drip, eventually, exchange, one_zone,
};

const ADMIN: &str = "DRIP_ADMIN_TOKEN";
const READ: &str = "DRIP_ADMIN_READ_TOKEN";

/// Starts a gateway with these tokens in its environment, and `server` in its `[server]`.
fn start(origin: &Origin, server: &str, admin: &str, read: &str) -> Gateway {
    let file = format!("{server}{}", one_zone(origin, "1r/m", "burst = 3"));
    Gateway::start_with(&file, &[(ADMIN, Path::new(admin)), (READ, Path::new(read))])
}

fn bearer(token: &str) -> String {
    match token {
        "" => String::new(),
        token => format!("Authorization: Bearer {token}\r\n"),
    }
}

/// Returns the status of a response, whose body may be endless.
fn status(gateway: &Gateway, path: &str, token: &str) -> u16 {
    let mut client = Client::connect(gateway.site.admin);
    let (admin, fields) = (gateway.site.admin, bearer(token));
    client.send(format!(
        "GET {path} HTTP/1.1\r\nHost: {admin}\r\n{fields}\r\n"
    ));
    let first_line = client.head().first_line;
    let status = first_line.split(' ').nth(1).expect("a status");
    status.parse().expect("a number")
}

fn send(gateway: &Gateway, method: &str, path: &str, token: &str, body: &str) -> Answer {
    send_with(gateway, method, path, &bearer(token), body)
}

const SECRETS: &str =
    "/api/zones /api/zones/z /api/zones/z/keys /api/config /api/live /api/headline /nothing/here";

#[test]
fn reading_needs_the_token_for_it_or_one_for_changes() {
    let origin = Origin::start();
    let gateway = start(&origin, "", "ops:SECRET1,ci:SECRET2", "reader");
    for path in SECRETS.split(' ') {
        for wrong in ["", "reade", "readers", "SECRET", "ops"] {
            let refused = ask(&gateway, "GET", path, &bearer(wrong));
            assert_eq!(refused.status, 401, "{path} {wrong}");
            assert_eq!(refused.field("www-authenticate"), Some("Bearer"));
            assert!(refused.text().contains(READ), "{}", refused.text());
        }
        for right in ["reader", "SECRET1", "SECRET2"] {
            let expected = if path == "/nothing/here" { 404 } else { 200 };
            assert_eq!(status(&gateway, path, right), expected, "{path} {right}");
        }
    }
    for path in [
        "healthz", "readyz", "", "page.js", "login.js", "icon.svg", "metrics",
    ] {
        for token in ["", "wrong"] {
            assert_eq!(status(&gateway, &format!("/{path}"), token), 200, "{path}");
        }
    }
    // A page whose name was pointed to this address does not know the token.
    for (token, expected) in [("", 401), ("reader", 200)] {
        let fields = format!("Host: evil.example\r\n{}", bearer(token));
        let request = format!("GET /api/zones HTTP/1.1\r\n{fields}\r\n");
        let answer = exchange(gateway.site.admin, request);
        assert_eq!(answer.status, expected, "{token}");
    }
    let mut listener = Listener::connect(&gateway, "", &bearer("reader"));
    assert_eq!(listener.next().name, "history");
}

#[test]
fn metrics_are_open_or_need_a_token_as_the_file_says_now() {
    let origin = Origin::start();
    let gateway = start(&origin, "metrics = \"token\"\n", "ops:SECRET1", "reader");
    let seen = || ["", "wrong", "reader", "SECRET1"].map(|it| status(&gateway, "/metrics", it));
    assert_eq!(seen(), [401, 401, 200, 200]);
    assert_eq!(status(&gateway, "/healthz", ""), 200);
    gateway.site.write(&one_zone(&origin, "1r/m", "burst = 3"));
    eventually("they are open", || seen() == [200, 200, 200, 200]);
    let file = one_zone(&origin, "1r/m", "burst = 3");
    gateway.site.write(&format!("metrics = \"token\"\n{file}"));
    eventually("they are not", || seen() == [401, 401, 200, 200]);
    // A token for changes also allows metrics.
    let gateway = start(&origin, "metrics = \"token\"\n", "secret", "");
    assert_eq!(status(&gateway, "/%6Detrics", ""), 401);
    let seen = ["", "wrong", "secret"].map(|it| status(&gateway, "/metrics", it));
    assert_eq!(seen, [401, 401, 200]);
    assert_eq!(status(&gateway, "/api/zones", ""), 200);
}

/// A method, a path, a body, the token, and parts of the log line, separated by `|`.
type LoggedChange = [&'static str; 5];

const OF_ZONE: &str = "/api/zones/z/override";
const OF_KEY: &str = "/api/zones/z/keys/a/override";
const PAUSE: &str = r#"{"pause": true, "for": "1h"}"#;
const RATE: &str = r#"{"rate": "7r/h", "for": "1h"}"#;

#[rustfmt::skip]
const CHANGES: [LoggedChange; 8] = [
    ["PUT", OF_ZONE, PAUSE, "SECRET1",
     "override set|what=\"zones.z\"|from=\"the file: rate 1r/m\"|to=\"paused\"|until=2|by=\"ops\""],
    ["PUT", OF_ZONE, RATE, "SECRET2",
     "override set|from=\"paused\"|to=\"rate 7r/h\"|until=2|by=\"ci\""],
    ["DELETE", OF_ZONE, "", "ops:SECRET1",
     "override undone|from=\"rate 7r/h\"|to=\"the file: rate 1r/m\"|by=\"ops\""],
    ["PUT", OF_KEY, RATE, "plain", "override set|what=\"zones.z, key a\"|by=\"admin\""],
    ["DELETE", OF_KEY, "", "SECRET2", "override undone|what=\"zones.z, key a\"|by=\"ci\""],
    ["DELETE", "/api/zones/z/keys/a", "", "SECRET1",
     "key forgotten|what=\"zones.z, key a\"|to=\"forgotten\"|by=\"ops\""],
    ["DELETE", "/api/zones/z/keys/b?drop=true", "", "SECRET1",
     "key forgotten|what=\"zones.z, key b\"|to=\"forgotten, waiting requests rejected: 1\"|by=\"ops\""],
    ["POST", "/api/reload", "", "SECRET2", "reload requested|what=\"gateway.toml\"|by=\"ci\""],
];

#[test]
fn each_change_is_logged_with_its_token_and_one_for_reading_changes_nothing() {
    let origin = Origin::start();
    let gateway = start(&origin, "", "ops:SECRET1,ci:SECRET2,\"plain\"", "reader");
    for path in ["/?key=a", "/?key=b"] {
        assert_eq!(gateway.fetch(path).status, 200);
    }
    let waiting = gateway.ask("/?key=b");
    gateway.wait_for_depth(1);
    for [method, path, body, token, parts] in CHANGES {
        let refused = send(&gateway, method, path, "reader", body);
        assert_eq!(refused.status, 403, "{method} {path}");
        assert!(refused.text().contains(ADMIN), "{}", refused.text());
        for wrong in ["", "wrong"] {
            let refused = send(&gateway, method, path, wrong, body);
            assert_eq!(refused.status, 401, "{method} {path}");
        }
        let before = gateway.log_lines().len();
        let answer = send(&gateway, method, path, token, body);
        assert_eq!(answer.status, 200, "{method} {path}: {}", answer.text());
        eventually(parts, || {
            let lines = gateway.log_lines().split_off(before);
            let has = |line: &str, parts: &str| parts.split('|').all(|part| line.contains(part));
            let mut lines = lines.iter().filter(|(_, line)| has(line, parts));
            lines.any(|(_, line)| line.contains("peer=\"127.0.0.1\""))
        });
    }
    drop(waiting);
    let refused = send(&gateway, "POST", "/api/zones/z/what-if", "reader", "{}");
    assert_eq!(refused.status, 403);
    for secret in ["SECRET1", "SECRET2", "plain", "reader"] {
        assert!(!gateway.log().contains(secret), "{secret} is in the log");
    }
    let shown = ask(&gateway, "GET", "/api/config", &bearer("reader")).text();
    assert_contains!(shown, "by ops", "by 127.0.0.1");
}

#[test]
fn a_token_that_is_wrong_ends_the_start_and_is_not_shown() {
    let site = Site::new();
    site.write(&one_zone(&Origin::start(), "1r/m", "burst = 3"));
    let no_name = "entry 2 has no name; write each as NAME:SECRET";
    let same_name = "entries 1 and 2 have the same name";
    for (variable, value, says) in [
        (ADMIN, "ops:hidden1,hidden2", no_name),
        (ADMIN, "ops:hidden1,ops:hidden2", same_name),
        (READ, "hid\u{1}den", "control character"),
    ] {
        let mut run = drip();
        let output = run.env(variable, value).arg("-c").arg(site.file()).output();
        let output = output.expect("drip");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{text}");
        let begin = format!("drip: {variable}: ");
        assert!(text.starts_with(&begin) && text.contains(says), "{text}");
        assert!(!text.contains("hid"), "{text}");
    }
}

#[test]
fn drip_top_shows_the_token_and_says_what_to_set() {
    let origin = Origin::start();
    let gateway = start(&origin, "", "ops:SECRET1", "reader");
    let address = gateway.site.admin.to_string();
    let top = |variables: &[(&str, &str)]| {
        let mut top = drip();
        let top = top
            .envs(variables.iter().copied())
            .args(["top", "--once", &address]);
        let output = top.output().expect("drip");
        let received = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.success(), received)
    };
    for right in [(READ, "reader"), (ADMIN, "ops:SECRET1"), (ADMIN, "SECRET1")] {
        let (shows, text) = top(&[right]);
        assert!(shows, "{right:?}: {text}");
    }
    let (shows, text) = top(&[]);
    let requested = "the gateway requires a token: set DRIP_ADMIN_READ_TOKEN";
    assert!(!shows && text.contains(requested), "{text}");
    for (variable, value, says) in [
        (
            READ,
            "other",
            "the gateway does not accept the token in DRIP_ADMIN_READ_TOKEN",
        ),
        (
            ADMIN,
            "other",
            "the gateway does not accept the token in DRIP_ADMIN_TOKEN",
        ),
        (
            ADMIN,
            "ops:\"hidden",
            "DRIP_ADMIN_TOKEN: the quote of entry 1 has no end",
        ),
    ] {
        let (shows, text) = top(&[(variable, value)]);
        assert!(!shows && text.contains(says), "{text}");
    }
}
