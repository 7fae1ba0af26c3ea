//! Tests of what `/api/origins` and `/api/live` report about the gate of an origin.

use serde_json::{Value, json as value};

use crate::support::live::Listener;
use crate::support::operator::gate;
use crate::support::{Client, Gateway, HoldingOrigin, Origin, all_pass, eventually, one_origin};

/// Returns a file whose origin has this gate.
fn gated(origin: &Origin, gate: &str) -> String {
    let more = format!("{gate}\n[zones.key]\nkey = \"$arg_key\"\nrate = \"1000r/s\"");
    one_origin(origin.address, "", &more)
}

/// Sends requests of these keys, one after another, which stay open.
///
/// Each is at the gate, rejected there, or at its origin, before the next one is sent.
fn crowd(gateway: &Gateway, origin: &Origin, keys: &str) -> Vec<Client> {
    let count = |value: &Value| value.as_u64().expect("a number");
    let at_gate = || {
        let gate = gate(gateway);
        count(&gate["queue_depth"]) + count(&gate["rejections"]["queue"])
    };
    let ask = |(nth, key)| {
        let client = gateway.ask(&format!("/?key={key}"));
        eventually("it is there", || {
            at_gate() + origin.arrivals().len() as u64 > nth
        });
        client
    };
    (0_u64..).zip(keys.chars()).map(ask).collect()
}

#[test]
fn a_gate_reports_its_settings_waiters_and_rejections() {
    let origin = Origin::start();
    let text = "rate = \"30r/m\"\nmax_in_flight = 50\nshare = \"key\"\nqueue = 5\nmax_queue = 8\nqueue_timeout = \"60s\"";
    let gateway = Gateway::start(&gated(&origin, text));
    // The first request passes. A single key may have four of eight.
    let _waiting = crowd(&gateway, &origin, "xaaaabc");
    gateway.wait_at_gate(6);
    assert_eq!(gateway.fetch("/?key=a").status, 429);

    let mut gate = gate(&gateway);
    let blocked = gate["blocked_seconds"].take();
    assert!(blocked["pace"].as_f64() > Some(0.0), "{blocked}");
    for by in ["in_flight", "pause", "outage"] {
        assert_eq!(blocked[by], value!(0.0), "{by}");
    }
    let deepest = gate["deepest"].take();
    let shares = deepest.as_array().expect("a list").iter();
    let total: f64 = shares.filter_map(|key| key["share"].as_f64()).sum();
    assert!((total - 1.0).abs() < 1e-9, "{total}");
    let first = (&deepest[0]["key"], &deepest[0]["queue_depth"]);
    assert_eq!(first, (&value!("a"), &value!(4)));
    let share = deepest[0]["share"].as_f64().expect("a number");
    assert!((share - 4.0 / 6.0).abs() < 1e-9, "{share}");
    assert_eq!(
        gate,
        value!({
            "queue_depth": 6,
            "rate": {"file": "30r/m", "now": "30r/m"},
            "max_in_flight": {"file": 50, "now": 50},
            "share": "key", "queue": 5, "max_queue": 8, "classes": [],
            "rejections": {"queue": 1, "max_queue": 0, "timeout": 0, "max_wait": 0, "stopping": 0, "outage": 0},
            "blocked_seconds": null, "backing_off": null, "outage": null, "deepest": null,
        })
    );
}

#[test]
fn a_gate_with_permits_only_has_no_rate_and_no_share() {
    let held = HoldingOrigin::start();
    let gateway = Gateway::start(&gated(&held.origin, "max_in_flight = 1"));
    let _waiting = crowd(&gateway, &held.origin, "ab");
    gateway.wait_at_gate(1);
    let received = gate(&gateway);
    assert_eq!(received["rate"], value!({"file": null, "now": null}));
    assert_eq!(received["max_in_flight"], value!({"file": 1, "now": 1}));
    assert_eq!(received["share"], Value::Null);
    assert_eq!(received["queue"], Value::Null);
    let all = value!([{"key": "", "queue_depth": 1, "share": 1.0}]);
    assert_eq!(received["deepest"], all);
    eventually("its wait counts for the permits", || {
        gate(&gateway)["blocked_seconds"]["in_flight"].as_f64() > Some(0.0)
    });
}

