//! Tests of the number of keys that are remembered, and of the time.

use std::fs;
use std::thread;
use std::time::Duration;

use crate::support::{Answer, Gateway, MS, Origin, all_pass, eventually, now, one_zone};

fn gateway(origin: &Origin, rate: &str, limit: &str, zone: &str) -> Gateway {
    let file = one_zone(origin, rate, limit)
        .replace("key = \"$arg_key\"", &format!("key = \"$arg_key\"\n{zone}"));
    // With one worker `max_keys` is not divided.
    Gateway::start(&format!("workers = 1\n{file}"))
}

fn ask(gateway: &Gateway, key: &str) -> Answer {
    gateway.fetch(&format!("/?key={key}"))
}

fn keys(gateway: &Gateway, state: &str) -> i64 {
    gateway.count("drip_zone_keys", &[("zone", "z"), ("state", state)])
}

fn evictions(gateway: &Gateway, reason: &str) -> i64 {
    let labels = [("zone", "z"), ("reason", reason)];
    gateway.count("drip_zone_evictions_total", &labels)
}

#[test]
fn a_key_with_waiters_is_never_forgotten() {
    let origin = Origin::start();
    let gateway = gateway(&origin, "1r/s", "burst = 2", "max_keys = 2");
    let mut waiting = [(); 3].map(|()| gateway.ask("/?key=a"));
    gateway.wait_for_depth(2);
    for newcomer in ["b", "c", "d"] {
        // Each new key replaces the previous one, which does not wait.
        assert_eq!(ask(&gateway, newcomer).status, 200);
    }
    let of_a = ask(&gateway, "a").status;
    assert_eq!(of_a, 429, "a is remembered, and full");
    all_pass(&mut waiting);
    assert_eq!(evictions(&gateway, "lru"), 2);
}

#[test]
fn a_newcomer_gets_503_where_every_key_has_waiters() {
    let origin = Origin::start();
    let gateway = gateway(&origin, "1r/s", "burst = 1", "max_keys = 2");
    let targets = ["/?key=a", "/?key=a", "/?key=b", "/?key=b"];
    let mut waiting = targets.map(|target| gateway.ask(target));
    gateway.wait_for_depth(2);
    let newcomer = ask(&gateway, "c");
    assert_eq!(newcomer.status, 503);
    assert!(newcomer.number("retry-after") >= 1);
    assert_eq!(gateway.zone_rejections("z", "keys"), 1);
    all_pass(&mut waiting);
    // Without waiting requests there is room.
    assert_eq!(ask(&gateway, "c").status, 200);
}

/// A drained key is forgotten after `idle_timeout`.
///
/// A key is parked 2 s after its last use, and forgotten when `idle_timeout` is over, too.
#[test]
fn a_drained_key_is_forgotten_after_idle_timeout() {
    let origin = Origin::start();
    let gateway = gateway(&origin, "100r/s", "burst = 5", "idle_timeout = \"1s\"");
    let began = now();
    for key in ["a", "b", "c"] {
        assert_eq!(ask(&gateway, key).status, 200);
    }
    eventually("all are forgotten", || {
        evictions(&gateway, "idle") == 3 && gateway.zone("drip_zone_keys") == 0
    });
    assert!(began.elapsed() >= 1000 * MS, "{:?}", began.elapsed());
    assert_eq!(evictions(&gateway, "lru"), 0);
}

#[test]
fn a_parked_key_keeps_its_debt_whatever_idle_timeout_says() {
    let origin = Origin::start();
    let limit = "burst = 1, nodelay = true";
    let gateway = gateway(&origin, "1r/m", limit, "idle_timeout = \"1s\"");
    for remaining in [1, 0] {
        let answer = ask(&gateway, "a");
        assert_eq!(answer.number("x-ratelimit-remaining"), remaining);
    }
    eventually("the key is parked", || {
        keys(&gateway, "parked") == 1 && keys(&gateway, "active") == 0
    });
    // Long enough for a sweep that would forget the key if it were drained.
    thread::sleep(Duration::from_millis(1200));
    assert_eq!(keys(&gateway, "parked"), 1);
    let rejected = ask(&gateway, "a");
    assert_eq!(rejected.status, 429);
    assert!((50..60).contains(&rejected.number("retry-after")));
    assert_eq!(evictions(&gateway, "idle"), 0);
}

#[test]
fn a_zone_made_smaller_than_its_waiting_keys_shrinks_once_they_leave() {
    let origin = Origin::start();
    let gateway = gateway(&origin, "1r/h", "burst = 1", "max_keys = 10");
    let waiting = ["a", "b", "c", "d", "e"].map(|key| {
        assert_eq!(ask(&gateway, key).status, 200);
        gateway.ask(&format!("/?key={key}"))
    });
    gateway.wait_for_depth(5);
    let file = fs::read_to_string(gateway.site.file()).expect("a file");
    let smaller = file.replace("max_keys = 10", "max_keys = 2");
    fs::write(gateway.site.file(), smaller).expect("a file");
    gateway.wait_for_line("the changed file is in force");
    assert_eq!(ask(&gateway, "f").status, 503, "there is no room");
    assert_eq!(gateway.zone("drip_zone_queue_depth"), 5);
    drop(waiting);
    eventually("two keys are left", || {
        keys(&gateway, "active") + keys(&gateway, "parked") == 2
    });
    assert_eq!(evictions(&gateway, "lru"), 3);
}
