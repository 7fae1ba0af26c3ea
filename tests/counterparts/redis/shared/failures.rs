//! Tests of requests while the store fails: the table in docs/many-gateways.md.

use std::io::Write;
use std::thread;
use std::time::Duration;

use crate::programs::redis::Redis;
use crate::redis::shared::relay::Relay;
use crate::redis::shared::{Fates, count_within, file, under_load};
use crate::support::night::day_or_night;
use crate::support::{Gateway, Origin, best_of_three, eventually, fetch, now, quarter_alone};

const RATE: usize = 100;
const UP: &str = "drip_store_up";

/// A Redis behind a relay, its replica, two gateways that share a zone of `RATE`, and an origin.
struct Scene {
    origin: Origin,
    redis: Redis,
    follower: Redis,
    relay: Relay,
    gateways: [Gateway; 2],
}

/// Results of a load.
struct Seen {
    fates: Fates,
    /// Requests per second at the origin before, during and after the failure.
    rates: [f64; 3],
}

impl Scene {
    fn new(on_failure: &str) -> Self {
        let (origin, redis) = (Origin::start(), Redis::start());
        let port = redis.address.port().to_string();
        let follower = Redis::with(&["--replicaof", "127.0.0.1", &port]);
        let relay = Relay::to(redis.address);
        let url = format!("redis://{}", relay.address);
        let more = format!("on_store_failure = \"{on_failure}\"");
        let text = file(&origin, &url, &format!("{RATE}r/s"), &more, ", burst = 20");
        let text = text.replace("timeout = \"2s\"", "timeout = \"150ms\"");
        let gateways = [Gateway::start(&text), Gateway::start(&text)];
        Self {
            origin,
            redis,
            follower,
            relay,
            gateways,
        }
    }

    /// Loads both gateways, with a failure that begins and ends in the middle.
    fn watch(
        &mut self,
        pause: Duration,
        happen: impl FnOnce(&mut Redis, &Redis, &Relay),
        end: impl FnOnce(&mut Redis, &Redis, &Relay),
    ) -> Seen {
        let length = Duration::from_millis(day_or_night(1000, 1500));
        let Self {
            origin,
            redis,
            follower,
            relay,
            gateways: [one, other],
        } = self;
        let mut spans = Vec::new();
        let mut span = |last: Duration| {
            let began = now();
            thread::sleep(last);
            spans.push((began, now()));
        };
        let fates = under_load(&[one, other], 15, "/?key=a", pause, || {
            thread::sleep(Duration::from_millis(day_or_night(300, 700)));
            span(length);
            happen(redis, follower, relay);
            span(length);
            end(redis, follower, relay);
            // The shared pace must be back within 2 s. By day it is measured once both gateways
            // have the store.
            let within = now() + Duration::from_secs(2);
            if day_or_night(true, false) {
                let has_store = |it: &&Gateway| it.metrics().count(UP, &[]) == 1;
                while now() < within && ![&*one, &*other].iter().all(has_store) {
                    thread::sleep(Duration::from_millis(20));
                }
                thread::sleep(
                    Duration::from_millis(600).min(within.saturating_duration_since(now())),
                );
            } else {
                thread::sleep(within.saturating_duration_since(now()));
            }
            span(length);
        });
        let moments = origin.moments("key=a");
        let rates: Vec<f64> = spans
            .iter()
            .map(|(from, until)| {
                #[allow(clippy::cast_precision_loss)]
                let count = count_within(&moments, *from, *until) as f64;
                count / (*until - *from).as_secs_f64()
            })
            .collect();
        Seen {
            fates,
            rates: rates.try_into().expect("three spans"),
        }
    }

    fn up(&self) -> Vec<i64> {
        let up = |gateway: &Gateway| gateway.metrics().count(UP, &[]);
        self.gateways.iter().map(up).collect()
    }
}

impl Seen {
    fn tell(&self, what: &str, on_failure: &str) {
        let Self { fates, rates } = self;
        let [before, during, after] = rates;
        // Written past the test harness, which captures output.
        let _nobody_listens = writeln!(
            std::io::stderr(),
            "store {what:<26} {on_failure:<7} {:>5} requests {:?}, longest {:?}; at the origin {before:.0}, {during:.0}, {after:.0} a second",
            fates.all(),
            fates.statuses,
            fates.longest
        );
    }

