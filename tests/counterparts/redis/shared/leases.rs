//! Tests of leases: shares of a busy key's limit that gateways take ahead.

use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use crate::programs::redis::Redis;
use crate::redis::shared::{busy, file, most_above};
use crate::support::{Client, Gateway, MS, Origin, best_of_three, eventually, half_alone, now};

/// Returns the number of joins that a lease decided.
fn leased(gateway: &Gateway) -> i64 {
    let labels = [("zone", "z"), ("result", "leased")];
    gateway.count("drip_store_operations_total", &labels)
}

#[test]
fn a_lease_changes_while_requests_come_and_ends_with_redis() {
    let (origin, mut redis) = (Origin::start(), Redis::start());
    let limit = ", burst = 200, nodelay = true";
    let [without, with] = ["0s", "100ms"].map(|lease| {
        let more = format!("lease = \"{lease}\"\non_store_failure = \"closed\"");
        file(&origin, &redis.url(), "500r/s", &more, limit)
    });
    let gateway = Gateway::start(&without);
    busy(&[(&gateway, 4, "/?key=a")], &[200, 429, 503], || {
        thread::sleep(500 * MS);
        assert_eq!(leased(&gateway), 0);
        gateway.site.write(&with);
        eventually("it has leases", || leased(&gateway) > 100);
        gateway.site.write(&without);
        eventually("it has none", || {
            let before = leased(&gateway);
            thread::sleep(300 * MS);
            leased(&gateway) == before
        });
        gateway.site.write(&with);
        let before = leased(&gateway);
        eventually("it has them again", || leased(&gateway) > before + 100);
        let rejected = || gateway.zone_rejections("z", "store");
        assert_eq!(rejected(), 0);
        redis.kill();
        eventually("it is noticed", || gateway.count("drip_store_up", &[]) == 0);
        thread::sleep(200 * MS);
        // All requests are refused with 503: nothing is left of the lease.
        let passed = origin.arrivals().len();
        thread::sleep(300 * MS);
        assert_eq!(origin.arrivals().len(), passed);
        assert!(rejected() > 0);
    });
    // The burst, and late arrivals on a busy machine.
    let above = most_above(&origin.moments("key=a"), 500.0);
    assert!(above < 201.0 + 25.0, "{above:.1} above the rate");
}

/// The longest lease. Anything returned sooner was returned for another reason.
const LEASE: Duration = Duration::from_secs(1);
/// Number of requests that pass. The limit adds none for an hour.
///
/// The number is so small that the requests pass within a part of a lease, also while other tests
/// run.
const ALL: usize = 80;

/// Uses a key until requests have used a lease and the gateway has just taken another one.
///
/// Returns the number of requests sent.
fn use_until_a_lease_is_held(gateway: &Gateway) -> usize {
    let mut client = gateway.connect();
    let (began, mut count) = (now(), 0);
    let at_first = leased(gateway);
    loop {
        let is_long = began.elapsed() > 2 * LEASE + 50 * MS;
        let before = if is_long { leased(gateway) } else { 0 };
        assert_eq!(client.fetch("/?key=a").status, 200, "{count} passed");
        count += 1;
        // Redis decided this request, and so granted a lease for others.
        if is_long && before > at_first + 10 && leased(gateway) == before {
            return count;
        }
        thread::sleep(LEASE / 20);
    }
}

/// How a gateway ends or drops a zone. The second argument is its file.
type End<'a> = &'a dyn Fn(&mut Gateway, &str);

/// A gateway that stops, or whose zone is removed, returns its lease exactly once.
#[test]
fn a_gateway_that_stops_or_drops_the_zone_returns_its_lease() {
    let _machine = half_alone();
    let stop = |gateway: &mut Gateway, _: &str| {
        gateway.signal(Signal::TERM);
        assert!(gateway.wait(5 * LEASE).success());
    };
    let drop_zone = |gateway: &mut Gateway, limits: &str| {
        let text = std::fs::read_to_string(gateway.site.file()).expect("a file");
        let (before, rest) = text.split_once("[zones.z]").expect("a zone");
        let (_, routes) = rest.split_once("[[routes]]").expect("a route");
        let routes = routes.replace(limits, "");
        std::fs::write(gateway.site.file(), format!("{before}[[routes]]{routes}")).expect("a file");
        gateway.wait_for_line("the changed file is in force");
        // The refunds are sent together, within about a millisecond.
        thread::sleep(50 * MS);
    };
    let ends: [(&str, End); 2] = [("stops", &stop), ("drops the zone", &drop_zone)];
    for (what, end) in ends {
        best_of_three(|_| {
            let (origin, redis) = (Origin::start(), Redis::start());
            let limit = format!(", burst = {}, nodelay = true", ALL - 1);
            let start = |lease: &str| {
                let more = format!("lease = \"{lease}\"");
                Gateway::start(&file(&origin, &redis.url(), "1r/h", &more, &limit))
            };
            // One gateway takes leases, and the other one asks Redis for each request.
            let (mut with, without) = (start("1s"), start("0s"));
            let used = use_until_a_lease_is_held(&with);
            let held_since = now();
            end(&mut with, &format!("limits = [{{ zone = \"z\"{limit} }}]"));
            let mut client = Client::connect(without.address());
            let passes = |_: &usize| client.try_get("/?key=a").ok() == Some(200);
            let left = (0..ALL).take_while(passes).count();
            if held_since.elapsed() > LEASE {
                return Err("the lease would have been over".to_owned());
            }
            if used + left != ALL {
                return Err(format!("{what}: {used} and {left} passed, not {ALL}"));
            }
            Ok(())
        });
    }
}
