//! `POST /api/zones/{zone}/what-if`: what other numbers would have done to the last arrivals.

use std::collections::BTreeMap;
use std::fs;
use std::thread::sleep;
use std::time::Duration;

use serde_json::{Value, json as value};

use crate::support::operator::{ask, json, post};
use crate::support::{Client, Gateway, Origin, drip, eventually, fetch, one_zone, whole_lines};

const WHAT_IF: &str = "/api/zones/z/what-if";
const LOG: &str = "[log]\nformat = \"json\"\naccess = \"access.log\"\n";
const LIMIT: &str = "burst = 4, delay = 3";
const KEYS: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];

/// The seconds in the month of a time such as `2026-11-21T03:33:01.5Z`.
fn seconds(time: &str) -> f64 {
    let (date, time) = time.trim_end_matches('Z').split_once('T').expect("a time");
    let day: f64 = date[8..].parse().expect("a day");
    let parts = time
        .split(':')
        .map(|part| part.parse::<f64>().expect("a number"));
    day * 86_400.0 + parts.fold(0.0, |all, part| all * 60.0 + part)
}

/// The requests of an access log as a trace of times and keys.
fn trace(log: &str) -> String {
    let line = |line: &str| {
        let line: Value = serde_json::from_str(line).expect("JSON");
        let ended = seconds(line["time"].as_str().expect("a text"));
        let took = line["duration_seconds"].as_f64().expect("a number");
        (
            ended - took,
            line["key"].as_str().expect("a text").to_owned(),
        )
    };
    let mut lines: Vec<_> = log.lines().map(line).collect();
    lines.sort_by(|one, other| one.0.total_cmp(&other.0));
    let lines = lines.iter().map(|(time, key)| format!("{time:.6},{key}\n"));
    lines.collect()
}

/// How many requests `drip simulate` gives each verdict at this rate.
fn simulated(gateway: &Gateway, origin: &Origin, rate: &str, trace: &str) -> Value {
    let folder = gateway.site.folder();
    let (file, path) = (folder.join("other.toml"), folder.join("trace.csv"));
    fs::write(&file, one_zone(origin, rate, LIMIT)).expect("a file");
    fs::write(&path, trace).expect("a file");
    let mut drip = drip();
    let output = drip.arg("simulate").arg("-c").args([&file, &path]).output();
    let output = output.expect("drip runs");
    assert!(output.status.success(), "{output:?}");
    let mut counts = BTreeMap::from([("passed", 0), ("delayed", 0), ("rejected", 0)]);
    for row in String::from_utf8_lossy(&output.stdout).lines().skip(1) {
        let verdict = row.split(',').nth(2).expect("a verdict");
        let count = counts.iter_mut().find(|(name, _)| **name == verdict);
        *count.expect("a known verdict").1 += 1;
    }
    value!(counts)
}

/// The same counts of one side of the answer, or of the totals of a zone.
fn counts(of: &Value) -> Value {
    value!({"passed": of["passed"], "delayed": of["delayed"], "rejected": of["rejected"]})
}

