//! Tests of the operator's page while the store is out.

use serde_json::Value;

use crate::programs::redis::Redis;
use crate::support::live::Listener;
use crate::support::operator::json;
use crate::support::{Gateway, Origin, eventually, one_zone};

#[test]
fn a_stopped_store_is_reported_in_api_sample_and_top() {
    let (origin, mut redis) = (Origin::start(), Redis::start());
    let url = redis.url().replace("redis://", "redis://:s3cret@");
    redis.ask("CONFIG SET requirepass s3cret");
    let file = one_zone(&origin, "100r/s", "burst = 20")
        .replace("[zones.z]\n", "[zones.z]\nstore = \"redis\"\n");
    let redis_table = format!("\n[redis]\nurl = \"{url}\"\ntimeout = \"2s\"\n");
    let gateway = Gateway::start(&format!("{file}{redis_table}"));
    let store = || json(&gateway, "/api/store")["store"].clone();
    // Replies before the first sample are not in the latencies of the last seconds.
    eventually("it has answered", || {
        assert_eq!(gateway.fetch("/?key=a").status, 200);
        let store = store();
        store["operations"]["ok"].is_u64() && store["latency"]["p50"].is_f64()
    });
    let up = store();
    assert_eq!((&up["up"], &up["out_since"]), (&true.into(), &Value::Null));
    let zone = &up["zones"][0];
    assert_eq!(zone["zone"], "z");
    assert_eq!(zone["on_store_failure"], "local");
    assert_eq!(zone["differs"], false);
    assert_eq!(zone["operations"]["ok"], up["operations"]["ok"]);
    let shown = up["url"].as_str().expect("a text");
    let is_hidden = shown.contains("***") && !shown.contains("s3cret");
    assert!(is_hidden, "{shown}");

    redis.kill();
    eventually("it is out", || {
        gateway.fetch("/?key=a");
        store()["up"] == false
    });
    // The newest reason is shown: first the connection broke, then nothing listened.
    eventually("it refuses connections", || {
        let reason = store()["reason"].clone();
        reason.as_str().is_some_and(|it| it.contains("refused"))
    });
    let out = store();
    let is_reported = out["out_since"].is_string() && out["reason"].is_string();
    assert!(is_reported, "{out}");
    gateway.fetch("/?key=a");
    let mut listener = Listener::connect(&gateway, "", "");
    listener.history();
    let sample = listener.next().data;
    let seen = &sample["store"];
    assert_eq!(seen["up"], false);
    assert!(seen["out_for"].as_f64() > Some(0.0), "{seen}");
    assert_eq!(seen["reason"], out["reason"]);
    let text = gateway.top();
    let is_out = text.lines().any(|line| line.starts_with("store OUT for "));
    assert!(is_out, "{text}");
}