#[test]
fn classes_are_reported_with_their_waiters_and_departures() {
    let origin = Origin::start();
    let gate_of_file = "rate = \"1r/m\"\nshare = \"key\"\nqueue_timeout = \"1h\"\nclasses = { interactive = 8, batch = 1 }";
    let text = gated(&origin, gate_of_file)
        + "[[routes]]\npath = \"/batch\"\norigin = \"app\"\nclass = \"batch\"\n\
           [zones.key.plans.gold]\nkeys = [\"g\"]\nclass = \"interactive\"\n\
           [zones.key.plans.slow]\nkeys = [\"s\"]\nclass = \"batch\"\n";
    let gateway = Gateway::start(&text);
    let of_class = |name, class| gateway.count(name, &[("origin", "app"), ("class", class)]);
    let counted = |class| of_class("drip_origin_class_requests_total", class);
    assert_eq!((counted("interactive"), counted("batch")), (0, 0));
    // One request passes at once, the others wait. A plan's class overrides that of the route.
    let of_route = |path: &str, keys: &str| {
        let targets = keys.chars().map(|key| format!("{path}?key={key}"));
        let clients = targets.map(|target| gateway.ask(&target));
        clients.collect::<Vec<_>>()
    };
    let mut clients = of_route("/", "a");
    origin.wait_for(1);
    clients.extend(of_route("/", "abgs"));
    clients.extend(of_route("/batch", "abbsgg"));
    gateway.wait_at_gate(10);
    let classes = value!([
        { "class": "interactive", "weight": 8, "queue_depth": 3 + 2 },
        { "class": "batch", "weight": 1, "queue_depth": 1 + 4 },
    ]);
    assert_eq!(gate(&gateway)["classes"], classes);
    assert_eq!(of_class("drip_origin_class_queue_depth", "batch"), 5);
    gateway.site.write(&text.replace("1r/m", "100r/s"));
    all_pass(&mut clients);
    assert_eq!((counted("interactive"), counted("batch")), (4 + 2, 1 + 4));
    // Each class of the file in force has its series, and no other.
    let fewer = text.replace("1r/m", "100r/s").replace(", batch = 1", "");
    let fewer = fewer.replace("\"batch\"", "\"interactive\"");
    gateway.site.write(&fewer);
    eventually("the class has left", || {
        !gateway.metrics().0.contains("class=\"batch\"")
    });
    assert_eq!(gateway.fetch("/batch?key=s").status, 200);
    assert_eq!(counted("interactive"), 7);
}

#[test]
fn ten_keys_are_named_and_none_breaks_its_line() {
    let origin = Origin::start();
    let text = "rate = \"1r/m\"\nshare = \"key\"\nqueue_timeout = \"10h\"";
    let gateway = Gateway::start(&gated(&origin, text).replace("\"$arg_key\"", "\"$arg_key$uri\""));
    let _waiting = crowd(&gateway, &origin, "xabcdefghijkl");
    let _odd = [(); 2].map(|()| gateway.ask("/%0A%FF"));
    gateway.wait_at_gate(14);
    let deepest = gate(&gateway)["deepest"].take();
    assert_eq!(deepest.as_array().map(Vec::len), Some(10));
    let first = (&deepest[0]["key"], &deepest[0]["queue_depth"]);
    assert_eq!(first, (&value!("/\\x0A\\xFF"), &value!(2)));
}

#[test]
fn a_gate_that_backs_off_says_why_and_whether_it_acts() {
    for mode in ["on", "shadow"] {
        let origin = Origin::answering(|exchange| {
            exchange.send(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
        });
        let text = format!("rate = \"200r/s\"\n[origins.app.backoff]\nmode = \"{mode}\"");
        let gateway = Gateway::start(&gated(&origin, &text));
        eventually("it backs off", || {
            assert_eq!(gateway.fetch("/").status, 503);
            !gate(&gateway)["backing_off"].is_null()
        });
        let gate = gate(&gateway);
        let why = &gate["backing_off"];
        assert_eq!(why["reason"], "trouble", "{why}");
        assert_eq!(why["shadow"], mode == "shadow", "{why}");
        let text = why["text"].as_str().expect("a text");
        assert!(text.ends_with("answers were trouble"), "{text}");
        assert_eq!(gate["rate"]["file"], "200r/s");
        assert_ne!(gate["rate"]["now"], "200r/s", "{gate}");
    }
}

#[test]
fn each_second_of_a_gate_is_reported() {
    let origin = Origin::start();
    let text = "rate = \"5r/s\"\nshare = \"key\"\nqueue = 20\nqueue_timeout = \"60s\"";
    let gateway = Gateway::start(&gated(&origin, text));
    let mut listener = Listener::connect(&gateway, "", "");
    listener.history();
    let keys = "x".to_owned() + &"a".repeat(30) + &"b".repeat(10);
    let _clients = crowd(&gateway, &origin, &keys);
    let (mut rejected, mut blocked, mut last) = (0, 0.0, Value::Null);
    // On a busy machine the crowd takes more than a second to arrive.
    let mut after = 0;
    while after < 3 {
        last = listener.next().data["origins"][0]["gate"].take();
        after += u32::from(after > 0 || last["depth"].as_u64() > Some(1));
        if after == 1 {
            blocked = 0.0;
        }
        rejected += last["rejected"]["queue"].as_u64().unwrap_or(0);
        blocked += last["blocked"]["pace"].as_f64().unwrap_or(0.0);
    }
    // Twenty of the thirty may wait, and some leave meanwhile.
    assert!((1..=10).contains(&rejected), "{rejected}");
    assert!((1.5..3.5).contains(&blocked), "{blocked}");
    let depth = last["depth"].as_u64().expect("a number");
    assert!((2..=28).contains(&depth), "{last}");
    assert_eq!(last["rate"], value!({"file": 5.0, "now": 5.0}));
    assert_eq!(last["max_in_flight"], value!({"file": null, "now": null}));
    assert_eq!(last["backing_off"], Value::Null);
    let waits = ["wait_p50", "wait_p99"].map(|name| last[name].as_f64().expect("a number"));
    let are_plausible = 0.5 < waits[0] && waits[0] <= waits[1] && waits[1] < 4.5;
    assert!(are_plausible, "{last}");
    let of_keys = last["deepest"].as_array().expect("a list").iter();
    let sum: u64 = of_keys.filter_map(|key| key["depth"].as_u64()).sum();
    assert_eq!(sum, depth);
}
