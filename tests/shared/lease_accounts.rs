//! What is left of a limit while a gateway holds places of it ahead: nothing is lost, and nothing is given out twice.

use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use crate::shared::file;
use crate::support::redis::Redis;
use crate::support::{
    Client, Exchange, Gateway, MS, Origin, SOON, best_of_three, eventually, fetch, now,
};

/// The longest lease. Whatever is back sooner was given back for another reason.
const LEASE: Duration = Duration::from_secs(1);
/// How many requests pass: none is added for an hour. So few that they pass within a part of a lease, also while other tests
/// run.
const ALL: usize = 150;
/// A limit of so many requests by three algorithms: the rate, and the limit of the route.
const LIMITS: [(&str, &str, &str); 3] = [
    ("leaky_bucket", "1r/h", ", burst = 149, nodelay = true"),
    ("fixed_window", "150r/24h", ""),
    ("sliding_window_counter", "150r/24h", ""),
];

/// One gateway takes places ahead, and the other one asks Redis each time.
struct Pair {
    origin: Origin,
    redis: Redis,
    with: Gateway,
    without: Gateway,
}

impl Pair {
    fn new((algorithm, rate, limit): (&str, &str, &str)) -> Self {
        Self::of(Origin::start(), rate, algorithm, limit, |text| text)
    }

    fn of(
        origin: Origin,
        rate: &str,
        algorithm: &str,
        limit: &str,
        change: impl Fn(String) -> String,
    ) -> Self {
        let redis = Redis::start();
        let start = |lease: &str| {
            let more = format!("algorithm = \"{algorithm}\"\nlease = \"{lease}\"");
            Gateway::start(&change(file(&origin, &redis.url(), rate, &more, limit)))
        };
        let (with, without) = (start("1s"), start("0s"));
        Self {
            origin,
            redis,
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

/// Uses a key for more than two leases, until some requests have used places that were taken ahead, and the gateway has just
/// taken others. Returns how many requests that took.
fn use_until_places_are_held(gateway: &Gateway, target: &str) -> usize {
    let mut client = Client::connect(gateway.address());
    let (began, mut count) = (now(), 0);
    let at_first = leased(gateway);
    loop {
        let is_long = began.elapsed() > 2 * LEASE + 50 * MS;
        let before = if is_long { leased(gateway) } else { 0 };
        client.get(target);
        assert!(
            matches!(client.answer().status, 200 | 404),
            "{count} passed"
        );
        count += 1;
        // This one was decided in Redis, and so brought places for others.
        if is_long && before > at_first + 10 && leased(gateway) == before {
            return count;
        }
        thread::sleep(25 * MS);
    }
}

/// How many requests pass until one is refused.
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

/// How many requests pass until `all` have, or none has for long; more would pass too.
fn drain_all(gateway: &Gateway, target: &str, all: usize) -> usize {
    // The places that are left go back at the end of the lease, late on a busy machine.
    let deadline = now() + 4 * SOON;
    let mut count = drain(gateway, target);
    while count < all && now() < deadline {
        thread::sleep(50 * MS);
        count += drain(gateway, target);
    }
    thread::sleep(LEASE);
    count + drain(gateway, target)
}

fn forget(gateway: &Gateway, key: &str) {
    let mut api = Client::connect(gateway.site.admin);
    let line = format!("DELETE /api/zones/z/keys/{key} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    api.send(line.as_bytes());
    assert_eq!(api.answer().status, 200);
}

/// How many requests pass at both gateways if the lease of the first one ends by `end`, and the other one has the rest
/// before the lease would have been over.
fn passed_at_both(
    limit: (&str, &str, &str),
    end: impl FnOnce(&mut Gateway),
) -> Result<usize, String> {
    let mut pair = Pair::new(limit);
    let used = use_until_places_are_held(&pair.with, "/?key=a");
    let held_since = now();
    end(&mut pair.with);
    let left = drain(&pair.without, "/?key=a");
    if held_since.elapsed() > LEASE {
        return Err("the lease would have been over".to_owned());
    }
    Ok(used + left)
}

fn stop(gateway: &mut Gateway) {
    gateway.signal(Signal::TERM);
    assert!(gateway.wait(5 * LEASE).success());
}

#[test]
fn a_gateway_that_stops_gives_its_places_back() {
    best_of_three(|_| {
        thread::scope(|scope| {
            let stopped = LIMITS.map(|limit| scope.spawn(move || passed_at_both(limit, stop)));
            let killed = scope.spawn(|| {
                passed_at_both(LIMITS[1], |gateway| {
                    gateway.signal(Signal::KILL);
                })
            });
            for (stopped, (algorithm, ..)) in stopped.into_iter().zip(LIMITS) {
                let passed = stopped.join().expect("no panic")?;
                if passed != ALL {
                    return Err(format!("{algorithm}: {passed} of {ALL}"));
                }
            }
            // There are places to give back: those of one that is killed are lost with the window.
            let passed = killed.join().expect("no panic")?;
            if !(ALL - 60..ALL - 10).contains(&passed) {
                return Err(format!("killed: {passed} of {ALL}"));
            }
            Ok(())
        })
    });
}

#[test]
fn a_zone_that_leaves_the_file_gives_its_places_back() {
    best_of_three(|_| {
        thread::scope(|scope| {
            let passed = LIMITS.map(|limit| {
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
                        // The refunds travel together, within a millisecond or so.
                        thread::sleep(50 * MS);
                    })
                })
            });
            for (passed, (algorithm, ..)) in passed.into_iter().zip(LIMITS) {
                let passed = passed.join().expect("no panic")?;
                if passed != ALL {
                    return Err(format!("{algorithm}: {passed} of {ALL}"));
                }
            }
            Ok(())
        })
    });
}

