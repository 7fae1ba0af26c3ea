//! nginx's own tests of `limit_req`, run against both: first against nginx, which proves that the test itself is right.

use std::net::SocketAddr;
use std::thread;

use crate::programs::nginx::Nginx;
use crate::support::{Client, MS, Origin, fetch, now};
use crate::support::{start_drip, zone};

/// Runs nginx, then drip, each in front of an origin of its own that answers with `size` bytes.
fn ask_both(
    size: usize,
    (http, locations): (&str, &[(&str, &str)]),
    (zones, routes): (&str, &[(&str, &str)]),
    ask: impl Fn(&str, SocketAddr),
) {
    let start = || Origin::answering(move |exchange| exchange.reply(&vec![b'x'; size]));
    let origin = start();
    let nginx = Nginx::start(&origin, http, locations);
    ask("nginx", nginx.address);
    let origin = start();
    let drip = start_drip(&origin, zones, routes);
    ask("drip", drip.address());
}

fn status(to: SocketAddr, target: &str) -> u16 {
    fetch(to, target).status
}

#[test]
fn a_rejection_has_the_status_of_its_route_and_is_not_counted() {
    let zones = zone("one", "$remote_addr", "2r/s");
    let one = "limits = [{ zone = \"one\", burst = 1, nodelay = true }]";
    let for_drip = [
        ("/", format!("{one}\nreject_status = 503")),
        ("/status", format!("{one}\nreject_status = 501")),
    ];
    ask_both(
        6,
        (
            "limit_req_zone $remote_addr zone=one:1m rate=2r/s;",
            &[
                ("/", "limit_req zone=one burst=1 nodelay;"),
                (
                    "/status",
                    "limit_req zone=one burst=1 nodelay; limit_req_status 501;",
                ),
            ],
        ),
        (
            &zones,
            &for_drip
                .each_ref()
                .map(|(path, text)| (*path, text.as_str())),
        ),
        |who, to| {
            let statuses = ["/", "/", "/", "/status", "/", "/"].map(|target| status(to, target));
            assert_eq!(statuses, [200, 200, 503, 501, 503, 503], "{who}");
            thread::sleep(600 * MS);
            assert_eq!(status(to, "/"), 200, "{who}: 1/rate later one more is due");
            assert_eq!(status(to, "/"), 503, "{who}: and only one");
        },
    );
}

#[test]
fn a_big_answer_to_a_delayed_request_comes_whole() {
    const SIZE: usize = 11 << 16;
    let zones = zone("long", "$remote_addr", "2r/s");
    ask_both(
        SIZE,
        (
            "limit_req_zone $remote_addr zone=long:1m rate=2r/s;",
            &[("/", "limit_req zone=long burst=5;")],
        ),
        (
            &zones,
            &[("/", "limits = [{ zone = \"long\", burst = 5 }]")],
        ),
        |who, to| {
            assert_eq!(fetch(to, "/").body.len(), SIZE, "{who}");
            let mut delayed = Client::ask(to, "/");
            // The response fills all buffers before its first byte is read.
            thread::sleep(600 * MS);
            assert_eq!(delayed.answer().body.len(), SIZE, "{who}");
        },
    );
}

#[test]
fn a_bucket_that_had_time_to_empty_many_times_over_is_just_empty() {
    let zones = zone("fast", "$remote_addr", "1000r/s");
    ask_both(
        6,
        (
            "limit_req_zone $remote_addr zone=fast:1m rate=1000r/s;",
            &[("/", "limit_req zone=fast burst=1;")],
        ),
        (
            &zones,
            &[("/", "limits = [{ zone = \"fast\", burst = 1 }]")],
        ),
        |who, to| {
            assert_eq!(status(to, "/"), 200, "{who}");
            thread::sleep(100 * MS);
            assert_eq!(status(to, "/"), 200, "{who}");
        },
    );
}

#[test]
fn each_of_two_zones_limits_by_its_own_key_with_and_without_nodelay() {
    let zones = zone("slow", "$arg_a", "1r/m") + &zone("fast", "$arg_b", "1000r/s");
    let for_drip = [("/t1", ""), ("/t2", ", nodelay = true")].map(|(path, nodelay)| {
        let limits = ["fast", "slow"].map(|zone| format!("{{ zone = \"{zone}\"{nodelay} }}"));
        let [fast, slow] = limits;
        (
            path,
            format!("limits = [{fast}, {slow}]\nreject_status = 503"),
        )
    });
    ask_both(
        6,
        (
            "limit_req_zone $arg_a zone=slow:1m rate=1r/m; limit_req_zone $arg_b zone=fast:1m rate=1000r/s;",
            &[
                ("/t1", "limit_req zone=fast; limit_req zone=slow;"),
                (
                    "/t2",
                    "limit_req zone=fast nodelay; limit_req zone=slow nodelay;",
                ),
            ],
        ),
        (
            &zones,
            &for_drip
                .each_ref()
                .map(|(path, text)| (*path, text.as_str())),
        ),
        |who, to| {
            for (path, fast, slow, both) in [
                ("/t1", "b=1", "a=1", "a=2&b=2"),
                ("/t2", "b=3", "a=3", "a=4&b=4"),
            ] {
                let twice = [(fast, 200), (slow, 503), (both, 503), ("", 200)];
                for (key, second) in twice {
                    let target = format!("{path}?{key}");
                    assert_eq!(status(to, &target), 200, "{who} {target}");
                    thread::sleep(50 * MS);
                    assert_eq!(status(to, &target), second, "{who} {target} again");
                }
            }
        },
    );
}

#[test]
fn a_request_above_delay_is_held_and_one_above_burst_is_rejected_meanwhile() {
    let zones = zone("one", "$remote_addr", "30r/m");
    let limits = "limits = [{ zone = \"one\", delay = 1, burst = 2 }]\nreject_status = 503";
    ask_both(
        6,
        (
            "limit_req_zone $remote_addr zone=one:1m rate=30r/m;",
            &[("/", "limit_req zone=one delay=1 burst=2;")],
        ),
        (&zones, &[("/", limits)]),
        |who, to| {
            let began = now();
            assert_eq!([status(to, "/"), status(to, "/")], [200, 200], "{who}");
            assert!(began.elapsed() < 500 * MS, "{who}: not delayed yet");
            let mut held = Client::ask(to, "/");
            thread::sleep(200 * MS);
            assert_eq!(status(to, "/"), 503, "{who}");
            assert_eq!(held.answer().status, 200, "{who}");
            let took = began.elapsed();
            assert!(
                // The next turn would be two seconds later.
                took > 1900 * MS && took < 3900 * MS,
                "{who}: {took:?}"
            );
        },
    );
}
