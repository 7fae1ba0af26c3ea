//! The picture of gateways that share a zone and the rate of an origin in a real Redis.

use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::programs::redis::Redis;
use crate::redis::shared::under_load;
use crate::support::night::day_or_night;
use crate::support::{Gateway, Origin, fetch, quarter_alone};

/// Two gateways with a shared zone and a shared gate of 60 requests a second; the first has the
/// other as its peer.
fn two(origin: &Origin, urls: [&str; 2]) -> [Gateway; 2] {
    let file = |name: &str, url: &str| {
        format!(
            r#"name = "{name}"
workers = 2

[origins.app]
servers = ["http://{}"]
rate = "60r/s"
store = "redis"
share = "z"
queue = 100

[redis]
url = "{url}"
timeout = "2s"

[zones.z]
key = "$arg_key"
rate = "1000r/s"
store = "redis"

[[routes]]
path = "/"
origin = "app"
limits = [{{ zone = "z", burst = 500 }}]
"#,
            origin.address
        )
    };
    let b = Gateway::start(&file("b", urls[1]));
    let peers = format!("peers = [\"{}\"]\n", b.site.admin);
    let a = Gateway::start(&(peers + &file("a", urls[0])));
    [a, b]
}

/// The pictures of some seconds of load, asked for as a page does: by day no more once one `is_it`.
fn watched(gateways: &[Gateway; 2], is_it: impl Fn(&Value) -> bool) -> Vec<Value> {
    let mut pictures = Vec::new();
    let [a, b] = gateways;
    under_load(&[a, b], 12, "/?key=busy", Duration::ZERO, || {
        for second in 1..=14 {
            thread::sleep(Duration::from_secs(1));
            let answer = fetch(a.site.admin, "/api/fleet");
            pictures.push(serde_json::from_slice(&answer.body).expect("JSON"));
            let is_complete = second >= 4 && pictures.last().is_some_and(&is_it);
            if day_or_night(is_complete, false) {
                break;
            }
        }
    });
    pictures
}

#[test]
fn the_picture_has_the_sum_of_what_is_sent_and_each_ones_part() {
    let _part = quarter_alone();
    let (origin, redis) = (Origin::start(), Redis::start());
    let gateways = two(&origin, [&redis.url(), &redis.url()]);
    let sends_all = |fleet: &Value| fleet["gates"][0]["sent"].as_f64() > Some(50.0);
    let pictures = watched(&gateways, sends_all);
    for fleet in &pictures {
        assert_eq!(fleet["headline"]["cause"], "fine", "{fleet}");
    }
    let fleet = pictures.last().expect("a picture");
    let gate = &fleet["gates"][0];
    assert_eq!(
        (&gate["shared"], &gate["gateways"]),
        (&true.into(), &2.into())
    );
    let sent = gate["sent"].as_f64().expect("a number");
    assert!((50.0..63.0).contains(&sent), "{gate}");
    let parts = gate["parts"].as_array().expect("a list");
    let sum: f64 = parts.iter().filter_map(|it| it["part"].as_f64()).sum();
    assert!(parts.len() == 2 && (0.8..1.2).contains(&sum), "{gate}");
    assert!(
        parts.iter().all(|it| it["sent"].as_f64() > Some(15.0)),
        "{gate}"
    );
    let zone = &fleet["zones"][0];
    assert_eq!(
        (&zone["store"], &zone["rates"][0]),
        (&"redis".into(), &"1000r/s".into())
    );
    let keys = fleet["keys"].as_array().expect("a list");
    let key = keys
        .iter()
        .find(|it| it["gate"] == "app")
        .expect("a key that waits");
    assert_eq!(
        (&key["key"], key["parts"].as_array().map(Vec::len)),
        (&"busy".into(), Some(2))
    );
}

#[test]
fn gateways_with_stores_of_their_own_send_more_than_their_parts() {
    let _part = quarter_alone();
    let (origin, redis, other) = (Origin::start(), Redis::start(), Redis::start());
    let gateways = two(&origin, [&redis.url(), &other.url()]);
    let is_over = |fleet: &Value| fleet["headline"]["cause"] == "over_part";
    let pictures = watched(&gateways, is_over);
    let fleet = pictures.last().expect("a picture");
    let headline = &fleet["headline"];
    assert_eq!(headline["cause"], "over_part", "{fleet}");
    assert_eq!(
        headline["title"],
        "a and b send more than their parts to app"
    );
}
