//! Acting at the gate of an origin without the file: overrides for a while.

use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::operator::{changes, json, parse, send};
use crate::support::{
    Client, Gateway, MS, Origin, eventually, fetch, free_address, now, one_origin,
};

const PATH: &str = "/api/origins/app/override";

fn put(gateway: &Gateway, body: &str) -> Value {
    let answer = send(gateway, "PUT", PATH, body);
    assert_eq!(answer.status, 200, "{}", answer.text());
    parse(&answer)
}

fn undo(gateway: &Gateway) {
    let answer = send(gateway, "DELETE", PATH, "");
    assert_eq!(answer.status, 200, "{}", answer.text());
}

fn gate(gateway: &Gateway) -> Value {
    json(gateway, "/api/origins")["origins"][0]["gate"].clone()
}

fn crowd(gateway: &Gateway, count: usize) -> Vec<Client> {
    let crowd = (0..count).map(|_| Client::ask(gateway.address(), "/"));
    crowd.collect()
}

fn wait_for_depth(gateway: &Gateway, depth: u64) {
    eventually("requests wait at the gate", || {
        gate(gateway)["queue_depth"] == depth
    });
}

fn is_overridden(gateway: &Gateway, kind: &str) -> bool {
    let labels = [("origin", "app"), ("kind", kind)];
    gateway.metrics().count("drip_origin_override", &labels) == 1
}

