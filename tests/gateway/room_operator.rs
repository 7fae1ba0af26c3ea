//! Tests of what the operator sees of a waiting room, and does in it.

use serde_json::Value;

use crate::support::live::Listener;
use crate::support::operator::{ask, changes, delete, json, post, put, send, undo};
use crate::support::{Gateway, Origin, assert_contains, eventually, fetch_with, one_origin};

const OVERRIDE: &str = "/api/rooms/app/override";
const WORD: &str = "/api/rooms/app/word";
const CALL: &str = "/api/rooms/app/call";
const EMPTY: &str = "/api/rooms/app/empty";

/// Starts a gateway whose origin `app` has a room with these fields.
fn start(origin: &Origin, fields: &str) -> Gateway {
    let room = format!("[origins.app.room]\nsecret = \"0123456789abcdef\"\n{fields}\n");
    Gateway::start(&one_origin(origin.address, "", &room))
}

fn room(gateway: &Gateway) -> Value {
    json(gateway, "/api/origins")["origins"][0]["room"].clone()
}

/// Sends new visitors. Returns the status of each.
fn visit<const COUNT: usize>(gateway: &Gateway) -> [u16; COUNT] {
    [(); COUNT].map(|()| gateway.fetch("/").status)
}

#[test]
fn who_waits_and_who_is_inside_is_shown() {
    let origin = Origin::start();
    let gateway = start(&origin, "sessions = 1\nadmit = \"2r/m\"");
    assert_eq!(visit(&gateway), [200, 429, 429]);
    let room = room(&gateway);
    let metrics = gateway.metrics();
    let of = |name, label, value| metrics.count(name, &[("origin", "app"), (label, value)]);
    for (name, expected) in [("waiting", 2), ("called", 0), ("inside", 1)] {
        assert_eq!(room[name], expected, "{room}");
        assert_eq!(of("drip_room_visitors", "where", name), expected, "{name}");
    }
    assert_eq!(room["sessions"], serde_json::json!({"file": 1, "now": 1}));
    assert_eq!(room["admit"]["now"], "2r/m");
    assert_eq!(room["open"], true);
    assert_eq!(room["opens"], Value::Null);
    assert_eq!(room["override"], Value::Null);
    for (event, expected) in [("walked_in", 1), ("drew", 2), ("called", 0)] {
        assert_eq!(room["events"][event], expected, "{room}");
        let counted = of("drip_room_visitors_total", "event", event);
        assert_eq!(counted, expected, "{event}");
    }
    assert_eq!(room["requests"]["drew"], 2, "{room}");
    assert_eq!(of("drip_room_requests_total", "request", "drew"), 2);
    for (name, expected) in [
        ("drip_room_session_limit", 1),
        ("drip_room_open", 1),
        ("drip_room_paused", 0),
    ] {
        assert_eq!(of(name, "origin", "app"), expected, "{name}");
    }
    let value = |name| metrics.value(name, &[("origin", "app")]).expect("it");
    assert!((value("drip_room_admit") - 2.0 / 60.0).abs() < 1e-9);
    assert!(value("drip_room_pace") > 0.0);
    let mut live = Listener::connect(&gateway, "", "");
    // The history, and perhaps the second in which they arrived.
    live.next();
    live.next();
    let sample = live.next().data["origins"][0]["room"].clone();
    assert_eq!(sample["waiting"], 2, "{sample}");
    assert_eq!(sample["events"], serde_json::json!({}), "{sample}");
}

#[test]
fn an_origin_without_a_room_says_nothing_of_one() {
    let origin = Origin::start();
    let gateway = Gateway::start(&one_origin(origin.address, "", ""));
    assert_eq!(room(&gateway), Value::Null);
    let text = gateway.admin("/metrics").expect("an admin port").text();
    assert!(!text.contains("drip_room_visitors"), "{text}");
}

/// Returns the tickets of new visitors who must wait.
fn tickets<const COUNT: usize>(gateway: &Gateway) -> [String; COUNT] {
    [(); COUNT].map(|()| {
        let answer = gateway.fetch("/");
        assert_eq!(answer.status, 429, "{}", answer.text());
        answer.field("drip-ticket").expect("a ticket").to_owned()
    })
}

fn poll(gateway: &Gateway, ticket: &str) -> u16 {
    let ticket = format!("Drip-Ticket: {ticket}\r\n");
    fetch_with(gateway.address(), "/", &ticket).status
}

