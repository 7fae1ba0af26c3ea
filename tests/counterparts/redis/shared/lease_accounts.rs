//! Tests that leases of a limit lose no request and admit none twice.

use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use crate::programs::redis::Redis;
use crate::redis::shared::file;
use crate::support::night::day_or_night;
use crate::support::{Client, Gateway, MS, Origin, best_of_three, half_alone, now};

/// The longest lease. Anything returned sooner was returned for another reason.
const LEASE: Duration = Duration::from_secs(1);
/// Number of requests that pass. The limit adds none for an hour.
///
/// The number is so small that the requests pass within a part of a lease, also while other tests
/// run.
fn all() -> usize {
    day_or_night(80, 150)
}

/// Returns a limit of [`all`] requests by three algorithms: the rate, and the route's limit.
fn limits() -> [(&'static str, &'static str, &'static str); 3] {
    let (burst, window) = day_or_night(
        (", burst = 79, nodelay = true", "80r/24h"),
        (", burst = 149, nodelay = true", "150r/24h"),
    );
    [
        ("leaky_bucket", "1r/h", burst),
        ("fixed_window", window, ""),
        ("sliding_window_counter", window, ""),
    ]
}

/// One gateway with leases, and one that asks Redis for each request.
struct Pair {
    _origin: Origin,
    _redis: Redis,
    with: Gateway,
    without: Gateway,
}

impl Pair {
    fn new((algorithm, rate, limit): (&str, &str, &str), lease: Duration) -> Self {
        let (origin, redis) = (Origin::start(), Redis::start());
        let start = |lease: Duration| {
            let millis = lease.as_millis();
            let more = format!("algorithm = \"{algorithm}\"\nlease = \"{millis}ms\"");
            Gateway::start(&file(&origin, &redis.url(), rate, &more, limit))
        };
        let (with, without) = (start(lease), start(Duration::ZERO));
        Self {
            _origin: origin,
            _redis: redis,
            with,
            without,
        }
    }
}

fn leased(gateway: &Gateway) -> i64 {
    let labels = [("zone", "z"), ("result", "leased")];
    gateway
        .metrics()
        .count("drip_store_operations_total", &labels)
}

/// Uses a key for more than two leases. Returns the number of requests sent.
///
/// It ends when some requests have used a lease and the gateway has just taken another one.
fn use_until_places_are_held(gateway: &Gateway, target: &str, lease: Duration) -> usize {
    let mut client = Client::connect(gateway.address());
    let (began, mut count) = (now(), 0);
    let at_first = leased(gateway);
    loop {
        let is_long = began.elapsed() > 2 * lease + 50 * MS;
        let before = if is_long { leased(gateway) } else { 0 };
        client.get(target);
        assert!(
            matches!(client.answer().status, 200 | 404),
            "{count} passed"
        );
        count += 1;
        // Redis decided this request, and so granted a lease for others.
        if is_long && before > at_first + 10 && leased(gateway) == before {
            return count;
        }
        thread::sleep(day_or_night(lease / 20, 25 * MS));
    }
}

/// Returns the number of requests that pass until one is rejected.
fn drain(gateway: &Gateway, target: &str) -> usize {
    let mut client = Client::connect(gateway.address());
    let mut count = 0;
    loop {
        client.get(target);
        match client.answer().status {
            200 => count += 1,
            status => {
                assert_eq!(status, 429);
                return count;
            }
        }
    }
}

/// Returns the number of requests that pass at both gateways.
///
/// The first gateway's lease ends by `end`. The other gateway must get the rest before the lease
/// would
/// have expired.
fn passed_at_both(
    limit: (&str, &str, &str),
    end: impl FnOnce(&mut Gateway),
) -> Result<usize, String> {
    let mut pair = Pair::new(limit, LEASE);
    let used = use_until_places_are_held(&pair.with, "/?key=a", LEASE);
    let held_since = now();
    end(&mut pair.with);
    let left = drain(&pair.without, "/?key=a");
    if held_since.elapsed() > LEASE {
        return Err("the lease would have been over".to_owned());
    }
    Ok(used + left)
}

/// Returns the limits that are tested at once.
///
/// Each test must do its work within a lease, so by day only one limit is tested.
fn limits_at_once() -> Vec<(&'static str, &'static str, &'static str)> {
    let few = day_or_night(1, 3);
    limits().into_iter().take(few).collect()
}

fn stop(gateway: &mut Gateway) {
    gateway.signal(Signal::TERM);
    assert!(gateway.wait(5 * LEASE).success());
}

#[test]
fn a_gateway_that_stops_gives_its_places_back() {
    let _machine = half_alone();
    best_of_three(|_| {
        thread::scope(|scope| {
            let (all, limits) = (all(), limits_at_once());
            let stop = |limit| move || passed_at_both(limit, stop);
            let stopped: Vec<_> = limits.iter().map(|it| scope.spawn(stop(*it))).collect();
            let killed = scope.spawn(|| {
                passed_at_both(self::limits()[1], |gateway| {
                    gateway.signal(Signal::KILL);
                })
            });
            for (stopped, (algorithm, ..)) in stopped.into_iter().zip(limits) {
                let passed = stopped.join().expect("no panic")?;
                if passed != all {
                    return Err(format!("{algorithm}: {passed} of {all}"));
                }
            }
            // The lease must not be empty: what a killed gateway holds is lost with the window.
            let passed = killed.join().expect("no panic")?;
            let (most, least) = day_or_night((30, 1), (60, 11));
            if !(all - most..=all - least).contains(&passed) {
                return Err(format!("killed: {passed} of {all}"));
            }
            Ok(())
        })
    });
}

#[test]
fn a_zone_that_leaves_the_file_gives_its_places_back() {
    let _machine = half_alone();
    best_of_three(|_| {
        thread::scope(|scope| {
            let (all, limits) = (all(), limits_at_once());
            let passed = limits.iter().map(|limit| {
                let limit = *limit;
                scope.spawn(move || {
                    passed_at_both(limit, |gateway| {
                        let text = std::fs::read_to_string(gateway.site.file()).expect("a file");
                        let (before, rest) = text.split_once("[zones.z]").expect("a zone");
                        let (_, routes) = rest.split_once("[[routes]]").expect("a route");
                        let routes = routes
                            .replace(&format!("limits = [{{ zone = \"z\"{} }}]", limit.2), "");
                        let text = format!("{before}[[routes]]{routes}");
                        std::fs::write(gateway.site.file(), text).expect("a file");
                        gateway.wait_for_line("the changed file is in force");
                        // The refunds are sent together, within about a millisecond.
                        thread::sleep(50 * MS);
                    })
                })
            });
            let passed: Vec<_> = passed.collect();
            for (passed, (algorithm, ..)) in passed.into_iter().zip(limits) {
                let passed = passed.join().expect("no panic")?;
                if passed != all {
                    return Err(format!("{algorithm}: {passed} of {all}"));
                }
            }
            Ok(())
        })
    });
}
