//! Tests of what the operator sees of origins, servers and routes.
//!
//! This includes responses, errors, states, and the last events.

use std::net::SocketAddr;

use serde_json::Value;

use crate::support::live::Listener;
use crate::support::operator::json;
use crate::support::{
    Exchange, Gateway, HoldingOrigin, Origin, assert_contains, eventually, free_address,
    servers as file,
};

fn url(address: SocketAddr) -> String {
    format!("http://{address}")
}

fn server(gateway: &Gateway, nth: usize) -> Value {
    json(gateway, "/api/origins")["origins"][0]["servers"][nth].clone()
}

/// Returns the sum of a field of the next samples, once it is `expected`.
fn sum_of(listener: &mut Listener, expected: u64, field: impl Fn(&Value) -> Value) -> u64 {
    let mut sum = 0;
    for _ in 0..10 {
        let event = listener.next();
        if event.name == "sample" {
            sum += field(&event.data).as_u64().unwrap_or_default();
        }
        if sum >= expected {
            break;
        }
    }
    sum
}

#[test]
fn an_origin_that_answers_500_is_seen_everywhere() {
    let origin = Origin::answering(|exchange| {
        exchange.send(b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n")
    });
    let gateway = Gateway::start(&file(&[url(origin.address)], ""));
    let mut listener = Listener::connect(&gateway, "", "");
    listener.history();
    gateway.check_each(4, "/", 500);
    let codes = |sample: &Value| {
        let (all, of_route) = (
            &sample["codes"]["5xx"],
            &sample["routes"][0]["codes"]["5xx"],
        );
        assert_eq!(all, of_route, "{sample}");
        if sample["origins"][0]["codes"]["5xx"].is_u64() {
            assert!(sample["origins"][0]["latency"]["p99"].is_f64(), "{sample}");
        }
        all.clone()
    };
    assert_eq!(sum_of(&mut listener, 4, codes), 4);

    let all = json(&gateway, "/api/origins");
    let origin = &all["origins"][0];
    for of in [origin, &origin["servers"][0]] {
        assert_eq!(of["codes"], serde_json::json!({"5xx": 4}), "{of}");
        assert_eq!(of["errors"], serde_json::json!({}), "{of}");
        assert!(of["latency"]["p50"].as_f64() <= of["latency"]["p99"].as_f64());
        assert!(of["latency"]["p50"].is_f64(), "{of}");
    }
    let server = &origin["servers"][0];
    assert_eq!(server["state"], "in_use", "an answer is no failure");
    assert_eq!(server["healthy"], true);
    assert_eq!(server["out"], Value::Null);

    let routes = json(&gateway, "/api/routes");
    let route = &routes["routes"][0];
    assert_eq!(route["name"], "/");
    assert_eq!(route["origin"], "app");
    assert_eq!(route["requests"], 4);
    assert_eq!(route["statuses"], serde_json::json!({"500": 4}));
    assert!(route["latency"]["p95"].is_f64(), "{route}");
    let labels = [("origin", "app"), ("code", "5xx")];
    let metrics = gateway.metrics();
    assert_eq!(metrics.count("drip_origin_responses_total", &labels), 4);
}

#[test]
fn a_request_that_no_route_took_is_in_the_codes() {
    let origin = Origin::start();
    let text = file(&[url(origin.address)], "").replace("path = \"/\"", "path = \"/a\"");
    let gateway = Gateway::start(&text);
    assert_eq!(gateway.fetch("/b").status, 404);
    eventually("it is counted", || {
        json(&gateway, "/api/routes")["unrouted"] == serde_json::json!({"4xx": 1})
    });
}

#[test]
fn a_lone_server_that_is_dead_is_failing_until_it_answers() {
    let address = free_address();
    let gateway = Gateway::start(&file(&[url(address)], ""));
    let healthy = || gateway.value("drip_origin_healthy", &[("origin", "app")]);
    assert_eq!(server(&gateway, 0)["state"], "in_use");
    for _ in 0..3 {
        // A server that is out is tried anyway if there is no other.
        assert_eq!(gateway.fetch("/").status, 502);
    }
    assert_eq!(healthy(), Some(0.0));
    let dead = server(&gateway, 0);
    assert_eq!(dead["state"], "failing", "{dead}");
    assert_eq!(dead["healthy"], false, "{dead}");
    assert_eq!(dead["errors"], serde_json::json!({"unreachable": 3}));
    let last = &dead["last_failure"];
    let text = last["text"].as_str().expect("a text");
    assert_contains!(text, "connecting to", "refused");
    assert!(last["at"].as_str().is_some_and(|at| at.ends_with('Z')));
    let mut listener = Listener::connect(&gateway, "", "");
    listener.history();
    let origin = listener.next().data["origins"][0].clone();
    assert_eq!(origin["failing"], 1);
    assert_eq!(origin["servers"], 1);
    assert_eq!(origin["last_failure"], *text);

    let _back = Origin::at(&address.to_string(), |exchange| exchange.reply(b"ok"));
    assert_eq!(gateway.fetch("/").status, 200);
    assert_eq!(server(&gateway, 0)["state"], "in_use");
    assert_eq!(healthy(), Some(1.0));
}

#[test]
fn a_server_that_failures_took_out_says_since_when_and_until_when() {
    let (dead, origin) = (free_address(), Origin::start());
    let more = "max_fails = 1\nfail_timeout = \"3s\"";
    let gateway = Gateway::start(&file(&[url(dead), url(origin.address)], more));
    assert_eq!(gateway.fetch("/").status, 200);
    let out = server(&gateway, 0);
    assert_eq!(out["state"], "out", "{out}");
    assert_eq!(out["out"]["by"], "failures");
    let (since, until) = (&out["out"]["since"], &out["out"]["until"]);
    // Timestamps of one format and zone can be compared as texts.
    let is_later = since.as_str() < until.as_str() && since.is_string();
    assert!(is_later, "{out}");
    assert_eq!(server(&gateway, 1)["state"], "in_use");
    let dead = url(dead);
    let labels = [("server", dead.as_str())];
    let healthy = || gateway.value("drip_origin_healthy", &labels);
    assert_eq!(healthy(), Some(0.0));
    eventually("it gets requests again", || {
        server(&gateway, 0)["state"] == "failing" && healthy() == Some(1.0)
    });
}

#[test]
fn health_checks_report_their_last_result() {
    let address = free_address();
    let checks = "[origins.app.health]\npath = \"/up\"\ninterval = \"50ms\"\nunhealthy_after = 1\n\
                  healthy_after = 1";
    let begin = |status: u16| {
        Origin::at(&address.to_string(), move |exchange: &mut Exchange| {
            exchange.send(format!("HTTP/1.1 {status} So\r\nContent-Length: 0\r\n\r\n"))
        })
    };
    let origin = begin(200);
    let gateway = Gateway::start(&file(&[url(address)], checks));
    eventually("it was checked", || {
        let check = server(&gateway, 0)["last_check"].clone();
        check["healthy"] == true && check["text"] == "it answered 200 OK"
    });
    drop(origin);
    eventually("it is out", || server(&gateway, 0)["state"] == "out");
    let out = server(&gateway, 0);
    assert_eq!(out["out"]["by"], "checks");
    assert_eq!(out["out"]["until"], Value::Null);
    assert_eq!(out["last_check"]["healthy"], false);
    let _back = begin(204);
    eventually("it is back", || {
        let server = server(&gateway, 0);
        server["state"] == "in_use" && server["last_check"]["text"] == "it answered 204 No Content"
    });
}

/// Returns two zones: `wide` admits all requests, and `tight` one.
fn two_zones(origin: &Origin) -> String {
    let more = "[zones.wide]\nkey = \"$remote_addr\"\nrate = \"1000r/s\"\n\
                [zones.tight]\nkey = \"$remote_addr\"\nrate = \"1r/m\"\n";
    let limits =
        "limits = [{ zone = \"wide\", burst = 50, nodelay = true }, { zone = \"tight\" }]\n";
    format!("{}{limits}", file(&[url(origin.address)], more))
}

#[test]
fn two_zones_count_a_request_once_and_what_one_rejects_the_other_calls_so() {
    let origin = Origin::start();
    let gateway = Gateway::start(&two_zones(&origin));
    let mut listener = Listener::connect(&gateway, "", "");
    listener.history();
    let statuses = [(); 4].map(|()| gateway.fetch("/").status);
    assert_eq!(statuses, [200, 429, 429, 429]);
    let mut seen = [0; 4];
    for _ in 0..10 {
        let sample = listener.next().data;
        let zone = |name: &str| {
            let mut zones = sample["zones"].as_array().expect("a list").iter();
            zones.find(|it| it["name"] == name).expect("it").clone()
        };
        let (wide, tight) = (zone("wide"), zone("tight"));
        let all = sample["codes"].as_object().expect("an object").values();
        let more = [
            all.filter_map(Value::as_u64).sum(),
            wide["rejected_elsewhere"].as_u64().unwrap_or_default(),
            wide["cancelled"].as_u64().unwrap_or_default(),
            tight["rejections"]["burst"].as_u64().unwrap_or_default(),
        ];
        seen = [0, 1, 2, 3].map(|nth| seen[nth] + more[nth]);
        if seen[0] >= 4 && seen[1] >= 3 {
            break;
        }
    }
    assert_eq!(seen, [4, 3, 0, 3]);
    let totals = &json(&gateway, "/api/zones/wide")["totals"];
    assert_eq!(totals["rejected_elsewhere"], 3, "{totals}");
    assert_eq!(totals["cancelled"], 0, "{totals}");
}

#[test]
fn what_the_gate_of_an_origin_rejects_its_zones_call_rejected_elsewhere() {
    let held = HoldingOrigin::of("held");
    let gate = "max_in_flight = 1\nmax_queue = 1\nqueue_timeout = \"200ms\"\n\
                [zones.z]\nkey = \"$remote_addr\"\nrate = \"1000r/s\"";
    let limits = "limits = [{ zone = \"z\", burst = 50, nodelay = true }]\n";
    let text = file(&[url(held.origin.address)], gate) + limits;
    let gateway = Gateway::start(&text);
    let _held = gateway.ask("/held");
    held.origin.wait_for(1);
    let status = gateway.fetch("/").status;
    assert_eq!(status, 503, "the second one waits in vain");
    let totals = || json(&gateway, "/api/zones/z")["totals"].clone();
    eventually("it is counted", || totals()["rejected_elsewhere"] == 1);
    assert_eq!(totals()["cancelled"], 0);
}