#[test]
fn a_pause_calls_nobody_until_it_is_undone() {
    let origin = Origin::start();
    let gateway = start(&origin, "sessions = 2");
    let received = put(&gateway, OVERRIDE, r#"{"pause": true, "for": "1h"}"#);
    assert_eq!(received["pause"], true, "{received}");
    assert_eq!(received["by"], "127.0.0.1");
    let [first, _] = tickets(&gateway);
    let paused = room(&gateway);
    assert_eq!(paused["override"], received, "{paused}");
    let counts = (&paused["waiting"], &paused["called"]);
    assert_eq!(counts, (&2.into(), &0.into()));
    assert_eq!(paused["wait"], Value::Null, "{paused}");
    assert_eq!(gateway.count("drip_room_paused", &[("origin", "app")]), 1);
    eventually("the headline", || {
        let headline = json(&gateway, "/api/headline")["headline"].clone();
        headline["cause"] == "paused" && headline["about"] == "app"
    });
    undo(&gateway, OVERRIDE);
    assert_eq!(room(&gateway)["called"], 2, "both sessions are free");
    assert_eq!(poll(&gateway, &first), 200);
    assert_eq!(delete(&gateway, OVERRIDE).0, 404);
    let changes = changes(&gateway);
    assert_eq!(changes[0], "origins.app.room: override undone");
    let set = changes[1].starts_with("origins.app.room: paused until 20");
    assert!(set && changes[1].ends_with(", by 127.0.0.1"), "{changes:?}");
    let line = gateway.wait_for_line("override set");
    for part in [
        "by=\"admin\" peer=\"127.0.0.1\"",
        "what=\"origins.app.room\"",
        "from=\"the file: sessions 2, admit none\" to=\"paused\" until=20",
    ] {
        assert!(line.contains(part), "{part}: {line}");
    }
    let line = gateway.wait_for_line("override undone");
    assert_contains!(line, "from=\"paused\"");
}

#[test]
fn another_size_counts_at_once_and_expires() {
    let origin = Origin::start();
    let gateway = start(&origin, "sessions = 1");
    assert_eq!(visit(&gateway), [200]);
    let [first, second] = tickets(&gateway);
    let body = r#"{"sessions": 2, "admit": "100r/s", "for": "1s"}"#;
    put(&gateway, OVERRIDE, body);
    eventually("the next one is called", || room(&gateway)["called"] == 1);
    assert_eq!(poll(&gateway, &first), 200);
    let larger = room(&gateway);
    assert_eq!(larger["sessions"], serde_json::json!({"file": 1, "now": 2}));
    let expected = serde_json::json!({"file": null, "now": "100r/s"});
    assert_eq!(larger["admit"], expected);
    gateway.wait_for_line("override expired");
    let after = room(&gateway);
    assert_eq!(after["sessions"]["now"], 1, "{after}");
    assert_eq!(after["inside"], 2, "no visitor inside is turned away");
    assert_eq!(poll(&gateway, &second), 429);
    assert_eq!(changes(&gateway)[0], "origins.app.room: override expired");
}

#[test]
fn visitors_are_called_by_hand() {
    let origin = Origin::start();
    let gateway = start(&origin, "sessions = 4\nadmit = \"1r/h\"");
    assert_eq!(visit(&gateway), [200]);
    let [first, second, third] = tickets(&gateway);
    let (status, received) = post(&gateway, CALL, r#"{"count": 2}"#);
    assert_eq!(status, 200, "{received}");
    assert_eq!(received["called"], 2, "{received}");
    let statuses = [&first, &second, &third].map(|ticket| poll(&gateway, ticket));
    assert_eq!(statuses, [200, 200, 429]);
    let received = changes(&gateway)[0].clone();
    let expected = "origins.app.room: 2 of 2 visitors called, by 127.0.0.1";
    assert_eq!(received, expected);
    let line = gateway.wait_for_line("visitors called");
    assert_contains!(line, "from=\"3 waiting\"");
    // One session is free, and one visitor waits.
    let received = post(&gateway, CALL, r#"{"count": 9}"#).1;
    assert_eq!(received["called"], 1, "{received}");
    let received = post(&gateway, CALL, r#"{"count": 9}"#).1;
    assert_eq!(received["called"], 0, "{received}");
}

#[test]
fn those_who_wait_read_a_word_and_are_sent_away_with_one() {
    let origin = Origin::start();
    let gateway = start(&origin, "sessions = 1");
    assert_eq!(visit(&gateway), [200]);
    let [ticket] = tickets(&gateway);
    let page = |ticket: &str| {
        let fields = format!("Accept: text/html\r\nCookie: drip_ticket_app={ticket}\r\n");
        let page = fetch_with(gateway.address(), "/", &fields);
        assert!([429, 503].contains(&page.status), "{}", page.text());
        page.text()
    };
    let received = put(&gateway, WORD, r#"{"word": "Tea & <cake>", "for": "1h"}"#);
    assert_eq!(received["word"], "Tea & <cake>", "{received}");
    assert_eq!(room(&gateway)["word"], received);
    let shown = page(&ticket);
    assert_contains!(shown, "&#60;cake&#62;");
    let fields = format!("Accept: application/json\r\nDrip-Ticket: {ticket}\r\n");
    let answer = fetch_with(gateway.address(), "/", &fields).text();
    let body: Value = serde_json::from_str(&answer).expect("JSON");
    assert_eq!(body["word"], "Tea & <cake>", "{answer}");
    assert_eq!(delete(&gateway, WORD).0, 200);
    assert!(!page(&ticket).contains("cake"));
    assert_eq!(delete(&gateway, WORD).0, 404);
    let (status, received) = post(&gateway, EMPTY, r#"{"word": "Sold out", "for": "3s"}"#);
    assert_eq!(status, 200, "{received}");
    assert_eq!(received["sent_away"], 1, "{received}");
    assert!(page(&ticket).contains("Sold&#32;out"));
    let after = room(&gateway);
    assert_eq!(after["waiting"], 0);
    assert_eq!(after["inside"], 1);
    assert_eq!(after["events"]["sent_away"], 1, "{after}");
    gateway.wait_for_line("word expired");
    // The list of changes has it a moment after the log.
    let expired = "origins.app.room: word expired";
    eventually("it is listed", || changes(&gateway)[0] == expired);
    let changes = changes(&gateway);
    let emptied = "origins.app.room: emptied, 1 visitor sent away, by 127.0.0.1";
    assert_eq!(changes[1], emptied);
    let line = gateway.wait_for_line("room emptied");
    assert_contains!(line, "from=\"1 waiting, 0 called\"");
    let (status, received) = post(&gateway, EMPTY, "");
    assert_eq!(status, 200, "{received}");
    assert_eq!(received["sent_away"], 0, "{received}");
}

#[test]
fn each_wrong_request_is_explained() {
    let origin = Origin::start();
    let gateway = start(&origin, "sessions = 1");
    let (pause, other) = (
        r#"{"pause": true, "for": "1h"}"#,
        "/api/rooms/shop/override",
    );
    for (method, path, body, status, says) in [
        ("PUT", OVERRIDE, "{}", 400, "nothing differs"),
        ("PUT", OVERRIDE, r#"{"pause": true}"#, 400, "for is missing"),
        ("PUT", WORD, r#"{"word": "", "for": "1h"}"#, 400, "1 to 500"),
        ("PUT", WORD, r#"{"word": "Tea"}"#, 400, "for is missing"),
        ("PUT", other, pause, 404, "these have one: app"),
        ("PUT", CALL, "{}", 405, "POST"),
        ("PUT", EMPTY, "{}", 405, "POST"),
        ("POST", CALL, "", 400, "count"),
        ("POST", CALL, r#"{"count": 0}"#, 400, "from 1 to"),
        ("POST", EMPTY, r#"{"for": "1h"}"#, 400, "1 to 500"),
        (
            "POST",
            EMPTY,
            r#"{"word": "Sold out"}"#,
            400,
            "for is missing",
        ),
    ] {
        let answer = send(&gateway, method, path, body);
        assert_eq!(answer.status, status, "{path} {body}: {}", answer.text());
        assert!(answer.text().contains(says), "{}", answer.text());
    }
    for path in [OVERRIDE, WORD, CALL, EMPTY] {
        assert_eq!(ask(&gateway, "GET", path, "").status, 405, "{path}");
    }
    let closed = start(&origin, "opens = \"2100-01-01T00:00:00Z\"");
    let (status, received) = post(&closed, CALL, r#"{"count": 1}"#);
    assert_eq!(status, 409, "{received}");
    assert_eq!(room(&closed)["open"], false);
    assert_eq!(room(&closed)["opens"], "2100-01-01T00:00:00.000Z");
}
