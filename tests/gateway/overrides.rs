//! Tests of temporary overrides of a zone or a key.

use std::thread;
use std::time::Duration;

use serde_json::json;

use crate::support::operator::{json, put, send, send_with, undo};
use crate::support::{Client, Gateway, Origin, all_pass, eventually, now, one_zone, start_limited};

const ZONE: &str = "/api/zones/z/override";

/// Sends requests of one key that wait.
fn crowd(gateway: &Gateway, key: &str, count: usize) -> Vec<Client> {
    let target = format!("/?key={key}");
    (0..count).map(|_| gateway.ask(&target)).collect()
}

#[test]
fn a_pause_holds_all_until_it_is_undone_and_then_they_leave_at_their_pace() {
    let (origin, gateway) = start_limited("20r/s", "burst = 20");
    let received = put(&gateway, ZONE, r#"{"pause": true, "for": "1h"}"#);
    assert_eq!(received["pause"], true);
    assert_eq!(received["by"], "127.0.0.1");
    assert_eq!(json(&gateway, "/api/zones/z")["override"]["pause"], true);
    let mut waiting = crowd(&gateway, "a", 6);
    gateway.wait_for_depth(6);
    thread::sleep(Duration::from_millis(500));
    assert_eq!(origin.arrivals().len(), 0, "nothing leaves");
    let resumed = now();
    undo(&gateway, ZONE);
    origin.wait_for(6);
    let took = resumed.elapsed();
    assert!(took >= Duration::from_millis(240), "a surge: {took:?}");
    all_pass(&mut waiting);
    assert_eq!(json(&gateway, "/api/zones/z").get("override"), None);
}

#[test]
fn a_rate_counts_at_once_for_those_who_wait_and_expires() {
    let (origin, gateway) = start_limited("1r/m", "burst = 100");
    let _waiting = crowd(&gateway, "a", 60);
    gateway.wait_for_depth(59);
    put(&gateway, ZONE, r#"{"rate": "20r/s", "for": "2s"}"#);
    origin.wait_for(11);
    let shown = || gateway.count("drip_zone_override", &[("zone", "z"), ("kind", "rate")]);
    assert_eq!(shown(), 1);
    // A reload keeps the override.
    let file = one_zone(&origin, "1r/m", "burst = 101");
    gateway.site.write(&file);
    eventually("the file is in force", || {
        json(&gateway, "/api/zones/z")["limits"][0]["burst"] == 101
    });
    assert_eq!(json(&gateway, "/api/zones/z")["override"]["rate"], "20r/s");
    eventually("it expires", || shown() == 0);
    let left = origin.arrivals().len();
    assert!(left < 59, "{left}: the rate of the file is back");
    thread::sleep(Duration::from_secs(1));
    assert!(origin.arrivals().len() <= left + 1);
    eventually("it is logged", || {
        gateway.log().contains("override expired")
    });
}

#[test]
fn a_dry_run_lets_everything_pass_and_counts() {
    let (_origin, gateway) = start_limited("1r/m", "burst = 0");
    assert_eq!(gateway.fetch("/?key=a").status, 200);
    assert_eq!(gateway.fetch("/?key=a").status, 429);
    put(&gateway, ZONE, r#"{"dry_run": true, "for": "1h"}"#);
    assert_eq!(gateway.fetch("/?key=a").status, 200);
    let totals = json(&gateway, "/api/zones/z")["totals"].clone();
    assert_eq!(totals["rejected_dry_run"], 1, "{totals}");
    // An override of a key applies whatever the zone's override says.
    put(
        &gateway,
        "/api/zones/z/keys/a/override",
        r#"{"dry_run": false, "for": "1h"}"#,
    );
    assert_eq!(gateway.fetch("/?key=a").status, 429);
    undo(&gateway, "/api/zones/z/keys/a/override");
    undo(&gateway, ZONE);
    assert_eq!(gateway.fetch("/?key=a").status, 429);
}

#[test]
fn a_dry_run_of_one_zone_lets_nobody_past_another() {
    let origin = Origin::start();
    let limits = "burst = 0 }, { zone = \"other\", burst = 1, nodelay = true";
    let other = "[zones.other]\nkey = \"$arg_key\"\nrate = \"1r/m\"\n";
    let gateway = Gateway::start(&(one_zone(&origin, "1r/m", limits) + other));
    put(&gateway, ZONE, r#"{"dry_run": true, "for": "1h"}"#);
    let statuses = [(); 3].map(|()| gateway.fetch("/?key=a").status);
    assert_eq!(statuses, [200, 200, 429]);
    let totals = json(&gateway, "/api/zones/z")["totals"].clone();
    assert_eq!(totals["passed"], 1, "{totals}");
    assert_eq!(totals["rejected_dry_run"], 2, "{totals}");
}

#[test]
fn what_cannot_be_is_refused_with_its_reason() {
    let (_origin, gateway) = start_limited("1r/s", "burst = 0");
    for (body, says) in [
        ("", "the body must be JSON"),
        (r#"{"rate": "20r/s"}"#, "for is missing"),
        (r#"{"rate": "fast", "for": "1m"}"#, "a rate is a count"),
        (r#"{"rate": "2r/s", "for": "soon"}"#, "from 1s to 24h"),
        (r#"{"rate": "2r/s", "for": "25h"}"#, "from 1s to 24h"),
        (r#"{"pause": false, "for": "1m"}"#, "nothing differs"),
        (r#"{"speed": 1, "for": "1m"}"#, "speed"),
    ] {
        let answer = send(&gateway, "PUT", ZONE, body);
        assert_eq!(answer.status, 400, "{body}: {}", answer.text());
        assert!(answer.text().contains(says), "{body}: {}", answer.text());
    }
    let pause = r#"{"pause": true, "for": "1m"}"#;
    for (method, path, status) in [
        ("PUT", "/api/zones/none/override", 404),
        ("DELETE", ZONE, 404),
        ("DELETE", "/api/zones/z/keys/a/override", 404),
        ("PUT", "/api/zones/z/keys//override", 400),
        ("POST", ZONE, 405),
    ] {
        let answer = send(&gateway, method, path, pause);
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.text());
    }
    let listed = json(&gateway, "/api/zones/z/overrides");
    assert_eq!(listed, json!({"zone": null, "keys": []}));
    let foreign = "Origin: https://evil.example\r\n";
    assert_eq!(send_with(&gateway, "PUT", ZONE, foreign, pause).status, 403);
}

#[test]
fn a_window_is_not_given_another_count_but_can_be_paused() {
    let origin = Origin::start();
    let zone = "key = \"$arg_key\"\nalgorithm = \"fixed_window\"";
    let file = one_zone(&origin, "5r/h", "").replace("key = \"$arg_key\"", zone);
    let gateway = Gateway::start(&file.replace("zone = \"z\", }", "zone = \"z\" }"));
    for (rate, status) in [("20r/h", 409), ("0.5r/h", 400)] {
        let body = format!(r#"{{"rate": "{rate}", "for": "1m"}}"#);
        let answer = send(&gateway, "PUT", ZONE, &body);
        assert_eq!(answer.status, status, "{}", answer.text());
    }
    put(&gateway, ZONE, r#"{"pause": true, "for": "1h"}"#);
    let answer = gateway.fetch("/?key=a");
    assert_eq!(answer.status, 503);
    assert!((3_500..=3_600).contains(&answer.number("retry-after")));
    assert_eq!(json(&gateway, "/api/zones/z")["rejections"]["paused"], 1);
    undo(&gateway, ZONE);
    assert_eq!(gateway.fetch("/?key=a").status, 200);
}

#[test]
fn so_many_keys_and_no_more_have_overrides() {
    let (_origin, gateway) = start_limited("1r/s", "burst = 0");
    let path = |key: &str| format!("/api/zones/z/keys/{key}/override");
    let body = r#"{"pause": true, "for": "1h"}"#;
    for key in 0..1_000 {
        put(&gateway, &path(&key.to_string()), body);
    }
    let answer = send(&gateway, "PUT", &path("more"), body);
    assert_eq!(answer.status, 409);
    assert!(answer.text().contains("1000 keys"), "{}", answer.text());
    // A key with an override gets another one.
    put(&gateway, &path("7"), r#"{"dry_run": true, "for": "1h"}"#);
    undo(&gateway, &path("7"));
    put(&gateway, &path("more"), body);
}
