//! Tests of limits with `in_flight` in a zone that gateways share.
//!
//! There must never be more requests of a key at once than the limit says, whatever happens to
//! Redis
//! or to a gateway.

pub mod failures;
mod kinds;

use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::process::Signal;

use super::file;
use super::places::{Counting, busy, pass};
use super::relay::Relay;
use crate::programs::redis::Redis;
use crate::support::night::day_or_night;
use crate::support::{Client, Gateway, MS, best_of_three, eventually, fetch, now, quarter_alone};

/// Returns a file whose limit has `in_flight`.
pub fn text(app: &Counting, url: &str, more: &str, limit: &str) -> String {
    let limit = format!(", nodelay = true{limit}");
    file(&app.origin, url, "100000r/s", more, &limit)
}

/// Returns the gateway's own count of running requests.
pub fn running(gateway: &Gateway) -> i64 {
    gateway.zone("drip_zone_in_flight")
}

/// Three gateways with different loads use all permits of a key and never more.
///
/// Each of the gateways gets permits.
#[test]
fn three_gateways_run_as_many_of_a_key_as_may_and_never_more() {
    let _machine = quarter_alone();
    best_of_three(|_| {
        let (app, redis) = (Counting::start(), Redis::start());
        let text = text(&app, &redis.url(), "", ", burst = 50, in_flight = 6");
        let gateways = [0; 3].map(|_| Gateway::start(&text));
        let [one, two, three] = &gateways;
        let target = day_or_night("/400?key=a", "/50?key=a");
        let (used, by_gateway) = busy(&[(one, 12), (two, 6), (three, 6)], target, || {
            eventually("all places are used", || app.here() == 6);
            let used = app.mean(Duration::from_millis(day_or_night(1600, 3000)));
            (used, gateways.each_ref().map(running))
        });
        println!("{used:.2} of 6 places were used; {by_gateway:?}");
        assert!(app.most() <= 6, "{} at once", app.most());
        if used < 0.85 * 6.0 {
            return Err(format!("only {used:.2} of 6 places were used"));
        }
        // Another key has its own permits.
        assert_eq!(fetch(one.address(), "/0?key=b").status, 200);
        Ok(())
    });
}

/// Without a burst no request waits: each gateway answers 429 with `Retry-After: 1`.
#[test]
fn without_a_burst_what_lacks_a_place_is_rejected_at_each_gateway() {
    let (app, redis) = (Counting::start(), Redis::start());
    let text = text(&app, &redis.url(), "orphan = \"1s\"", ", in_flight = 2");
    let (one, other) = (Gateway::start(&text), Gateway::start(&text));
    // The requests run for longer than an unrenewed lease, and longer than its permits are
    // withheld. By
    // day, the simulation proves this.
    let target = day_or_night("/1500?key=a", "/6000?key=a");
    let mut first = Client::ask(one.address(), target);
    let mut second = Client::ask(other.address(), target);
    eventually("both run", || app.here() == 2);
    let began = now();
    while began.elapsed() < Duration::from_millis(day_or_night(1000, 5000)) {
        for gateway in [&one, &other] {
            let refused = fetch(gateway.address(), "/0?key=a");
            assert_eq!(refused.status, 429);
            assert_eq!(refused.head.field("retry-after"), Some("1"));
        }
        pass(50);
    }
    let rejected = |gateway: &Gateway| {
        let labels = [("zone", "z"), ("reason", "in_flight")];
        gateway
            .metrics()
            .value("drip_zone_rejections_total", &labels)
    };
    assert!(rejected(&one) > Some(5.0), "{:?}", rejected(&one));
    assert_eq!(first.answer().status, 200);
    assert_eq!(second.answer().status, 200);
    // Permits of ended requests are free at both gateways at once.
    for gateway in [&other, &one] {
        eventually("a place is free", || {
            fetch(gateway.address(), "/0?key=a").status == 200
        });
    }
    assert_eq!(app.most(), 2);
}