#[test]
fn now_is_what_happened_and_then_is_what_simulate_says() {
    let origin = Origin::start();
    let zone = one_zone(&origin, "30r/m", LIMIT);
    let gateway = Gateway::start(&format!("workers = 4\n\n{zone}{LOG}"));
    // Two crowds of each key. The second one comes in the middle between two departures, so that a
    // busy machine decides alike.
    let mut clients = Vec::new();
    for (crowd, size) in [(0, 20), (1, 10)] {
        sleep(Duration::from_millis(1_500 * crowd));
        for key in KEYS {
            let target = format!("/?key={key}");
            clients.extend((0..size).map(|_| (key, Client::ask(gateway.address(), &target))));
        }
    }
    let mut rejected: BTreeMap<&str, u32> = BTreeMap::new();
    let sent = clients.len();
    for (key, mut client) in clients {
        *rejected.entry(key).or_default() += u32::from(client.answer().status == 429);
    }
    let log = gateway.site.folder().join("access.log");
    let log = || whole_lines(&log);
    eventually("all are logged", || log().lines().count() == sent);

    let (status, told) = post(&gateway, WHAT_IF, r#"{"rate": "60r/m"}"#);
    assert_eq!(status, 200, "{told}");
    let totals = &json(&gateway, "/api/zones/z")["totals"];
    assert_eq!(told["arrivals"], sent);
    assert_eq!(counts(&told["now"]), counts(totals), "{told}");
    let trace = trace(&log());
    let simulated = |rate| simulated(&gateway, &origin, rate, &trace);
    assert_eq!(counts(&told["now"]), simulated("30r/m"), "{told}");
    assert_eq!(counts(&told["then"]), simulated("60r/m"), "{told}");
    assert_ne!(counts(&told["then"]), counts(&told["now"]), "{told}");

    let share = told["now"]["share_rejected"].as_f64().expect("a number");
    let sent = u32::try_from(sent).expect("a small number");
    let expected = f64::from(rejected.values().sum::<u32>()) / f64::from(sent);
    assert!((share - expected).abs() < 1e-9, "{told}");
    let waited = |side: &str| told[side]["wait_max"].as_f64().expect("a number");
    assert!(waited("now") > 1.0 && waited("now") <= 2.0, "{told}");
    assert!(waited("then") > 0.0 && waited("then") <= 1.0, "{told}");
    let keys = told["keys"].as_array().expect("a list");
    assert_eq!(keys.len(), 5, "{told}");
    for key in keys {
        let name = key["key"].as_str().expect("a text");
        assert_eq!(key["rejected_now"], rejected[name], "{key}");
        assert!(
            key["rejected_then"].as_u64() < key["rejected_now"].as_u64(),
            "{key}"
        );
    }
    assert_eq!(
        counts(&json(&gateway, "/api/zones/z")["totals"]),
        counts(&told["now"])
    );
    assert_eq!(
        json(&gateway, "/api/zones/z")["rate"],
        "30r/m",
        "nothing has changed"
    );
}

#[test]
fn all_limits_of_a_request_record_it_and_a_request_that_another_zone_rejects_is_left_out() {
    let origin = Origin::start();
    let zones = one_zone(
        &origin,
        "1r/m",
        "burst = 9, nodelay = true }, { zone = \"few\", burst = 1, nodelay = true",
    ) + "[zones.few]\nkey = \"$arg_key\"\nrate = \"1r/m\"\n";
    let gateway = Gateway::start(&zones);
    let statuses: Vec<u16> = (0..6)
        .map(|_| fetch(gateway.address(), "/?key=a").status)
        .collect();
    assert_eq!(statuses, [200, 200, 429, 429, 429, 429]);
    let told = |zone: &str| {
        post(
            &gateway,
            &format!("/api/zones/{zone}/what-if"),
            r#"{"burst": 3}"#,
        )
        .1
    };
    let few = told("few");
    assert_eq!(
        counts(&few["now"]),
        value!({"passed": 2, "delayed": 0, "rejected": 4}),
        "{few}"
    );
    assert_eq!(
        counts(&few["then"]),
        value!({"passed": 4, "delayed": 0, "rejected": 2}),
        "{few}"
    );
    let many = told("z");
    assert_eq!(many["arrivals"], 2, "{many}");
    assert_eq!(
        counts(&many["now"]),
        value!({"passed": 2, "delayed": 0, "rejected": 0}),
        "{many}"
    );
}

#[test]
fn what_is_wrong_is_named_and_another_site_may_not_ask() {
    let origin = Origin::start();
    let gateway = Gateway::start(&one_zone(&origin, "10r/s", "burst = 3"));
    let error = |path: &str, body: &str| {
        let (status, told) = post(&gateway, path, body);
        (status, told["error"].as_str().expect("a text").to_owned())
    };
    let (status, message) = error(WHAT_IF, r#"{"keys": 3}"#);
    assert_eq!(status, 400);
    assert!(message.contains("unknown field `keys`"), "{message}");
    let (status, message) = error("/api/zones/y/what-if", r#"{"rate": "1r/s"}"#);
    assert_eq!(status, 404);
    assert!(message.contains("the zones are: z"), "{message}");
    assert_eq!(ask(&gateway, "GET", WHAT_IF, "").status, 405);
    let foreign = "Origin: https://evil.example\r\nContent-Length: 0\r\n";
    assert_eq!(ask(&gateway, "POST", WHAT_IF, foreign).status, 403);

    let (status, told) = post(&gateway, WHAT_IF, r#"{"rate": "20r/s"}"#);
    assert_eq!((status, &told["arrivals"]), (200, &value!(0)), "{told}");
    assert_eq!(told["then"]["wait_p99"], Value::Null);
}

#[test]
fn after_a_reload_with_another_key_nothing_tells_of_the_arrivals_of_the_old_keys() {
    let origin = Origin::start();
    let text = one_zone(&origin, "1r/h", "burst = 1, nodelay = true");
    let gateway = Gateway::start(&text);
    let mut client = Client::connect(gateway.address());
    let mut rejected = |gateway: &Gateway| {
        for key in KEYS {
            client.get(&format!("/?key={key}"));
            client.answer();
        }
        let headline = &json(gateway, "/api/headline")["headline"];
        let evidence = headline["evidence"].as_str().map(str::to_owned);
        sleep(Duration::from_millis(50));
        evidence.unwrap_or_default()
    };
    eventually("the headline tells of eight keys", || {
        rejected(&gateway).contains("All 8 keys are limited.")
    });
    gateway
        .site
        .write(&text.replace("key = \"$arg_key\"", "key = \"all\""));
    let (status, answer) = post(&gateway, "/api/reload", "");
    assert_eq!(status, 200, "{answer}");
    eventually("the headline tells of one key", || {
        let evidence = rejected(&gateway);
        let is_told = evidence.contains("All requests share one key: all");
        assert!(!(is_told && evidence.contains("8 keys")), "{evidence}");
        is_told
    });
    let (status, view) = post(&gateway, WHAT_IF, r#"{"rate": "2r/h"}"#);
    assert_eq!(status, 200, "{view}");
    let arrivals = view["arrivals"].as_u64().expect("a number");
    assert!(arrivals >= 8, "{view}");
    assert_eq!(view["now"]["passed"], 2, "of one key: {view}");
}