/// The key begins anew, and neither what was held nor giving it back makes it more than that.
#[test]
fn a_key_that_is_forgotten_has_its_whole_limit_once() {
    thread::scope(|scope| {
        for limit in LIMITS {
            scope.spawn(move || {
                let pair = Pair::new(limit);
                use_until_places_are_held(&pair.with, "/?key=a");
                forget(&pair.with, "a");
                eventually("it is forgotten", || pair.redis.ask("DBSIZE") == ":0");
                assert_eq!(drain(&pair.with, "/?key=a"), ALL, "{}", limit.0);
                for _ in 0..2 {
                    assert_eq!(drain(&pair.without, "/?key=a"), 0, "{}", limit.0);
                    thread::sleep(LEASE + 100 * MS);
                }
            });
        }
    });
}

/// Answers say what they cost, and some are not charged at all. What is left in the end is exactly the rest.
#[test]
fn requests_by_places_that_were_held_are_billed_and_refunded() {
    let says = |exchange: &mut Exchange| {
        let (status, cost) = match exchange.target() {
            target if target.contains("free") => ("404 Not Found", 1),
            target if target.contains("dear") => ("200 OK", 3),
            _ => ("200 OK", 1),
        };
        let head =
            format!("HTTP/1.1 {status}\r\nX-Drip-Cost: {cost}\r\nContent-Length: 2\r\n\r\nok");
        exchange.send(head.as_bytes())
    };
    let costs = "path = \"/\"\nrefund = [\"404\"]\n\
                 cost = { response_header = \"x-drip-cost\", estimate = 1, max = 9 }\n";
    thread::scope(|scope| {
        for (algorithm, rate, limit) in [
            ("leaky_bucket", "1r/h", ", burst = 999, nodelay = true"),
            ("fixed_window", "1000r/24h", ""),
            ("sliding_window_counter", "1000r/24h", ""),
        ] {
            scope.spawn(move || {
                let pair = Pair::of(Origin::answering(says), rate, algorithm, limit, |text| {
                    text.replacen("path = \"/\"\n", costs, 1)
                });
                let dear = use_until_places_are_held(&pair.with, "/dear?key=a");
                let free = use_until_places_are_held(&pair.with, "/free?key=a");
                let rest = 1000 - 3 * dear;
                let left = drain_all(&pair.without, "/?key=a", rest);
                assert_eq!(left, rest, "{algorithm}: {dear} dear, {free} free");
            });
        }
    });
}

/// Keys with a plan and keys without one have their own limits, and places are held of both.
#[test]
fn the_limit_of_a_plan_holds_with_places_that_were_held() {
    thread::scope(|scope| {
        for (algorithm, rate, limit, plan) in [
            (
                "leaky_bucket",
                "1r/h",
                ", burst = 149, nodelay = true",
                "rate = \"2r/h\"\nburst = 449",
            ),
            ("fixed_window", "150r/24h", "", "rate = \"450r/24h\""),
        ] {
            scope.spawn(move || {
                let plan = format!("[zones.z.plans.gold]\nkeys = [\"gold\"]\n{plan}\n\n[[routes]]");
                let pair = Pair::of(Origin::start(), rate, algorithm, limit, |text| {
                    text.replacen("[[routes]]", &plan, 1)
                });
                let [gold, other] = ["/?key=gold", "/?key=other"];
                thread::scope(|scope| {
                    let used = [gold, other].map(|target| {
                        (
                            target,
                            scope.spawn(|| use_until_places_are_held(&pair.with, target)),
                        )
                    });
                    for ((target, used), all) in used.into_iter().zip([450, ALL]) {
                        let used = used.join().expect("no panic");
                        let left = drain_all(&pair.without, target, all - used);
                        assert_eq!(used + left, all, "{algorithm} {target}");
                    }
                });
            });
        }
    });
}

/// Redis dies while places are held: they count for what they were charged, and the gateway goes on at the level that Redis
/// told last.
#[test]
fn without_redis_what_was_held_is_not_let_through_twice() {
    thread::scope(|scope| {
        for limit in LIMITS {
            scope.spawn(move || {
                let mut pair = Pair::new(limit);
                let used = use_until_places_are_held(&pair.with, "/?key=a");
                pair.redis.kill();
                let left = drain(&pair.with, "/?key=a");
                let all = used + left;
                // What was held and lapses meanwhile may be lost.
                assert!(
                    (ALL - 60..=ALL).contains(&all),
                    "{}: {all} of {ALL}",
                    limit.0
                );
                assert_eq!(pair.origin.moments("key=a").len(), all);
                assert_eq!(fetch(pair.with.address(), "/?key=a").status, 429);
            });
        }
    });
}
