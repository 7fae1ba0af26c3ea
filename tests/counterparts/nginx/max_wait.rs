//! `max_wait`: better rejected on arrival than after a long wait.

use std::thread;

use crate::support::{Client, Gateway, MS, Origin, fetch, now};
use crate::support::{start_drip, zone};

fn rejections(gateway: &Gateway, reason: &str) -> i64 {
    let labels = [("zone", "z"), ("reason", reason)];
    gateway
        .metrics()
        .count("drip_zone_rejections_total", &labels)
}

#[test]
fn a_wait_just_below_max_wait_passes_and_one_just_above_is_rejected_on_arrival() {
    let origin = Origin::start();
    let gateway = start_drip(
        &origin,
        &zone("z", "$arg_key", "1r/s"),
        &[
            (
                "/below",
                "limits = [{ zone = \"z\", burst = 9 }]\nmax_wait = \"1s\"",
            ),
            (
                "/above",
                "limits = [{ zone = \"z\", burst = 9 }]\nmax_wait = \"900ms\"",
            ),
        ],
    );
    let ask = |target| Client::ask(gateway.address(), target);
    assert_eq!(ask("/above?key=a").answer().status, 200);
    let began = now();
    let mut above = ask("/above?key=a").answer();
    assert!(began.elapsed() < 500 * MS, "it is told at once");
    assert_eq!(above.status, 429);
    assert_eq!(above.number("retry-after"), 1);
    assert_eq!(
        (
            rejections(&gateway, "max_wait"),
            rejections(&gateway, "burst")
        ),
        (1, 0)
    );
    let mut below = ask("/below?key=a");
    gateway.wait_for_depth(1);
    // Two ahead of it now, one of which has passed: it would wait about 1.9 s.
    above = ask("/below?key=a").answer();
    assert_eq!(above.status, 429);
    assert_eq!(rejections(&gateway, "max_wait"), 2);
    assert_eq!(below.answer().status, 200);
    let waited = began.elapsed();
    assert!(
        // The next turn would be a second later.
        waited > 900 * MS && waited < 1900 * MS,
        "{waited:?}"
    );
    assert_eq!(origin.arrivals().len(), 2);
}

#[test]
fn the_burst_is_the_reason_where_both_are_exceeded() {
    let origin = Origin::start();
    let limits = "limits = [{ zone = \"z\", burst = 1 }]\nmax_wait = \"1s\"";
    let gateway = start_drip(&origin, &zone("z", "$arg_key", "1r/h"), &[("/", limits)]);
    let statuses = [(); 2].map(|()| fetch(gateway.address(), "/?key=a").status);
    assert_eq!(statuses, [200, 429]);
    assert_eq!(
        (
            rejections(&gateway, "max_wait"),
            rejections(&gateway, "burst")
        ),
        (1, 0)
    );
    // Another route of the same zone fills the burst.
    drop(gateway);
    let full = "limits = [{ zone = \"z\", burst = 1, nodelay = true }]";
    let gateway = start_drip(
        &origin,
        &zone("z", "$arg_key", "1r/h"),
        &[("/", limits), ("/full", full)],
    );
    let targets = ["/full?key=a", "/full?key=a", "/?key=a"];
    let statuses = targets.map(|target| fetch(gateway.address(), target).status);
    assert_eq!(statuses, [200, 200, 429]);
    assert_eq!(
        (
            rejections(&gateway, "max_wait"),
            rejections(&gateway, "burst")
        ),
        (0, 1)
    );
}

#[test]
fn retry_after_is_when_a_retry_really_is_accepted() {
    let origin = Origin::start();
    let gateway = start_drip(
        &origin,
        &zone("z", "$arg_key", "1r/1500ms"),
        &[
            ("/burst", "limits = [{ zone = \"z\" }]"),
            (
                "/max_wait",
                "limits = [{ zone = \"z\", burst = 9 }]\nmax_wait = \"10ms\"",
            ),
        ],
    );
    thread::scope(|scope| {
        for (path, key) in [("/burst", "a"), ("/max_wait", "b")] {
            let gateway = &gateway;
            scope.spawn(move || {
                let target = format!("{path}?key={key}");
                let mut client = Client::connect(gateway.address());
                let mut ask = || {
                    client.get(&target);
                    client.answer()
                };
                let passed_by = {
                    assert_eq!(ask().status, 200);
                    now()
                };
                let rejected = ask();
                let told = now();
                assert_eq!(rejected.status, 429);
                assert_eq!(
                    rejected.number("retry-after"),
                    2,
                    "{path}: 1.5 s, in whole seconds"
                );
                assert_eq!(rejected.number("x-ratelimit-retry-after"), 2);
                thread::sleep((passed_by + 1400 * MS).saturating_duration_since(now()));
                let early = ask();
                assert_eq!(
                    (early.status, early.number("retry-after")),
                    (429, 1),
                    "{path}"
                );
                thread::sleep((told + 2000 * MS).saturating_duration_since(now()));
                assert_eq!(ask().status, 200, "{path}");
            });
        }
    });
}
