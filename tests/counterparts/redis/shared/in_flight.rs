//! Tests of limits with `in_flight` in a zone that gateways share.
//!
//! There must never be more requests of a key at once than the limit says.

use std::thread;
use std::time::Duration;

use super::permits::{busy, pass};
use super::relay::Relay;
use super::{file, millis};
use crate::programs::redis::Redis;
use crate::support::night::day_or_night;
use crate::support::operator::json;
use crate::support::{
    Client, Counting, Gateway, MS, best_of_three, eventually, now, quarter_alone,
};

/// Returns a file whose limit has `in_flight`.
pub fn text(app: &Counting, url: &str, more: &str, limit: &str) -> String {
    let limit = format!(", nodelay = true{limit}");
    file(&app.origin, url, "100000r/s", more, &limit)
}

/// Returns another route of the file, with this limit.
fn route(path: &str, more: &str, limits: &str) -> String {
    format!("\n[[routes]]\npath = \"{path}\"\norigin = \"app\"\n{more}\nlimits = [{limits}]\n")
}

/// Returns the gateway's own count of running requests.
fn running(gateway: &Gateway) -> i64 {
    gateway.zone("drip_zone_in_flight")
}

fn wait_until_nothing_runs(gateways: &[Gateway]) {
    eventually("nothing runs", || {
        gateways.iter().all(|it| running(it) == 0)
    });
}

/// Three gateways with different loads use nearly all permits of a key and never more.
///
/// A lower number in the files applies to requests that arrive later.
#[test]
fn three_gateways_run_as_many_of_a_key_as_may_and_never_more() {
    let _machine = quarter_alone();
    best_of_three(|_| {
        let (app, redis) = (Counting::start(), Redis::start());
        let with = |most: u32| {
            let limit = format!(", burst = 50, in_flight = {most}");
            text(&app, &redis.url(), "", &limit)
        };
        let gateways = [0; 3].map(|_| Gateway::start(&with(6)));
        let [one, two, three] = &gateways;
        let target = day_or_night("/200?key=a", "/50?key=a");
        let used = busy(&[(one, 12), (two, 6), (three, 6)], target, || {
            eventually("all permits are used", || app.here() == 6);
            let used = app.mean(millis(day_or_night(1600, 3000)));
            assert!(app.most() <= 6, "{} at once", app.most());
            // Another key has its own permits.
            assert_eq!(one.fetch("/0?key=b").status, 200);
            for gateway in &gateways {
                gateway.site.write(&with(2));
                gateway.wait_for_line("the changed file is in force");
            }
            pass(500);
            app.forget_most();
            pass(day_or_night(700, 1500));
            assert_eq!(app.most(), 2);
            used
        });
        println!("{used:.2} of 6 permits were used");
        if used < 0.85 * 6.0 {
            return Err(format!("only {used:.2} of 6 permits were used"));
        }
        Ok(())
    });
}

/// Without a burst no request waits: each gateway answers 429 with `Retry-After: 1`.
#[test]
fn without_a_burst_requests_without_a_permit_are_rejected_at_each_gateway() {
    let (app, redis) = (Counting::start(), Redis::start());
    let text = text(&app, &redis.url(), "orphan = \"1s\"", ", in_flight = 2");
    let gateways = [0; 2].map(|_| Gateway::start(&text));
    // The requests run for longer than an unrenewed lease, and longer than its permits are
    // withheld. By day, the simulation proves this.
    let target = day_or_night("/1500?key=a", "/6000?key=a");
    let mut clients = gateways
        .each_ref()
        .map(|it| Client::ask(it.address(), target));
    eventually("both run", || app.here() == 2);
    let began = now();
    while began.elapsed() < millis(day_or_night(1000, 5000)) {
        for gateway in &gateways {
            let refused = gateway.fetch("/0?key=a");
            assert_eq!(refused.status, 429);
            assert_eq!(refused.head.field("retry-after"), Some("1"));
        }
        pass(50);
    }
    let rejected = gateways[0].zone_rejections("z", "in_flight");
    assert!(rejected > 5, "{rejected}");
    assert!(clients.iter_mut().all(|it| it.answer().status == 200));
    // Permits of ended requests are free at both gateways at once.
    for gateway in &gateways {
        eventually("a permit is free", || {
            gateway.fetch("/0?key=a").status == 200
        });
    }
    assert_eq!(app.most(), 2);
}

/// A disconnected client frees its permit at the other gateway at once.
///
/// Requests that wait there continue in their order.
#[test]
fn a_disconnected_client_frees_its_permit_for_waiters_of_other_gateways() {
    let (app, redis) = (Counting::start(), Redis::start());
    let text = text(&app, &redis.url(), "", ", burst = 5, in_flight = 1");
    let gateways = [0; 2].map(|_| Gateway::start(&text));
    let first = gateways[0].ask("/1500?key=a");
    eventually("it runs", || app.here() == 1);
    let mut second = gateways[1].ask("/0?key=a");
    gateways[1].wait_for_depth(1);
    pass(300);
    assert_eq!(app.all(), 1);
    let left = now();
    drop(first);
    assert_eq!(second.answer().status, 200);
    let took = left.elapsed();
    assert!(took < Duration::from_secs(1), "{took:?}");
    wait_until_nothing_runs(&gateways);
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
        assert_eq!(gateway.fetch("/0?key=a").status, 200);
        relay.slow_down(40 * MS);
        let mut client = gateway.connect();
        let mut took = Vec::new();
        for key in "abcdefghij".chars().take(day_or_night(5, 10)) {
            pass(100);
            let began = now();
            assert_eq!(client.fetch(&format!("/0?key={key}")).status, 200);
            took.push(began.elapsed());
        }
        took.sort_unstable();
        // The round trip to Redis takes 40 ms.
        if took[took.len() / 2] > 75 * MS {
            return Err(format!("{took:?}"));
        }
        Ok(())
    });
}