/// A disconnected client frees its permit at the other gateway at once.
///
/// Requests that wait there continue in their order.
#[test]
fn a_client_that_leaves_frees_its_place_for_those_who_wait_elsewhere() {
    let (app, redis) = (Counting::start(), Redis::start());
    let text = text(&app, &redis.url(), "", ", burst = 5, in_flight = 1");
    let (one, other) = (Gateway::start(&text), Gateway::start(&text));
    let first = Client::ask(one.address(), "/1500?key=a");
    eventually("it runs", || app.here() == 1);
    let mut second = Client::ask(other.address(), "/0?key=a");
    other.wait_for_depth(1);
    pass(300);
    assert_eq!(app.all(), 1);
    let left = now();
    drop(first);
    assert_eq!(second.answer().status, 200);
    assert!(
        left.elapsed() < Duration::from_secs(1),
        "{:?}",
        left.elapsed()
    );
    eventually("nothing runs", || {
        running(&one) == 0 && running(&other) == 0
    });
}

/// The permit comes with the zone's decision: one round trip to Redis for a request.
#[test]
fn a_request_waits_for_one_answer_of_redis_and_no_more() {
    let _machine = quarter_alone();
    best_of_three(|_| {
        let (app, redis) = (Counting::start(), Redis::start());
        let relay = Relay::to(redis.address);
        let url = format!("redis://{}", relay.address);
        let gateway = Gateway::start(&text(&app, &url, "", ", in_flight = 3"));
        assert_eq!(fetch(gateway.address(), "/0?key=a").status, 200);
        relay.slow_down(40 * MS);
        let mut client = Client::connect(gateway.address());
        let mut took = Vec::new();
        for key in "abcdefghij".chars().take(day_or_night(5, 10)) {
            pass(100);
            let began = now();
            client.get(&format!("/0?key={key}"));
            assert_eq!(client.answer().status, 200);
            took.push(began.elapsed());
        }
        took.sort_unstable();
        println!("{took:?}");
        // The round trip to Redis takes 40 ms.
        if took[took.len() / 2] > 75 * MS {
            return Err(format!("{took:?}"));
        }
        Ok(())
    });
}

/// A gateway that stops returns its permits, and its replacement can use them at once.
#[test]
fn a_restart_under_load_withholds_nothing() {
    let _machine = quarter_alone();
    let (app, redis) = (Counting::start(), Redis::start());
    let text = text(&app, &redis.url(), "", ", burst = 50, in_flight = 4");
    let one = Gateway::start(&text);
    for _ in 0..day_or_night(1, 2) {
        let mut other = Gateway::start(&text);
        busy(
            &[(&one, 5), (&other, 5)],
            day_or_night("/300?key=a", "/40?key=a"),
            || {
                eventually("all are used", || app.here() == 4);
                pass(500);
                other.signal(Signal::TERM);
                eventually("the one that stays has all", || running(&one) == 4);
                let used = app.mean(Duration::from_secs(1));
                assert!(used > 3.0, "{used:.2} of 4 are used");
            },
        );
        assert!(other.wait(Duration::from_secs(20)).success());
    }
    assert!(app.most() <= 4, "{} at once", app.most());
}

/// A lower number in the files applies to requests that arrive later.
#[test]
fn a_new_number_counts_for_those_who_wait() {
    let (app, redis) = (Counting::start(), Redis::start());
    let with = |limit: &str| text(&app, &redis.url(), "", limit);
    let gateways = [0; 2].map(|_| Gateway::start(&with(", burst = 50, in_flight = 6")));
    let crowds = gateways.each_ref().map(|it| (it, 8));
    busy(&crowds, "/50?key=a", || {
        eventually("all are used", || app.here() == 6);
        for gateway in &gateways {
            gateway.site.write(&with(", burst = 50, in_flight = 2"));
            gateway.wait_for_line("the changed file is in force");
        }
        pass(500);
        app.counts.most.store(0, Ordering::SeqCst);
        pass(day_or_night(700, 1500));
        assert_eq!(app.most(), 2);
    });
}
