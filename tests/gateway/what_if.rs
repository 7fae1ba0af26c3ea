//! Tests of `POST /api/zones/{zone}/what-if`: effect of other numbers on the last arrivals.

use std::collections::BTreeMap;
use std::fs;
use std::thread::sleep;
use std::time::Duration;

use serde_json::{Value, json as value};

use crate::support::operator::{ask, json, post};
use crate::support::{Gateway, Origin, drip, one_zone, start_limited};

const WHAT_IF: &str = "/api/zones/z/what-if";
const LOG: &str = "[log]\nformat = \"json\"\naccess = \"access.log\"\n";
const LIMIT: &str = "burst = 4, delay = 3";
const KEYS: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];

/// Returns the seconds in the month of a time such as `2026-11-21T03:33:01.5Z`.
fn seconds(time: &str) -> f64 {
    let (date, time) = time.trim_end_matches('Z').split_once('T').expect("a time");
    let day: f64 = date[8..].parse().expect("a day");
    let parts = time
        .split(':')
        .map(|part| part.parse::<f64>().expect("a number"));
    day * 86_400.0 + parts.fold(0.0, |all, part| all * 60.0 + part)
}

/// Returns the requests of an access log as a trace of times and keys.
fn trace(log: &[Value]) -> String {
    let line = |line: &Value| {
        let ended = seconds(line["time"].as_str().expect("a text"));
        let took = line["duration_seconds"].as_f64().expect("a number");
        let key = line["key"].as_str().expect("a text").to_owned();
        (ended - took, key)
    };
    let mut lines: Vec<_> = log.iter().map(line).collect();
    lines.sort_by(|one, other| one.0.total_cmp(&other.0));
    let lines = lines.iter().map(|(time, key)| format!("{time:.6},{key}\n"));
    lines.collect()
}

/// Returns how many requests `drip simulate` gives each verdict at this rate.
fn simulated(gateway: &Gateway, origin: &Origin, rate: &str, trace: &str) -> Value {
    let folder = gateway.site.folder();
    let (file, path) = (folder.join("other.toml"), folder.join("trace.csv"));
    fs::write(&file, one_zone(origin, rate, LIMIT)).expect("a file");
    fs::write(&path, trace).expect("a file");
    let output = drip()
        .args(["simulate", "-c"])
        .args([&file, &path])
        .output();
    let output = output.expect("drip runs");
    assert!(output.status.success(), "{output:?}");
    let shown = String::from_utf8_lossy(&output.stdout);
    let rows = shown.lines().skip(1);
    let verdicts: Vec<_> = rows.map(|row| row.split(',').nth(2)).collect();
    let of = |name| verdicts.iter().filter(|it| **it == Some(name)).count();
    value!({"passed": of("passed"), "delayed": of("delayed"), "rejected": of("rejected")})
}

/// Returns the same counts from one side of the response, or from the totals of a zone.
fn counts(of: &Value) -> Value {
    value!({"passed": of["passed"], "delayed": of["delayed"], "rejected": of["rejected"]})
}

