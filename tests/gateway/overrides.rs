//! Acting without the file: overrides of a zone or a key, for a while.

use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::operator::{json, parse, send_with};
use crate::support::{Client, Gateway, Origin, eventually, fetch, now, one_zone};

const ZONE: &str = "/api/zones/z/override";

fn put(gateway: &Gateway, path: &str, body: &str) -> Value {
    let answer = send_with(gateway, "PUT", path, "", body);
    assert_eq!(answer.status, 200, "{}", answer.text());
    parse(&answer)
}

fn undo(gateway: &Gateway, path: &str) {
    let answer = send_with(gateway, "DELETE", path, "", "");
    assert_eq!(answer.status, 200, "{}", answer.text());
}

/// Requests that wait, of one key.
fn crowd(gateway: &Gateway, key: &str, count: usize) -> Vec<Client> {
    let target = format!("/?key={key}");
    (0..count)
        .map(|_| Client::ask(gateway.address(), &target))
        .collect()
}

#[test]
fn a_pause_holds_all_until_it_is_undone_and_then_they_leave_at_their_pace() {
    let origin = Origin::start();
    let gateway = Gateway::start(&one_zone(&origin, "20r/s", "burst = 20"));
    let told = put(&gateway, ZONE, r#"{"pause": true, "for": "1h"}"#);
    assert_eq!(told["pause"], true);
    assert_eq!(told["by"], "127.0.0.1");
    assert_eq!(json(&gateway, "/api/zones/z")["override"]["pause"], true);
    let waiting = crowd(&gateway, "a", 6);
    gateway.wait_for_depth(6);
    thread::sleep(Duration::from_millis(500));
    assert_eq!(origin.arrivals().len(), 0, "nothing leaves");
    let resumed = now();
    undo(&gateway, ZONE);
    origin.wait_for(6);
    let took = resumed.elapsed();
    assert!(took >= Duration::from_millis(240), "a surge: {took:?}");
    for mut client in waiting {
        assert_eq!(client.answer().status, 200);
    }
    assert_eq!(json(&gateway, "/api/zones/z").get("override"), None);
}

#[test]
fn a_rate_counts_at_once_for_those_who_wait_and_expires() {
    let origin = Origin::start();
    let gateway = Gateway::start(&one_zone(&origin, "1r/m", "burst = 100"));
    let _waiting = crowd(&gateway, "a", 60);
    gateway.wait_for_depth(59);
    put(&gateway, ZONE, r#"{"rate": "20r/s", "for": "2s"}"#);
    origin.wait_for(11);
    let shown = || {
        gateway
            .metrics()
            .count("drip_zone_override", &[("zone", "z"), ("kind", "rate")])
    };
    assert_eq!(shown(), 1);
    // A reload keeps it.
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
    let origin = Origin::start();
    let gateway = Gateway::start(&one_zone(&origin, "1r/m", "burst = 0"));
    assert_eq!(fetch(gateway.address(), "/?key=a").status, 200);
    assert_eq!(fetch(gateway.address(), "/?key=a").status, 429);
    put(&gateway, ZONE, r#"{"dry_run": true, "for": "1h"}"#);
    assert_eq!(fetch(gateway.address(), "/?key=a").status, 200);
    let totals = json(&gateway, "/api/zones/z")["totals"].clone();
    assert_eq!(totals["rejected_dry_run"], 1, "{totals}");
    // Of a key: as the file says, whatever the zone says.
    put(
        &gateway,
        "/api/zones/z/keys/a/override",
        r#"{"dry_run": false, "for": "1h"}"#,
    );
    assert_eq!(fetch(gateway.address(), "/?key=a").status, 429);
    undo(&gateway, "/api/zones/z/keys/a/override");
    undo(&gateway, ZONE);
    assert_eq!(fetch(gateway.address(), "/?key=a").status, 429);
}

#[test]
fn a_dry_run_of_one_zone_lets_nobody_past_another() {
    let origin = Origin::start();
    let file = format!(
        r#"
[origins.app]
servers = ["http://{}"]

[zones.z]
key = "$arg_key"
rate = "1r/m"

[zones.other]
key = "$arg_key"
rate = "1r/m"

[[routes]]
path = "/"
origin = "app"
limits = [{{ zone = "z", burst = 0 }}, {{ zone = "other", burst = 1, nodelay = true }}]
"#,
        origin.address
    );
    let gateway = Gateway::start(&file);
    put(&gateway, ZONE, r#"{"dry_run": true, "for": "1h"}"#);
    let statuses: Vec<_> = (0..3)
        .map(|_| fetch(gateway.address(), "/?key=a").status)
        .collect();
    assert_eq!(statuses, [200, 200, 429]);
    let totals = json(&gateway, "/api/zones/z")["totals"].clone();
    assert_eq!(totals["passed"], 1, "{totals}");
    assert_eq!(totals["rejected_dry_run"], 2, "{totals}");
}

#[test]
fn what_cannot_be_is_refused_with_its_reason() {
    let origin = Origin::start();
    let gateway = Gateway::start(&one_zone(&origin, "1r/s", "burst = 0"));
    for (body, says) in [
        ("", "the body must be JSON"),
        ("[]", "the body must be JSON"),
        (r#"{"rate": "20r/s"}"#, "for is missing"),
        (r#"{"rate": "fast", "for": "1m"}"#, "a rate is a count"),
        (r#"{"rate": "2r/s", "for": "soon"}"#, "from 1s to 24h"),
        (r#"{"rate": "2r/s", "for": "25h"}"#, "from 1s to 24h"),
        (r#"{"pause": true, "for": "0s"}"#, "from 1s to 24h"),
        (r#"{"for": "1m"}"#, "nothing differs"),
        (r#"{"pause": false, "for": "1m"}"#, "nothing differs"),
        (r#"{"speed": 1, "for": "1m"}"#, "speed"),
    ] {
        let answer = send_with(&gateway, "PUT", ZONE, "", body);
        assert_eq!(answer.status, 400, "{body}: {}", answer.text());
        assert!(answer.text().contains(says), "{body}: {}", answer.text());
    }
    for (method, path, status) in [
        ("PUT", "/api/zones/none/override", 404),
        ("DELETE", ZONE, 404),
        ("DELETE", "/api/zones/z/keys/a/override", 404),
        ("PUT", "/api/zones/z/keys//override", 400),
        ("POST", ZONE, 405),
    ] {
        let body = r#"{"pause": true, "for": "1m"}"#;
        let answer = send_with(&gateway, method, path, "", body);
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.text());
    }
    let listed = json(&gateway, "/api/zones/z/overrides");
    assert_eq!(listed, json!({"zone": null, "keys": []}));
    let foreign = "Origin: https://evil.example\r\n";
    let answer = send_with(
        &gateway,
        "PUT",
        ZONE,
        foreign,
        r#"{"pause": true, "for": "1m"}"#,
    );
    assert_eq!(answer.status, 403);
}

#[test]
fn a_zone_whose_key_changes_lets_those_go_on_who_were_paused() {
    let origin = Origin::start();
    let file = one_zone(&origin, "20r/s", "burst = 20");
    let gateway = Gateway::start(&file);
    put(&gateway, ZONE, r#"{"pause": true, "for": "1h"}"#);
    let mut held = Client::ask(gateway.address(), "/?key=a");
    gateway.wait_for_depth(1);
    gateway.site.write(&file.replace("$arg_key", "$arg_other"));
    assert_eq!(held.answer().status, 200);
    assert_eq!(json(&gateway, "/api/zones/z").get("override"), None);
}

#[test]
fn a_window_is_not_given_another_count_but_can_be_paused() {
    let origin = Origin::start();
    let zone = "key = \"$arg_key\"\nalgorithm = \"fixed_window\"";
    let file = one_zone(&origin, "5r/h", "").replace("key = \"$arg_key\"", zone);
    let gateway = Gateway::start(&file.replace("zone = \"z\", }", "zone = \"z\" }"));
    for (rate, status) in [("20r/h", 409), ("0.5r/h", 400)] {
        let body = format!(r#"{{"rate": "{rate}", "for": "1m"}}"#);
        let answer = send_with(&gateway, "PUT", ZONE, "", &body);
        assert_eq!(answer.status, status, "{}", answer.text());
    }
    put(&gateway, ZONE, r#"{"pause": true, "for": "1h"}"#);
    let answer = fetch(gateway.address(), "/?key=a");
    assert_eq!(answer.status, 503);
    let retry: u64 = answer
        .field("retry-after")
        .and_then(|it| it.parse().ok())
        .expect("seconds");
    assert!((3_500..=3_600).contains(&retry), "{retry}");
    let reasons = json(&gateway, "/api/zones/z")["rejections"].clone();
    assert_eq!(reasons["paused"], 1, "{reasons}");
    undo(&gateway, ZONE);
    assert_eq!(fetch(gateway.address(), "/?key=a").status, 200);
}

#[test]
fn so_many_keys_and_no_more_have_overrides() {
    let origin = Origin::start();
    let gateway = Gateway::start(&one_zone(&origin, "1r/s", "burst = 0"));
    let body = r#"{"pause": true, "for": "1h"}"#;
    for key in 0..1_000 {
        put(&gateway, &format!("/api/zones/z/keys/{key}/override"), body);
    }
    let path = "/api/zones/z/keys/more/override";
    let answer = send_with(&gateway, "PUT", path, "", body);
    assert_eq!(answer.status, 409);
    assert!(answer.text().contains("1000 keys"), "{}", answer.text());
    // One that has one gets another.
    put(
        &gateway,
        "/api/zones/z/keys/7/override",
        r#"{"dry_run": true, "for": "1h"}"#,
    );
    undo(&gateway, "/api/zones/z/keys/7/override");
    put(&gateway, path, body);
}

#[test]
fn a_token_that_is_set_is_needed() {
    let origin = Origin::start();
    let file = one_zone(&origin, "1r/s", "burst = 0");
    let token = [("DRIP_ADMIN_TOKEN", std::path::Path::new("secret"))];
    let gateway = Gateway::start_with(&file, &token);
    let body = r#"{"pause": true, "for": "1h"}"#;
    for (fields, status) in [
        ("", 401),
        ("Authorization: Bearer wrong\r\n", 401),
        ("Authorization: Bearer secret\r\n", 200),
    ] {
        let answer = send_with(&gateway, "PUT", ZONE, fields, body);
        assert_eq!(answer.status, status, "{}", answer.text());
    }
    assert_eq!(send_with(&gateway, "DELETE", ZONE, "", "").status, 401);
}