    /// Checks that all responses have one of these statuses and none took too long.
    ///
    /// The longest allowed duration is that of the queue plus the store's timeout, on a busy
    /// machine.
    fn check(&self, allowed: &[u16]) -> Result<(), String> {
        let Fates { statuses, longest } = &self.fates;
        if statuses.keys().any(|status| !allowed.contains(status)) {
            return Err(format!("answered with {statuses:?}"));
        }
        if *longest > Duration::from_millis(1200) {
            return Err(format!("one waited {longest:?}"));
        }
        Ok(())
    }

    /// Checks the rates before, during and after, in requests per second, within 5 %.
    fn check_rates(&self, wanted: [std::ops::RangeInclusive<usize>; 3]) -> Result<(), String> {
        for (rate, wanted) in self.rates.iter().zip(wanted) {
            #[allow(clippy::cast_precision_loss)]
            let (least, most) = (*wanted.start() as f64 * 0.95, *wanted.end() as f64 * 1.05);
            if !(least..=most).contains(rate) {
                return Err(format!("{:?} a second at the origin", self.rates));
            }
        }
        Ok(())
    }
}

const SHARED: std::ops::RangeInclusive<usize> = RATE..=RATE;

#[test]
fn killed_each_gateway_paces_alone_and_no_request_is_lost() {
    let _machine = quarter_alone();
    best_of_three(|_| {
        let mut scene = Scene::new("local");
        let seen = scene.watch(
            Duration::ZERO,
            |redis, _, _| redis.kill(),
            |redis, _, _| redis.restart(),
        );
        seen.tell("killed and restarted", "local");
        seen.check(&[200, 429])?;
        // Each gateway alone may use the full rate. Each continues from its last known level, so
        // there is no
        // surge.
        seen.check_rates([SHARED, RATE..=2 * RATE, SHARED])?;
        for gateway in &scene.gateways {
            let log = gateway.log();
            let told = |part: &str| log.matches(part).count();
            if (told("the store is out"), told("the store is back")) != (1, 1) {
                return Err(format!("not told once: {log}"));
            }
            let metrics = gateway.metrics();
            let operations = |result| {
                let labels = [("zone", "z"), ("result", result)];
                metrics.count("drip_store_operations_total", &labels)
            };
            if operations("ok") == 0 || operations("skipped") == 0 {
                return Err(format!("not counted: {}", metrics.0));
            }
        }
        Ok(())
    });
}

#[test]
fn flushed_it_goes_on_at_the_same_rate() {
    let _machine = quarter_alone();
    best_of_three(|_| {
        let mut scene = Scene::new("local");
        let flush = |redis: &mut Redis, _: &Redis, _: &Relay| {
            assert_eq!(redis.ask("FLUSHALL"), "+OK");
            assert_eq!(redis.ask("SCRIPT FLUSH"), "+OK");
        };
        let seen = scene.watch(Duration::ZERO, flush, |_, _, _| {});
        seen.tell("flushed", "local");
        seen.check(&[200, 429])?;
        // The bucket is lost, so its burst is available again: 20 besides the waiting requests.
        seen.check_rates([SHARED, RATE..=RATE + 20, SHARED])
    });
}

#[test]
fn slow_but_in_time_it_paces_as_before() {
    let _machine = quarter_alone();
    best_of_three(|_| {
        let mut scene = Scene::new("local");
        let seen = scene.watch(
            Duration::ZERO,
            |_, _, relay| relay.slow_down(Duration::from_millis(100)),
            |_, _, relay| relay.slow_down(Duration::ZERO),
        );
        seen.tell("100 ms away", "local");
        seen.check(&[200, 429])?;
        seen.check_rates([SHARED, RATE * 8 / 10..=RATE, SHARED])?;
        if scene.up() != [1, 1] {
            return Err("it was given up".to_owned());
        }
        Ok(())
    });
}

#[test]
fn slower_than_its_timeout_it_is_not_waited_for() {
    let _machine = quarter_alone();
    best_of_three(|_| {
        let mut scene = Scene::new("local");
        let seen = scene.watch(
            Duration::ZERO,
            |_, _, relay| relay.slow_down(Duration::from_secs(1)),
            |_, _, relay| relay.slow_down(Duration::ZERO),
        );
        seen.tell("1 s away", "local");
        seen.check(&[200, 429])?;
        seen.check_rates([SHARED, RATE..=2 * RATE, SHARED])
    });
}

