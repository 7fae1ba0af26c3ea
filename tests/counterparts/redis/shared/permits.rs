//! Tests of origins whose permits gateways share.
//!
//! There must never be more requests at once than `max_in_flight`, whatever happens to Redis or to
//! a gateway.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use crate::programs::redis::Redis;
use crate::support::night::day_or_night;
use crate::support::operator::json;
use crate::support::{Counting, Gateway, best_of_three, eventually, now, quarter_alone};

/// Returns a file whose origin has these permits in Redis.
pub fn file(origin: SocketAddr, url: &str, gate: &str) -> String {
    format!(
        r#"
workers = 2

[origins.app]
servers = ["http://{origin}"]
store = "redis"
queue_timeout = "60s"
{gate}

[redis]
url = "{url}"
timeout = "200ms"

[[routes]]
path = "/"
origin = "app"
"#
    )
}

impl Counting {
    pub fn file(&self, redis: &Redis, gate: &str) -> String {
        file(self.origin.address, &redis.url(), gate)
    }
}

/// Keeps this many clients of each gateway busy while `meanwhile` runs. A status may be 503.
pub fn busy<T>(crowds: &[(&Gateway, usize)], target: &str, meanwhile: impl FnOnce() -> T) -> T {
    let crowds = crowds.iter();
    let crowds: Vec<_> = crowds.map(|(it, count)| (*it, *count, target)).collect();
    super::busy(&crowds, &[200, 503], meanwhile)
}

/// Returns a count of `permits` in `/api/origins`; `None` if there is none.
pub fn permit_count(gateway: &Gateway, count: &str) -> Option<u64> {
    json(gateway, "/api/origins")["origins"][0]["permits"][count].as_u64()
}

pub fn pass(millis: u64) {
    thread::sleep(Duration::from_millis(millis));
}

/// Three gateways with different loads use nearly all permits of the origin and never more.
///
/// The maximum of the file saved last is in force at all gateways.
#[test]
fn three_gateways_use_all_permits_of_the_origin_and_never_more() {
    let _machine = quarter_alone();
    best_of_three(|_| {
        let (app, redis) = (Counting::start(), Redis::start());
        let text = app.file(&redis, "max_in_flight = 12");
        let gateways = [0; 3].map(|_| Gateway::start(&text));
        let [one, two, three] = &gateways;
        let target = day_or_night("/500", "/50");
        let used = busy(&[(one, 12), (two, 6), (three, 6)], target, || {
            eventually("all permits are used", || app.here() == 12);
            pass(500);
            let used = app.mean(Duration::from_millis(day_or_night(1500, 3000)));
            for gateway in &gateways {
                assert_eq!(permit_count(gateway, "of"), Some(12));
                assert_eq!(permit_count(gateway, "gateways"), Some(3));
                assert_eq!(permit_count(gateway, "withheld"), Some(0));
            }
            assert!(app.most() <= 12, "{} at once", app.most());
            one.site.write(&app.file(&redis, "max_in_flight = 4"));
            eventually("all know", || {
                gateways.iter().all(|it| permit_count(it, "of") == Some(4))
            });
            // The earlier requests have ended.
            pass(day_or_night(600, 150));
            app.forget_most();
            pass(day_or_night(700, 1500));
            assert!((1..=4).contains(&app.most()), "{} at once", app.most());
            used
        });
        if used < 0.95 * 12.0 {
            return Err(format!("only {used:.2} of 12 permits were used"));
        }
        let metrics = one.metrics();
        let permits = |state| {
            let labels = [("origin", "app"), ("state", state)];
            metrics
                .value("drip_origin_permits", &labels)
                .expect("a gauge")
        };
        let all: f64 = ["used", "idle", "withheld", "free"]
            .into_iter()
            .map(permits)
            .sum();
        assert!((all - 4.0).abs() < 0.1, "{all} in all");
        Ok(())
    });
}

/// An idle gateway has permits in reserve, and a busy one does not ask for each request.
#[test]
fn an_idle_request_waits_for_no_more_than_one_answer_and_a_busy_one_for_none() {
    let _machine = quarter_alone();
    let (app, redis) = (Counting::start(), Redis::start());
    let text = app.file(&redis, "max_in_flight = 40");
    let gateway = Gateway::start(&text);
    eventually("it holds some", || {
        permit_count(&gateway, "held") == Some(2)
    });
    let calls = || {
        let labels = [("origin", "app"), ("result", "ok")];
        let name = "drip_store_operations_total";
        gateway.value(name, &labels).expect("a counter")
    };
    let before = (calls(), now());
    let asked = 200;
    gateway.check_each(asked, "/0", 200);
    let (more, took) = (calls() - before.0, before.1.elapsed());
    println!("{asked} lone requests, {more} calls in {took:?}");
    // The gateway checks 5 times per second whether others need its unused permits.
    let most = took.as_secs_f64() * 5.0 + 3.0;
    assert!(more <= most, "{more} calls in {took:?}");
    let before = (calls(), app.all(), now());
    busy(&[(&gateway, 30)], "/10", || pass(day_or_night(700, 2000)));
    let (more, requests, took) = (calls() - before.0, app.all() - before.1, before.2.elapsed());
    println!("{requests} requests of 30 clients, {more} calls in {took:?}");
    assert!(more < took.as_secs_f64() * 50.0, "{more} calls in {took:?}");
    assert!(requests > day_or_night(150, 1000), "{requests} requests");
}

/// A gateway that stops returns all permits, and its replacement can use them at once.
#[test]
fn a_restart_under_load_withholds_nothing() {
    let (app, redis) = (Counting::start(), Redis::start());
    let text = app.file(&redis, "max_in_flight = 6");
    let one = Gateway::start(&text);
    for _ in 0..day_or_night(1, 2) {
        let mut other = Gateway::start(&text);
        busy(&[(&one, 5), (&other, 5)], "/40", || {
            eventually("both share", || permit_count(&one, "gateways") == Some(2));
            eventually("all are used", || app.here() == 6);
            other.signal(Signal::TERM);
            eventually("the one that stays has all", || {
                permit_count(&one, "gateways") == Some(1)
                    && permit_count(&one, "withheld") == Some(0)
            });
            eventually("and uses what its clients want", || app.here() == 5);
        });
        assert!(other.wait(Duration::from_secs(20)).success());
    }
    assert!(app.most() <= 6, "{} at once", app.most());
}

/// With `"local"` and without Redis each gateway uses its share, at least one permit.
#[test]
fn without_redis_local_gateways_take_their_part() {
    let (app, mut redis) = (Counting::start(), Redis::start());
    let text = app.file(&redis, "max_in_flight = 6");
    let gateways = [0; 3].map(|_| Gateway::start(&text));
    let crowds = gateways.each_ref().map(|it| (it, 6));
    busy(&crowds, "/50", || {
        eventually("all are used", || {
            app.here() == 6 && permit_count(&gateways[0], "gateways") == Some(3)
        });
        redis.kill();
        for gateway in &gateways {
            gateway.wait_for_line("this gateway goes on alone with 2 of 6 permits");
        }
        eventually("all are used", || app.here() == 6);
        redis.restart();
        for gateway in &gateways {
            gateway.wait_for_line("the gateways share the permits again");
        }
        eventually("all are used again", || app.here() == 6);
        pass(500);
    });
}