#[test]
fn now_is_what_happened_and_then_is_what_simulate_says() {
    let origin = Origin::start();
    let zone = one_zone(&origin, "30r/m", LIMIT);
    let gateway = Gateway::start(&format!("workers = 4\n\n{zone}{LOG}"));
    // Two crowds of each key. The second one arrives midway between two departures, so that a busy
    // machine decides alike.
    let mut clients = Vec::new();
    for (crowd, size) in [(0, 20), (1, 10)] {
        sleep(Duration::from_millis(1_500 * crowd));
        for key in KEYS {
            let target = format!("/?key={key}");
            clients.extend((0..size).map(|_| (key, gateway.ask(&target))));
        }
    }
    let mut rejected: BTreeMap<&str, u32> = BTreeMap::new();
    let sent = clients.len();
    for (key, mut client) in clients {
        *rejected.entry(key).or_default() += u32::from(client.answer().status == 429);
    }
    let log = gateway.access_log(sent);
    assert_eq!(log.len(), sent);

    let (status, received) = post(&gateway, WHAT_IF, r#"{"rate": "60r/m"}"#);
    assert_eq!(status, 200, "{received}");
    let zone = json(&gateway, "/api/zones/z");
    assert_eq!(received["arrivals"], sent);
    let of_now = counts(&received["now"]);
    assert_eq!(of_now, counts(&zone["totals"]), "{received}");
    let trace = trace(&log);
    let simulated = |rate| simulated(&gateway, &origin, rate, &trace);
    assert_eq!(counts(&received["now"]), simulated("30r/m"), "{received}");
    assert_eq!(counts(&received["then"]), simulated("60r/m"), "{received}");
    assert_ne!(counts(&received["then"]), of_now, "{received}");

    let number = |side: &str, field: &str| received[side][field].as_f64().expect("a number");
    let sent = u32::try_from(sent).expect("a small number");
    let expected = f64::from(rejected.values().sum::<u32>()) / f64::from(sent);
    let off = number("now", "share_rejected") - expected;
    assert!(off.abs() < 1e-9, "{received}");
    for (side, range) in [("now", 1.001..=2.0), ("then", 0.001..=1.0)] {
        assert!(range.contains(&number(side, "wait_max")), "{received}");
    }
    let keys = received["keys"].as_array().expect("a list");
    assert_eq!(keys.len(), 5, "{received}");
    for key in keys {
        let name = key["key"].as_str().expect("a text");
        assert_eq!(key["rejected_now"], rejected[name], "{key}");
        let fewer = key["rejected_then"].as_u64() < key["rejected_now"].as_u64();
        assert!(fewer, "{key}");
    }
    let after = json(&gateway, "/api/zones/z");
    assert_eq!(counts(&after["totals"]), counts(&zone["totals"]));
    assert_eq!(after["rate"], "30r/m", "nothing has changed");
}

#[test]
fn all_limits_of_a_request_record_it_and_a_request_that_another_zone_rejects_is_left_out() {
    let origin = Origin::start();
    let limits = "burst = 9, nodelay = true }, { zone = \"few\", burst = 1, nodelay = true";
    let few = "[zones.few]\nkey = \"$arg_key\"\nrate = \"1r/m\"\n";
    let gateway = Gateway::start(&(one_zone(&origin, "1r/m", limits) + few));
    let statuses = [(); 6].map(|()| gateway.fetch("/?key=a").status);
    assert_eq!(statuses, [200, 200, 429, 429, 429, 429]);
    for (zone, side, passed, rejected) in [
        ("few", "now", 2, 4),
        ("few", "then", 4, 2),
        ("z", "now", 2, 0),
    ] {
        let path = format!("/api/zones/{zone}/what-if");
        let received = post(&gateway, &path, r#"{"burst": 3}"#).1;
        let expected = value!({"passed": passed, "delayed": 0, "rejected": rejected});
        assert_eq!(counts(&received[side]), expected, "{zone}: {received}");
        let all = passed + rejected;
        assert_eq!(received["arrivals"], all, "{zone}: {received}");
    }
}

#[test]
fn what_is_wrong_is_named_and_another_site_may_not_ask() {
    let (_origin, gateway) = start_limited("10r/s", "burst = 3");
    for (path, body, status, says) in [
        (WHAT_IF, r#"{"keys": 3}"#, 400, "unknown field `keys`"),
        (
            "/api/zones/y/what-if",
            r#"{"rate": "1r/s"}"#,
            404,
            "the zones are: z",
        ),
    ] {
        let (found, received) = post(&gateway, path, body);
        assert_eq!(found, status, "{received}");
        assert!(received["error"].to_string().contains(says), "{received}");
    }
    assert_eq!(ask(&gateway, "GET", WHAT_IF, "").status, 405);
    let foreign = "Origin: https://evil.example\r\nContent-Length: 0\r\n";
    assert_eq!(ask(&gateway, "POST", WHAT_IF, foreign).status, 403);

    let (status, received) = post(&gateway, WHAT_IF, r#"{"rate": "20r/s"}"#);
    assert_eq!(status, 200, "{received}");
    assert_eq!(received["arrivals"], 0, "{received}");
    assert_eq!(received["then"]["wait_p99"], Value::Null);
}