#[test]
fn failing_over_to_another_the_pace_goes_on_there() {
    let _machine = quarter_alone();
    best_of_three(|_| {
        let mut scene = Scene::new("local");
        let seen = scene.watch(
            Duration::ZERO,
            |redis, follower, relay| {
                // At first the name leads to a server that accepts no writes yet.
                redis.kill();
                relay.lead_to(follower.address);
            },
            |_, follower, _| assert_eq!(follower.ask("REPLICAOF NO ONE"), "+OK"),
        );
        seen.tell("failed over", "local");
        seen.check(&[200, 429])?;
        seen.check_rates([SHARED, RATE..=2 * RATE, SHARED])?;
        if scene.up() != [1, 1] {
            return Err("it is not back".to_owned());
        }
        Ok(())
    });
}

#[test]
fn killed_with_open_all_pass() {
    let _machine = quarter_alone();
    let pause = Duration::from_millis(50);
    best_of_three(|_| {
        let mut scene = Scene::new("open");
        let seen = scene.watch(
            pause,
            |redis, _, _| redis.kill(),
            |redis, _, _| redis.restart(),
        );
        seen.tell("killed and restarted", "open");
        seen.check(&[200, 429])?;
        // 30 clients with a pause of 50 ms send far more than the rate.
        seen.check_rates([SHARED, RATE * 2..=RATE * 10, SHARED])
    });
}

#[test]
fn killed_with_closed_none_pass() {
    let _machine = quarter_alone();
    let pause = Duration::from_millis(50);
    best_of_three(|_| {
        let mut scene = Scene::new("closed");
        let seen = scene.watch(
            pause,
            |redis, _, _| redis.kill(),
            |redis, _, _| redis.restart(),
        );
        seen.tell("killed and restarted", "closed");
        seen.check(&[200, 429, 503])?;
        let metrics = scene.gateways[0].metrics();
        let labels = [("zone", "z"), ("reason", "store")];
        if seen.fates.of(503) == 0 || metrics.count("drip_zone_rejections_total", &labels) == 0 {
            return Err("nobody was rejected for the store".to_owned());
        }
        // The waiting requests keep their slots.
        seen.check_rates([SHARED, 0..=RATE / 4, SHARED])
    });
}

#[test]
fn a_gateway_starts_without_the_store_and_says_so() {
    let (origin, mut redis) = (Origin::start(), Redis::start());
    redis.kill();
    let limit = ", burst = 1, nodelay = true";
    let gateway = Gateway::start(&file(&origin, &redis.url(), "1r/h", "", limit));
    let pass = |count: usize| {
        let answers = (0..count).map(|_| fetch(gateway.address(), "/?key=a").status);
        answers.filter(|status| *status == 200).count()
    };
    assert_eq!(pass(5), 2);
    let ready = gateway.admin("/readyz").expect("an admin port");
    let text = ready.text();
    assert!(
        ready.status == 200 && text.contains("the store is out"),
        "{text}"
    );
    assert_eq!(gateway.metrics().count(UP, &[]), 0);
    assert_eq!(fetch(gateway.address(), "/open").status, 200);
    redis.restart();
    eventually("the store is back", || {
        gateway.metrics().count(UP, &[]) == 1
    });
    // The new server does not know the earlier requests.
    assert_eq!(pass(5), 2);
    let ready = gateway.admin("/readyz").expect("an admin port");
    assert!(!ready.text().contains("store"), "{}", ready.text());
}

#[test]
fn one_key_that_others_have_taken_fails_alone() {
    let (origin, redis) = (Origin::start(), Redis::start());
    let more = "algorithm = \"fixed_window\"\non_store_failure = \"closed\"";
    let gateway = Gateway::start(&file(&origin, &redis.url(), "5r/h", more, ""));
    assert_eq!(redis.ask("LPUSH drip:z:fixed_window.2:a taken"), ":1");
    let refused = fetch(gateway.address(), "/?key=a");
    assert_eq!(refused.status, 503);
    assert_eq!(refused.head.field("retry-after"), Some("1"));
    assert_eq!(fetch(gateway.address(), "/?key=b").status, 200);
    assert_eq!(gateway.metrics().count(UP, &[]), 1);
}
