//! What the operator sees of a waiting room, and does in it.

use serde_json::Value;

use crate::gateway::live::Listener;
use crate::gateway::operator::json;
use crate::support::{Gateway, Origin, fetch, one_origin};

/// A gateway whose origin `app` has a room with these fields.
fn start(origin: &Origin, fields: &str) -> Gateway {
    let room = format!("[origins.app.room]\nsecret = \"0123456789abcdef\"\n{fields}\n");
    Gateway::start(&one_origin(origin.address, "", &room))
}

fn room(gateway: &Gateway) -> Value {
    json(gateway, "/api/origins")["origins"][0]["room"].clone()
}

/// Visitors who come with nothing, and the status of each.
fn visit<const COUNT: usize>(gateway: &Gateway) -> [u16; COUNT] {
    [(); COUNT].map(|()| fetch(gateway.address(), "/").status)
}

#[test]
fn who_waits_and_who_is_inside_is_shown() {
    let origin = Origin::start();
    let gateway = start(&origin, "sessions = 1\nadmit = \"2r/m\"");
    assert_eq!(visit(&gateway), [200, 429, 429]);
    let room = room(&gateway);
    for (name, expected) in [("waiting", 2), ("called", 0), ("inside", 1)] {
        assert_eq!(room[name], expected, "{room}");
        let labels = [("origin", "app"), ("where", name)];
        let shown = gateway.metrics().count("drip_room_visitors", &labels);
        assert_eq!(shown, expected, "{name}");
    }
    assert_eq!(room["sessions"], serde_json::json!({"file": 1, "now": 1}));
    assert_eq!(room["admit"]["now"], "2r/m");
    assert_eq!(room["open"], true);
    assert_eq!(room["opens"], Value::Null);
    assert_eq!(room["override"], Value::Null);
    for (event, expected) in [("walked_in", 1), ("drew", 2), ("called", 0)] {
        assert_eq!(room["events"][event], expected, "{room}");
        let labels = [("origin", "app"), ("event", event)];
        let counted = gateway.metrics().count("drip_room_visitors_total", &labels);
        assert_eq!(counted, expected, "{event}");
    }
    assert_eq!(room["requests"]["drew"], 2, "{room}");
    let labels = [("origin", "app")];
    let metrics = gateway.metrics();
    for (name, expected) in [
        ("drip_room_places", 1),
        ("drip_room_open", 1),
        ("drip_room_paused", 0),
    ] {
        assert_eq!(metrics.count(name, &labels), expected, "{name}");
    }
    let pace = metrics.value("drip_room_pace", &labels);
    assert!(pace.is_some_and(|pace| pace > 0.0), "{pace:?}");
    let drew = [("origin", "app"), ("request", "drew")];
    assert_eq!(metrics.count("drip_room_requests_total", &drew), 2);
    let mut live = Listener::connect(&gateway, "", "");
    // The history, and perhaps the second in which they came.
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