#[test]
fn a_paused_gate_holds_all_until_it_is_undone_and_then_they_leave_at_its_pace() {
    let origin = Origin::start();
    let gate_of_file = "rate = \"20r/s\"\nqueue_timeout = \"60s\"";
    let gateway = Gateway::start(&one_origin(origin.address, "", gate_of_file));
    let told = put(&gateway, r#"{"pause": true, "for": "1h"}"#);
    assert_eq!(told["pause"], true);
    assert_eq!(told["by"], "127.0.0.1");
    assert_eq!(gate(&gateway)["override"]["pause"], true);
    assert!(is_overridden(&gateway, "pause") && !is_overridden(&gateway, "rate"));
    let waiting = crowd(&gateway, 6);
    wait_for_depth(&gateway, 6);
    thread::sleep(500 * MS);
    assert_eq!(origin.arrivals().len(), 0, "nothing leaves");
    eventually("the headline tells of it", || {
        json(&gateway, "/api/headline")["headline"]["title"] == "The gate of app is paused"
    });
    let resumed = now();
    undo(&gateway);
    origin.wait_for(6);
    let took = resumed.elapsed();
    assert!(took >= 240 * MS, "a surge: {took:?}");
    for mut client in waiting {
        assert_eq!(client.answer().status, 200);
    }
    assert_eq!(gate(&gateway).get("override"), None);
    assert_eq!(
        changes(&gateway)[..2],
        [
            "origins.app: override undone".to_owned(),
            format!(
                "origins.app: paused until {}, by 127.0.0.1",
                told["until"].as_str().expect("a time")
            )
        ]
    );
}

#[test]
fn a_rate_counts_at_once_for_those_who_wait_and_a_reload_keeps_it_until_it_expires() {
    let origin = Origin::start();
    let file = |queue: u32| {
        let gate = format!("rate = \"1r/m\"\nmax_queue = {queue}\nqueue_timeout = \"100h\"");
        one_origin(origin.address, "", &gate)
    };
    let gateway = Gateway::start(&file(100));
    let _waiting = crowd(&gateway, 80);
    wait_for_depth(&gateway, 79);
    put(&gateway, r#"{"rate": "20r/s", "for": "2s"}"#);
    origin.wait_for(8);
    assert!(is_overridden(&gateway, "rate"));
    gateway.site.write(&file(101));
    eventually("the file is in force", || {
        gate(&gateway)["max_queue"] == 101
    });
    let kept = gate(&gateway);
    assert_eq!(kept["override"]["rate"], "20r/s", "{kept}");
    assert_eq!(kept["rate"], json!({"file": "1r/m", "now": "20r/s"}));
    eventually("it expires", || !is_overridden(&gateway, "rate"));
    assert_eq!(gate(&gateway)["rate"]["now"], "1r/m");
    let left = origin.arrivals().len();
    assert!(left < 79, "{left}: the rate of the file is back");
    thread::sleep(Duration::from_secs(1));
    assert!(origin.arrivals().len() <= left + 1);
    eventually("it is logged", || {
        gateway.log().contains("override expired")
    });
    assert_eq!(changes(&gateway)[0], "origins.app: override expired");
}

#[test]
fn more_places_count_at_once_for_those_who_wait() {
    let origin = Origin::answering(|exchange| {
        thread::sleep(Duration::from_secs(1));
        exchange.reply(b"ok")
    });
    let gateway = Gateway::start(&one_origin(origin.address, "", "max_in_flight = 1"));
    let waiting = crowd(&gateway, 4);
    wait_for_depth(&gateway, 3);
    put(&gateway, r#"{"max_in_flight": 4, "for": "1h"}"#);
    origin.wait_within(4, 900 * MS);
    let labels = [("origin", "app"), ("of", "now")];
    let metrics = gateway.metrics();
    assert_eq!(metrics.count("drip_origin_in_flight_limit", &labels), 4);
    assert!(is_overridden(&gateway, "max_in_flight"));
    for mut client in waiting {
        assert_eq!(client.answer().status, 200);
    }
    undo(&gateway);
    assert_eq!(gate(&gateway)["max_in_flight"]["now"], 1);
}

#[test]
fn an_override_lasts_as_long_as_its_owner_renews_it() {
    let origin = Origin::start();
    let gateway = Gateway::start(&one_origin(origin.address, "", "rate = \"20r/s\""));
    let renewed = r#"{"rate": "40r/s", "for": "2s", "owner": "search"}"#;
    let first = put(&gateway, renewed);
    for _ in 0..8 {
        thread::sleep(500 * MS);
        let told = put(&gateway, renewed);
        assert_eq!(told["since"], first["since"], "it is the same one");
    }
    assert_eq!(gate(&gateway)["override"]["owner"], "search");
    let settings: Vec<_> = changes(&gateway);
    let set = settings.iter().filter(|it| it.contains("rate 40r/s"));
    assert_eq!(set.count(), 1, "{settings:?}");
    for owner in [r#", "owner": "another""#, ""] {
        let body = format!(r#"{{"rate": "1r/s", "for": "1h"{owner}}}"#);
        let answer = send(&gateway, "PUT", PATH, &body);
        assert_eq!(answer.status, 409, "{}", answer.text());
        assert!(
            answer.text().contains("search holds an override"),
            "{}",
            answer.text()
        );
    }
    // Another value of the same owner is another override.
    put(
        &gateway,
        r#"{"rate": "50r/s", "for": "2s", "owner": "search"}"#,
    );
    let ended = now();
    eventually("it expires", || gate(&gateway).get("override").is_none());
    let lasted = ended.elapsed();
    assert!(lasted > 1_500 * MS, "{lasted:?}");
    // Nobody holds it now.
    put(&gateway, r#"{"rate": "30r/s", "for": "1h"}"#);
    undo(&gateway);
}

#[test]
fn a_back_off_lowers_the_overridden_rate_as_that_of_the_file() {
    let origin = Origin::answering(|exchange| {
        exchange.send(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
    });
    let gate_of_file = "rate = \"100r/s\"\n[origins.app.backoff]\nfloor = \"50%\"";
    let gateway = Gateway::start(&one_origin(origin.address, "", gate_of_file));
    put(&gateway, r#"{"rate": "400r/s", "for": "1h"}"#);
    let now = || gate(&gateway)["rate"]["now"].clone();
    eventually("it backs off to its floor", || {
        assert_eq!(fetch(gateway.address(), "/").status, 503);
        now() == "200r/s"
    });
    // What is lowered stays lowered to the same part.
    put(&gateway, r#"{"rate": "40r/s", "for": "1h"}"#);
    assert_eq!(now(), "20r/s");
    undo(&gateway);
    assert_eq!(now(), "50r/s");
}

#[test]
fn an_override_ends_with_the_gate_that_it_is_for() {
    let origin = Origin::start();
    let with_gate = one_origin(origin.address, "", "rate = \"20r/s\"");
    let gateway = Gateway::start(&with_gate);
    put(&gateway, r#"{"pause": true, "for": "1h"}"#);
    let mut held = Client::ask(gateway.address(), "/");
    wait_for_depth(&gateway, 1);
    gateway.site.write(&one_origin(origin.address, "", ""));
    assert_eq!(held.answer().status, 200);
    gateway.wait_for_line("override of the origin ended");
    // The line is written before the new file is in force for the admin port.
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
    let redis = free_address();
    let file = format!(
        r#"
[redis]
url = "redis://{redis}"

[origins.app]
servers = ["http://{address}"]
rate = "20r/s"

[origins.free]
servers = ["http://{address}"]

[origins.shared]
servers = ["http://{address}"]
rate = "20r/s"
max_in_flight = 5
store = "redis"

[[routes]]
path = "/"
origin = "app"

[[routes]]
path = "/free"
origin = "free"

[[routes]]
path = "/shared"
origin = "shared"
"#,
        address = origin.address
    );
    let gateway = Gateway::start(&file);
    for (body, says) in [
        ("", "the body must be JSON"),
        (r#"{"rate": "20r/s"}"#, "for is missing"),
        (r#"{"rate": "fast", "for": "1m"}"#, "a rate is a count"),
        (
            r#"{"max_in_flight": 0, "for": "1m"}"#,
            "from 1 to 1000000000",
        ),
        (r#"{"for": "1m"}"#, "nothing differs"),
        (r#"{"dry_run": true, "for": "1m"}"#, "dry_run"),
    ] {
        let answer = send(&gateway, "PUT", PATH, body);
        assert_eq!(answer.status, 400, "{body}: {}", answer.text());
        assert!(answer.text().contains(says), "{body}: {}", answer.text());
    }
    let (rate, places) = (
        r#"{"rate": "5r/s", "for": "1m"}"#,
        r#"{"max_in_flight": 5, "for": "1m"}"#,
    );
    for (method, name, body, status, says) in [
        ("PUT", "none", rate, 404, "the origins are: app, free"),
        ("PUT", "free", rate, 409, "has no gate"),
        ("PUT", "shared", rate, 409, "share the rate"),
        ("PUT", "shared", places, 409, "share max_in_flight"),
        ("DELETE", "app", "", 404, "nothing is overridden"),
        ("POST", "app", rate, 405, "PUT, DELETE"),
    ] {
        let path = format!("/api/origins/{name}/override");
        let answer = send(&gateway, method, &path, body);
        let text = answer.text();
        assert_eq!(answer.status, status, "{method} {path} {body}: {text}");
        assert!(
            text.contains(says) || answer.field("allow") == Some(says),
            "{method} {path} {body}: {text}"
        );
    }
    let paused = send(
        &gateway,
        "PUT",
        "/api/origins/shared/override",
        r#"{"pause": true, "for": "1m"}"#,
    );
    assert_eq!(paused.status, 200, "{}", paused.text());
}
