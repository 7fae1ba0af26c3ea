//! Tests of the headline about permits of a killed gateway: it must not advise a higher limit.

use std::time::Duration;

use rustix::process::Signal;

use super::in_flight::text;
use super::permits::pass;
use crate::programs::redis::Redis;
use crate::support::operator::json;
use crate::support::{Client, Counting, Gateway, assert_contains, eventually, side_by_side};

/// Returns evidence and remedy of the current headline.
fn headline(gateway: &Gateway) -> String {
    let headline = &json(gateway, "/api/headline")["headline"];
    format!("{} {}", headline["evidence"], headline["remedy"])
}

fn check(text: &str, zone_or_origin: &str) {
    assert_contains!(text, "There is nothing to raise", zone_or_origin);
    let advises = text.contains("raise `") || text.contains("raise its");
    assert!(!advises, "{text}");
}

/// Kills one of two gateways while it has all permits of the origin. Returns the other one.
fn killed(text: &str, app: &Counting, target: &str, count: usize) -> Gateway {
    let (one, other) = (Gateway::start(text), Gateway::start(text));
    // Requests are sent one after the other: without a burst none may wait for the zone's rate.
    let ask = |_| {
        pass(20);
        other.ask(target)
    };
    let _result: Vec<Client> = (0..count).map(ask).collect();
    eventually("all run", || app.here() == count);
    pass(1500);
    other.signal(Signal::KILL);
    one
}

#[test]
fn withheld_permits_of_an_origin_are_the_headline() {
    let (app, redis) = (Counting::start(), Redis::start());
    let text = app.file(&redis, "max_in_flight = 4\norphan = \"40s\"");
    let one = killed(&text, &app, "/5000", 4);
    let _waits = one.ask("/0");
    eventually("it is said", || {
        headline(&one).contains("permits are withheld for a gateway that has vanished")
    });
    let said = headline(&one);
    check(&said, "`orphan`, which is 40s, has passed");
    let permits = &json(&one, "/api/origins")["origins"][0]["permits"];
    assert_eq!(permits["orphan"], "40s", "{permits}");
    let number = |name: &str| permits[name].as_u64().expect("a count");
    let withheld = number("withheld");
    assert!(withheld >= 3, "{permits}");
    let sum = number("leased") + number("free") + withheld;
    assert_eq!(sum, number("of"), "{permits}");
}

#[test]
fn withheld_permits_of_a_key_are_the_headline_for_waiters_and_rejections() {
    let check_one = |(limit, asked): (&str, &str)| {
        let (app, redis) = (Counting::start(), Redis::start());
        let text = text(&app, &redis.url(), "orphan = \"40s\"", limit);
        let one = killed(&text, &app, "/5000?key=a", 2);
        let _waits = one.ask("/0?key=a");
        eventually("it is said", || {
            if asked == "is rejected" {
                for _ in 0..20 {
                    assert_eq!(one.fetch("/0?key=a").status, 429);
                    std::thread::sleep(Duration::from_millis(10));
                }
            }
            headline(&one).contains("Of 2 permits of a, 2 are withheld")
        });
        check(&headline(&one), "`orphan` of the zone, which is 40s");
    };
    let cases = [
        (", burst = 9, in_flight = 2", "waits"),
        (", in_flight = 2", "is rejected"),
    ];
    side_by_side(cases, check_one);
}
