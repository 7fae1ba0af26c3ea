//! Tests of temporary overrides of an origin's gate.

use std::thread;

use serde_json::{Value, json};

use crate::support::operator::{changes, gate, json, put, send, undo};
use crate::support::{
    Client, Gateway, HoldingOrigin, MS, Origin, all_pass, assert_contains, eventually,
    free_address, now, one_origin,
};

const PATH: &str = "/api/origins/app/override";

fn crowd(gateway: &Gateway, count: usize) -> Vec<Client> {
    let crowd = (0..count).map(|_| gateway.ask("/"));
    crowd.collect()
}

fn is_overridden(gateway: &Gateway, kind: &str) -> bool {
    let labels = [("origin", "app"), ("kind", kind)];
    gateway.count("drip_origin_override", &labels) == 1
}

#[test]
fn a_paused_gate_holds_all_until_it_is_undone_and_then_they_leave_at_its_pace() {
    let origin = Origin::start();
    let gate_of_file = "rate = \"20r/s\"\nqueue_timeout = \"60s\"";
    let gateway = Gateway::start(&one_origin(origin.address, "", gate_of_file));
    let received = put(&gateway, PATH, r#"{"pause": true, "for": "1h"}"#);
    assert_eq!(received["pause"], true);
    assert_eq!(received["by"], "127.0.0.1");
    assert_eq!(gate(&gateway)["override"]["pause"], true);
    assert!(is_overridden(&gateway, "pause") && !is_overridden(&gateway, "rate"));
    let mut waiting = crowd(&gateway, 6);
    gateway.wait_at_gate(6);
    thread::sleep(500 * MS);
    assert_eq!(origin.arrivals().len(), 0, "nothing leaves");
    eventually("the headline tells of it", || {
        json(&gateway, "/api/headline")["headline"]["title"] == "The gate of app is paused"
    });
    let resumed = now();
    undo(&gateway, PATH);
    origin.wait_for(6);
    let took = resumed.elapsed();
    assert!(took >= 240 * MS, "a surge: {took:?}");
    all_pass(&mut waiting);
    assert_eq!(gate(&gateway).get("override"), None);
    let until = received["until"].as_str().expect("a time");
    let paused = format!("origins.app: paused until {until}, by 127.0.0.1");
    let expected = ["origins.app: override undone", &paused];
    assert_eq!(changes(&gateway)[..2], expected);
}

#[test]
fn more_permits_apply_at_once_to_waiters() {
    let held = HoldingOrigin::start();
    let file = |queue: u32| {
        let gate = format!("max_in_flight = 1\nmax_queue = {queue}\nqueue_timeout = \"60s\"");
        one_origin(held.origin.address, "", &gate)
    };
    let gateway = Gateway::start(&file(100));
    let mut waiting = crowd(&gateway, 4);
    gateway.wait_at_gate(3);
    put(&gateway, PATH, r#"{"max_in_flight": 4, "for": "1h"}"#);
    held.origin.wait_for(4);
    let labels = [("origin", "app"), ("of", "now")];
    assert_eq!(gateway.count("drip_origin_in_flight_limit", &labels), 4);
    assert!(is_overridden(&gateway, "max_in_flight"));
    // A reload keeps the override.
    gateway.site.write(&file(101));
    eventually("the file is in force", || {
        gate(&gateway)["max_queue"] == 101
    });
    let kept = json!({"file": 1, "now": 4});
    assert_eq!(gate(&gateway)["max_in_flight"], kept);
    held.release("/");
    all_pass(&mut waiting);
    undo(&gateway, PATH);
    assert_eq!(gate(&gateway)["max_in_flight"]["now"], 1);
}

#[test]
fn an_override_lasts_as_long_as_its_owner_renews_it() {
    let origin = Origin::start();
    let gateway = Gateway::start(&one_origin(origin.address, "", "rate = \"20r/s\""));
    let renewed = r#"{"rate": "40r/s", "for": "1s", "owner": "search"}"#;
    let first = put(&gateway, PATH, renewed);
    for _ in 0..6 {
        thread::sleep(250 * MS);
        let received = put(&gateway, PATH, renewed);
        assert_eq!(received["since"], first["since"], "it is the same one");
    }
    assert_eq!(gate(&gateway)["override"]["owner"], "search");
    let settings: Vec<_> = changes(&gateway);
    let set = settings.iter().filter(|it| it.contains("rate 40r/s"));
    assert_eq!(set.count(), 1, "{settings:?}");
    // Another value of the same owner is another override.
    let other = r#"{"rate": "50r/s", "for": "2s", "owner": "search"}"#;
    put(&gateway, PATH, other);
    let ended = now();
    for owner in [r#", "owner": "another""#, ""] {
        let body = format!(r#"{{"rate": "1r/s", "for": "1h"{owner}}}"#);
        let answer = send(&gateway, "PUT", PATH, &body);
        let text = answer.text();
        assert_eq!(answer.status, 409, "{text}");
        assert_contains!(text, "search holds an override");
    }
    eventually("it expires", || gate(&gateway).get("override").is_none());
    let lasted = ended.elapsed();
    assert!(lasted > 1_500 * MS, "{lasted:?}");
    gateway.wait_for_line("override expired");
    assert_eq!(changes(&gateway)[0], "origins.app: override expired");
    // No owner holds the override now.
    put(&gateway, PATH, r#"{"rate": "30r/s", "for": "1h"}"#);
    undo(&gateway, PATH);
}

#[test]
fn a_back_off_lowers_the_overridden_rate_as_that_of_the_file() {
    let origin = Origin::answering(|exchange| {
        exchange.send(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
    });
    let gate_of_file = "rate = \"100r/s\"\n[origins.app.backoff]\nfloor = \"50%\"";
    let gateway = Gateway::start(&one_origin(origin.address, "", gate_of_file));
    put(&gateway, PATH, r#"{"rate": "400r/s", "for": "1h"}"#);
    let now = || gate(&gateway)["rate"]["now"].clone();
    eventually("it backs off to its floor", || {
        assert_eq!(gateway.fetch("/").status, 503);
        now() == "200r/s"
    });
    // A lowered rate stays lowered by the same factor.
    put(&gateway, PATH, r#"{"rate": "40r/s", "for": "1h"}"#);
    assert_eq!(now(), "20r/s");
    undo(&gateway, PATH);
    assert_eq!(now(), "50r/s");
}

#[test]
fn an_override_ends_with_the_gate_that_it_is_for() {
    let origin = Origin::start();
    let with_gate = one_origin(origin.address, "", "rate = \"20r/s\"");
    let gateway = Gateway::start(&with_gate);
    put(&gateway, PATH, r#"{"pause": true, "for": "1h"}"#);
    let mut held = gateway.ask("/");
    gateway.wait_at_gate(1);
    gateway.site.write(&one_origin(origin.address, "", ""));
    assert_eq!(held.answer().status, 200);
    gateway.wait_for_line("override of the origin ended");
    // The log line is written before the new file is in force for the admin port.
    eventually("there is no gate to override", || {
        send(&gateway, "DELETE", PATH, "").status == 409
    });
    gateway.site.write(&with_gate);
    eventually("the gate is back", || gate(&gateway) != Value::Null);
    assert_eq!(gate(&gateway).get("override"), None);
}

#[test]
fn what_cannot_be_is_refused_with_its_reason() {
    let origin = Origin::start();
    let table = |(name, gate): (&str, &str)| {
        format!(
            "[origins.{name}]\nservers = [\"http://{}\"]\n{gate}\n\
             [[routes]]\npath = \"/{name}\"\norigin = \"{name}\"\n",
            origin.address
        )
    };
    let shared = "rate = \"20r/s\"\nmax_in_flight = 5\nstore = \"redis\"";
    let tables = [
        ("app", "rate = \"20r/s\""),
        ("free", ""),
        ("shared", shared),
    ]
    .map(table);
    let redis = format!("\n[redis]\nurl = \"redis://{}\"\n", free_address());
    let gateway = Gateway::start(&(redis + &tables.concat()));
    let origins = json(&gateway, "/api/origins");
    assert_eq!(origins["origins"][1]["gate"], Value::Null);
    let (rate, permits) = (r#""rate": "5r/s""#, r#""max_in_flight": 5"#);
    for (method, name, body, status, says) in [
        ("PUT", "app", r#""rate": "fast""#, 400, "a rate is a count"),
        ("PUT", "app", r#""max_in_flight": 0"#, 400, "from 1 to"),
        ("PUT", "app", r#""pause": false"#, 400, "nothing differs"),
        ("PUT", "app", r#""dry_run": true"#, 400, "dry_run"),
        ("PUT", "none", rate, 404, "the origins are: app, free"),
        ("PUT", "free", rate, 409, "has no gate"),
        ("PUT", "shared", rate, 409, "share the rate"),
        ("PUT", "shared", permits, 409, "share max_in_flight"),
        ("PUT", "shared", r#""pause": true"#, 200, "pause"),
        ("DELETE", "app", "", 404, "nothing is overridden"),
        ("POST", "app", rate, 405, "PUT, DELETE"),
    ] {
        let path = format!("/api/origins/{name}/override");
        let body = format!("{{{body}, \"for\": \"1m\"}}");
        let answer = send(&gateway, method, &path, &body);
        let text = answer.text();
        assert_eq!(answer.status, status, "{method} {path} {body}: {text}");
        let is_said = text.contains(says) || answer.field("allow") == Some(says);
        assert!(is_said, "{method} {path} {body}: {text}");
    }
}
