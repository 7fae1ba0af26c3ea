//! Tests of the access log of a running gateway.

use serde_json::Value;

use crate::support::{Gateway, Origin, eventually, whole_lines};
use crate::support::{start_drip, zone};

const LIMITS: &str = "limits = [{ zone = \"z\", burst = 1 }]";

fn start(origin: &Origin, key: &str, rate: &str, format: &str) -> Gateway {
    let log = format!("[log]\nformat = \"{format}\"\naccess = \"access.log\"\n");
    start_drip(origin, &(zone("z", key, rate) + &log), &[("/", LIMITS)])
}

fn lines(gateway: &Gateway, count: usize) -> Vec<String> {
    let read = || whole_lines(gateway.site.folder().join("access.log"));
    eventually("all requests are logged", || {
        read().lines().count() >= count
    });
    read().lines().map(ToOwned::to_owned).collect()
}

#[test]
fn json_has_the_verdicts_of_limits_and_499_for_a_disconnected_waiter() {
    let origin = Origin::start();
    let gateway = start(&origin, "$arg_a", "1r/s", "json");
    let ask = || gateway.ask("/x?a=1");
    assert_eq!(ask().answer().status, 200);
    let mut delayed = ask();
    gateway.wait_for_depth(1);
    assert_eq!(ask().answer().status, 429);
    assert_eq!(delayed.answer().status, 200);
    let leaving = ask();
    gateway.wait_for_depth(1);
    drop(leaving);
    gateway.fetch("/unlimited");
    let lines: Vec<Value> = lines(&gateway, 5)
        .iter()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    for (limit_status, status, reaches) in [
        ("passed", 200, true),
        ("delayed", 200, true),
        ("rejected", 429, false),
        ("cancelled", 499, false),
    ] {
        let line = lines.iter().find(|it| it["limit_status"] == limit_status);
        let line = line.unwrap_or_else(|| panic!("no {limit_status}: {lines:?}"));
        for (field, value) in [
            ("zone", "z"),
            ("key", "1"),
            ("client", "127.0.0.1"),
            ("method", "GET"),
            ("target", "/x?a=1"),
            ("protocol", "HTTP/1.1"),
            ("route", "/"),
        ] {
            assert_eq!(line[field], value, "{line}");
        }
        assert_eq!(line["status"], status, "{line}");
        assert_eq!(line["origin_seconds"].is_number(), reaches, "{line}");
        assert_eq!(line.get("origin").is_some(), reaches, "{line}");
        let queued = line["queue_seconds"].as_f64().unwrap_or_default();
        let waits = matches!(limit_status, "delayed" | "cancelled");
        assert!(queued > 0.0 || !waits, "{line}");
    }
    let unlimited = lines.iter().find(|it| it["target"] == "/unlimited");
    let unlimited = unlimited.expect("logged");
    assert!(unlimited.get("limit_status").is_none() && unlimited.get("zone").is_none());
    assert_eq!(gateway.requests("/", "499"), 1);
}

#[test]
fn a_key_of_any_bytes_harms_neither_log_nor_verdict() {
    let origin = Origin::start();
    for (format, shown) in [
        ("json", [r#""key":"a\\x22b\\\\c""#, r#""key":"\\xFF\\xFE""#]),
        ("text", [r#"key="a\x22b\\c""#, r#"key="\xFF\xFE""#]),
    ] {
        let gateway = start(&origin, "$http_x_key", "5r/s", format);
        let mut client = gateway.connect();
        let mut remaining = Vec::new();
        for key in [&b"a\"b\\c"[..], b"\xff\xfe", b"a\"b\\c"] {
            client.send([b"GET / HTTP/1.1\r\nHost: a\r\nX-Key: ", key, b"\r\n\r\n"].concat());
            remaining.push(client.answer().number("x-ratelimit-remaining"));
        }
        assert_eq!(remaining[..2], [1, 1], "two keys");
        let lines = lines(&gateway, 3);
        assert_eq!(lines.len(), 3, "{lines:?}");
        assert!(lines[0].contains(shown[0]), "{}", lines[0]);
        assert!(lines[1].contains(shown[1]), "{}", lines[1]);
    }
}