/// With `"local"` each gateway uses the file's number alone, and shares when Redis is back.
#[test]
fn without_redis_local_gateways_count_each_for_itself() {
    let (app, mut redis) = (Counting::start(), Redis::start());
    let text = text(&app, &redis.url(), "", ", burst = 50, in_flight = 4");
    let gateways = [0; 2].map(|_| Gateway::start(&text));
    let crowds = gateways.each_ref().map(|it| (it, 10));
    busy(&crowds, day_or_night("/100?key=a", "/50?key=a"), || {
        eventually("all are used", || app.here() == 4);
        redis.kill();
        eventually("each has as many", || app.here() == 8);
        redis.restart();
        // The gateways share again within two seconds.
        pass(2500);
        app.forget_most();
        pass(1500);
        assert_eq!(app.most(), 4);
    });
}

/// A dry run admits all requests and counts those that it would have rejected.
///
/// A request with a permit there counts at the other gateway.
#[test]
fn a_dry_run_lets_all_pass_and_counts_what_runs_at_the_others() {
    let (app, redis) = (Counting::start(), Redis::start());
    let limit = "{ zone = \"z\", nodelay = true, in_flight = 1 }";
    let dry = route("/dry", "dry_run = true", limit);
    let text = text(&app, &redis.url(), "", ", in_flight = 1") + &dry;
    let gateways = [0; 2].map(|_| Gateway::start(&text));
    let rejected =
        |it: &Gateway| json(it, "/api/zones")["zones"][0]["totals"]["rejected_dry_run"].as_u64();
    let target = day_or_night("/dry/1500?key=a", "/dry/4000?key=a");
    let mut first = gateways[0].ask(target);
    eventually("it runs", || app.here() == 1);
    let mut second = gateways[1].ask(target);
    eventually("it runs although only one may", || app.here() == 2);
    eventually("the rejection is counted", || {
        rejected(&gateways[1]) == Some(1)
    });
    assert_eq!(rejected(&gateways[0]), Some(0));
    for gateway in &gateways {
        assert_eq!(gateway.fetch("/0?key=a").status, 429);
    }
    assert_eq!(first.answer().status, 200);
    assert_eq!(second.answer().status, 200);
    for gateway in &gateways {
        eventually("its permit is free", || {
            gateway.fetch("/0?key=a").status == 200
        });
    }
}

/// Routes that share a zone compare the running requests of all gateways with their own numbers.
#[test]
fn routes_with_different_numbers_share_the_permits_of_a_zone() {
    let (app, redis) = (Counting::start(), Redis::start());
    let limit = "{ zone = \"z\", burst = 20, nodelay = true, in_flight = 4 }";
    let wide = route("/wide", "", limit);
    let text = text(&app, &redis.url(), "", ", burst = 20, in_flight = 2") + &wide;
    let gateways = [0; 2].map(|_| Gateway::start(&text));
    let [one, other] = &gateways;
    let mut wide = [one, other, one].map(|gateway| {
        let here = app.here();
        let client = gateway.ask("/wide/1500?key=a");
        eventually("it runs", || app.here() == here + 1);
        client
    });
    // Three requests run: the narrow route waits at either gateway, and the other route continues.
    let mut narrow = other.ask("/1000?key=a");
    other.wait_for_depth(1);
    pass(100);
    assert_eq!(app.here(), 3);
    assert_eq!(one.fetch("/wide/0?key=a").status, 200);
    assert_eq!(other.zone("drip_zone_queue_depth"), 1);
    assert!(wide.iter_mut().all(|it| it.answer().status == 200));
    assert_eq!(narrow.answer().status, 200);
    assert_eq!(app.most(), 4);
    wait_until_nothing_runs(&gateways);
}

/// A request that needs permits of two zones gets both or none, and none waits forever.
///
/// Both numbers hold.
#[test]
fn a_route_with_two_limits_keeps_both_over_all_gateways() {
    let (app, redis) = (Counting::start(), Redis::start());
    let zone = "\n[zones.tenant]\nkey = \"$arg_tenant\"\nrate = \"100000r/s\"\nstore = \"redis\"\n";
    let limit = |zone: &str, most: u32| {
        format!("{{ zone = \"{zone}\", burst = 50, nodelay = true, in_flight = {most} }}")
    };
    let (of_key, of_tenant) = (limit("z", 2), limit("tenant", 3));
    let routes = route("/one", "", &format!("{of_key}, {of_tenant}"))
        + &route("/two", "", &format!("{of_tenant}, {of_key}"));
    let text = text(&app, &redis.url(), "", "") + zone + &routes;
    let gateways = [0; 2].map(|_| Gateway::start(&text));
    // With two keys of a tenant, the tenant's number applies. With one key, the key's number
    // applies.
    for (key, expected) in [("b", 3), ("a", 2)] {
        app.forget_most();
        let before = app.all();
        let targets = [
            "/one/20?key=a&tenant=t",
            &format!("/two/20?key={key}&tenant=t"),
        ];
        let crowds = [(&gateways[0], 4, targets[0]), (&gateways[1], 4, targets[1])];
        super::busy(&crowds, &[200], || {
            thread::sleep(millis(day_or_night(500, 2000)));
            eventually("many have run", || {
                app.most() >= expected && app.all() - before > 20 * expected
            });
        });
        assert_eq!(app.most(), expected, "keys a and {key}");
    }
    wait_until_nothing_runs(&gateways);
}
