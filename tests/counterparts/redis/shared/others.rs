//! Tests of waiting requests while their key is forgotten, Redis changes or the rate changes.

use std::thread;
use std::time::Duration;

use crate::programs::redis::Redis;
use crate::redis::shared::file;
use crate::support::night::day_or_night;
use crate::support::operator::undo;
use crate::support::{Client, Gateway, MS, Origin, assert_contains, eventually, gaps};

const UP: &str = "drip_store_up";

/// Forgetting a key with five waiting requests changes nothing: new requests queue behind them.
#[test]
fn a_key_that_is_forgotten_keeps_its_pace_for_those_who_wait_and_come() {
    let (rate, narrowest) = day_or_night(("5r/s", 140 * MS), ("2r/s", 350 * MS));
    let (origin, redis) = (Origin::start(), Redis::start());
    let gateway = Gateway::start(&file(&origin, &redis.url(), rate, "", ", burst = 50"));
    let ask = |who: usize| gateway.ask(&format!("/?key=a&who={who}"));
    let mut clients: Vec<Client> = (0..6).map(ask).collect();
    eventually("most wait", || gateway.zone("drip_zone_queue_depth") >= 3);
    undo(&gateway, "/api/zones/z/keys/a");
    clients.extend((6..9).map(ask));
    for client in &mut clients {
        assert_eq!(client.answer().status, 200);
    }
    let gaps = gaps(&origin.moments("key=a"));
    let narrow = gaps.iter().filter(|gap| **gap < narrowest);
    assert!(narrow.count() <= 1, "{rate}: {gaps:?}");
}

/// Changing the timeout while Redis is down does not make Redis count as back.
#[test]
fn a_store_with_other_settings_is_not_back_for_that() {
    let (origin, mut redis) = (Origin::start(), Redis::start());
    let text = file(&origin, &redis.url(), "5r/s", "", ", burst = 5");
    let gateway = Gateway::start(&text);
    let up = || gateway.count(UP, &[]);
    gateway.fetch("/?key=a");
    assert_eq!(up(), 1);
    redis.kill();
    eventually("it is out", || {
        gateway.fetch("/?key=a");
        up() == 0
    });
    gateway.site.write(&text.replace("\"2s\"", "\"1900ms\""));
    gateway.wait_for_line("the changed file is in force");
    gateway.fetch("/?key=a");
    thread::sleep(Duration::from_millis(700));
    assert_eq!(up(), 0);
    let log = gateway.log();
    assert!(!log.contains("the store is back"), "{log}");
    redis.restart();
    gateway.wait_for_line("the store is back");
    assert_eq!(up(), 1);
}

/// With `"closed"`, requests of a refused key are rejected, and Redis decides those of others.
#[test]
fn a_refusal_of_redis_is_logged_once_and_is_no_outage() {
    let (origin, redis) = (Origin::start(), Redis::start());
    let more = "on_store_failure = \"closed\"";
    let gateway = Gateway::start(&file(&origin, &redis.url(), "50r/s", more, ", burst = 5"));
    assert_eq!(redis.ask("LPUSH drip:z:leaky_bucket.2:a x"), ":1");
    for _ in 0..5 {
        let refused = gateway.fetch("/?key=a");
        assert_eq!(refused.status, 503);
        assert_eq!(refused.head.field("retry-after"), Some("1"));
        assert_eq!(gateway.fetch("/?key=b").status, 200);
    }
    let line = gateway.wait_for_line("refused the key of a request");
    assert_contains!(line, "WRONGTYPE");
    let log = gateway.log();
    assert_eq!(log.matches("refused the key of a request").count(), 1);
    assert_eq!(gateway.count(UP, &[]), 1);
}

/// Gateways of two versions use one Redis, and neither reads the state of the other.
#[test]
fn states_of_the_version_before_are_left_alone() {
    let (origin, redis) = (Origin::start(), Redis::start());
    // State of a full bucket in the form of version 1, valid for an hour.
    let old = "9|0|4102444800000000|4102444800000009|-|3600000000000;1000;3600000000;1;1r/h|0|0";
    let set = format!("SET drip:z:leaky_bucket:a {old}");
    assert_eq!(redis.ask(&set), "+OK");
    let limit = ", burst = 1, nodelay = true";
    let gateway = Gateway::start(&file(&origin, &redis.url(), "1r/h", "", limit));
    let statuses = [(); 3].map(|()| gateway.fetch("/?key=a").status);
    assert_eq!(statuses, [200, 200, 429]);
    assert_eq!(redis.ask("EXISTS drip:z:leaky_bucket.2:a"), ":1");
    let length = redis.ask("STRLEN drip:z:leaky_bucket:a");
    assert_eq!(length, format!(":{}", old.len()));
    assert!(!gateway.log().contains("refused"), "{}", gateway.log());
}

/// A new rate costs no round trip for keys without waiting requests.
#[test]
fn a_retune_of_thousands_of_keys_does_not_flood_redis() {
    let (origin, redis) = (Origin::start(), Redis::start());
    let text = |rate: &str| file(&origin, &redis.url(), rate, "", ", burst = 5");
    let gateway = Gateway::start(&text("10r/s"));
    let mut client = gateway.connect();
    let ok = |gateway: &Gateway| gateway.zone("drip_store_operations_total");
    let keys = 500;
    for key in 0..keys {
        assert_eq!(client.fetch(&format!("/?key={key}")).status, 200);
    }
    let before = ok(&gateway);
    gateway.site.write(&text("20r/s"));
    gateway.wait_for_line("the changed file is in force");
    thread::sleep(Duration::from_millis(300));
    assert_eq!(ok(&gateway), before);
}
