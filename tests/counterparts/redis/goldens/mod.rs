//! Compares a gateway's metrics, API, samples and `drip top` with the files in `tests/goldens`.
//!
//! A script of requests makes the values. Values that vary are masked: see `mask`.

#[path = "../../../goldens/golden.rs"]
mod golden;
mod mask;

use std::net::SocketAddr;

use golden::check;
use serde_json::Value;

use crate::programs::redis::Redis;
use crate::support::live::{Event, Listener};
use crate::support::operator::{ask, json, put};
use crate::support::{Client, Gateway, HoldingOrigin, alone, eventually};

/// Maximum number of runs of the script, which must fall between two samples.
const TRIES: usize = 20;

fn file(origin: SocketAddr, redis: &Redis) -> String {
    format!(
        r#"
name = "golden"
workers = 1
max_connections = 100

[redis]
url = "{}"
timeout = "5s"

[origins.app]
servers = ["http://{origin}"]

[origins.gated]
servers = ["http://{origin}"]
rate = "1000r/s"
max_in_flight = 1
share = "z"
queue = 1
max_queue = 10
queue_timeout = "1h"

[origins.gated.classes]
paid = 3
free = 1

[origins.gated.backoff]
mode = "shadow"

[zones.z]
key = "$arg_key"
rate = "1r/h"

[zones.z.plans.gold]
keys = ["gold"]
rate = "2r/h"
burst = 5
weight = 2
class = "paid"

[zones.s]
key = "$arg_key"
rate = "1r/h"
store = "redis"

[[routes]]
path = "/"
origin = "app"
limits = [{{ zone = "z", burst = 1 }}]

[[routes]]
path = "/gated"
origin = "gated"
limits = [{{ zone = "z", burst = 100, nodelay = true }}]

[[routes]]
path = "/page"
origin = "app"

[routes.collapse]
keep = "1h"

[[routes]]
path = "/shared"
origin = "app"
limits = [{{ zone = "s", burst = 1, nodelay = true }}]
"#,
        redis.url()
    )
}

/// Paths that are compared, besides metrics, samples and `drip top`.
const PATHS: &str = "/healthz /readyz /api/zones /api/zones/z/keys /api/zones/z/keys?sort=requests \
    /api/zones/z/keys?sort=rejections /api/zones/z/keys?sort=wait /api/zones/z/overrides \
    /api/config /api/origins /api/headline /api/routes /api/store";

#[test]
fn a_run_is_shown_the_same() {
    let _alone = alone();
    for _ in 0..TRIES {
        let redis = Redis::start();
        let origin = HoldingOrigin::of("held");
        let gateway = Gateway::start(&file(origin.origin.address, &redis));
        let mut live = Listener::connect(&gateway, "", "");
        // First the history arrives, then a sample.
        live.next();
        live.next();
        let held = traffic(&gateway, &origin);
        let busy = live.next();
        let mut settled = live.next();
        if !is_whole(&busy) {
            continue;
        }
        while settled.data["headline"]["cause"] != "waiting" {
            settled = live.next();
        }
        let names = [
            (gateway.address().to_string(), "GATEWAY"),
            (gateway.site.admin.to_string(), "ADMIN"),
            (origin.origin.address.to_string(), "ORIGIN"),
            (redis.address.to_string(), "REDIS"),
        ];
        shown(&gateway, &names, [&busy, &settled]);
        drop(held);
        return;
    }
    panic!("the machine is too busy to play the script within a second");
}

/// Returns whether the sample's second contains the complete script.
///
/// All responses, and the ends of their connections, must fall into that second.
fn is_whole(event: &Event) -> bool {
    let codes = event.data["codes"].as_object().expect("an object");
    let responses: u64 = codes.values().filter_map(Value::as_u64).sum();
    let is_over = event.data["origins"][0]["in_flight"] == 0;
    responses == 13 && is_over && event.data["connections"]["open"] == 3
}

/// Makes accepted, delayed and rejected requests, and an override. Returns the waiting clients.
fn traffic(gateway: &Gateway, origin: &HoldingOrigin) -> Vec<Client> {
    let send = |target: &str| gateway.ask(target);
    let status = |target: &str| send(target).answer().status;
    let depth = || json(gateway, "/api/zones/z")["depth"].clone();

    // The override lets the second request pass.
    assert_eq!(status("/?key=a"), 200);
    let mut delayed = send("/?key=a");
    eventually("one waits", || depth() == 1);
    assert_eq!([(); 2].map(|()| status("/?key=a")), [429; 2]);
    let body = r#"{"rate": "1000r/s", "for": "1h"}"#;
    put(gateway, "/api/zones/z/keys/a/override", body);
    assert_eq!(delayed.answer().status, 200);

    // One of these requests still waits in the zone at the end.
    assert_eq!(status("/?key=b"), 200);
    let mut held = vec![send("/?key=b")];
    eventually("one waits", || depth() == 1);
    assert_eq!(status("/?key=b"), 429);

    // One request is at the origin, and one waits at its gate.
    held.push(send("/gated?key=gold&held"));
    origin.origin.wait_for(4);
    held.push(send("/gated?key=gold"));
    eventually("one waits at the gate", || {
        json(gateway, "/api/origins")["origins"][1]["gate"]["queue_depth"] == 1
    });
    assert_eq!(status("/gated?key=gold"), 429);

    assert_eq!([(); 3].map(|()| status("/shared?key=a")), [200, 200, 429]);
    assert_eq!(status("/"), 200);
    assert_eq!([(); 2].map(|()| status("/page")), [200; 2]);
    held
}

/// Compares all outputs.
fn shown(gateway: &Gateway, names: &[(String, &str)], samples: [&Event; 2]) {
    let get = |path: &str| ask(gateway, "GET", path, "").text();
    let mut api = String::new();
    for path in PATHS.split(' ') {
        let text = get(path);
        let text = if path.starts_with("/api") {
            mask::json(&text)
        } else {
            text
        };
        api.extend(["== ", path, "\n", &mask::text(&text, names), "\n"]);
    }
    check("api.txt", &api);
    let one = mask::text(&mask::json(&get("/api/zones/z")), names);
    let is_part = |zone: &str| api.replace("\n    ", "\n").contains(zone.trim_end());
    assert!(is_part(&one), "/api/zones/z is not in /api/zones:\n{one}");
    for (sample, name) in samples
        .into_iter()
        .zip(["live-busy.txt", "live-settled.txt"])
    {
        check(name, &mask::text(&mask::json(&sample.text), names));
    }
    let metrics = mask::text(&mask::metrics(&get("/metrics")), names);
    check("metrics.txt", &metrics);
    let top = mask::text(&gateway.top(), names);
    check("top.txt", &mask::columns(&top));
}
