//! Runs nginx's own tests of `limit_req` against nginx and drip. nginx proves the tests right.

use std::net::SocketAddr;
use std::thread;

use super::import::drip_on_the_file_of;
use crate::programs::nginx::Nginx;
use crate::support::{Client, MS, Origin, fetch};

/// Runs nginx, and then drip on the imported file, before an origin with `size` bytes.
fn ask_both(size: usize, http: &str, locations: &[(&str, &str)], ask: impl Fn(&str, SocketAddr)) {
    let origin = Origin::answering(move |exchange| exchange.reply(&vec![b'x'; size]));
    let nginx = Nginx::start(&origin, http, locations);
    ask("nginx", nginx.address);
    ask("drip", drip_on_the_file_of(&nginx).address());
}

fn status(to: SocketAddr, target: &str) -> u16 {
    fetch(to, target).status
}

#[test]
fn a_rejection_has_the_status_of_its_route_and_is_not_counted() {
    let limit = "limit_req zone=one burst=1 nodelay;";
    ask_both(
        6,
        "limit_req_zone $remote_addr zone=one:1m rate=2r/s;",
        &[
            ("/", limit),
            ("/status", &format!("{limit} limit_req_status 501;")),
        ],
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
    ask_both(
        SIZE,
        "limit_req_zone $remote_addr zone=long:1m rate=2r/s;",
        &[("/", "limit_req zone=long burst=5;")],
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
fn each_of_two_zones_limits_by_its_own_key_with_and_without_nodelay() {
    ask_both(
        6,
        "limit_req_zone $arg_a zone=slow:1m rate=1r/m; limit_req_zone $arg_b zone=fast:1m rate=1000r/s;",
        &[
            ("/t1", "limit_req zone=fast; limit_req zone=slow;"),
            (
                "/t2",
                "limit_req zone=fast nodelay; limit_req zone=slow nodelay;",
            ),
        ],
        |who, to| {
            for (path, fast, slow, both) in [
                ("/t1", "b=1", "a=1", "a=2&b=2"),
                ("/t2", "b=3", "a=3", "a=4&b=4"),
            ] {
                for (key, second) in [(fast, 200), (slow, 503), (both, 503), ("", 200)] {
                    let target = format!("{path}?{key}");
                    assert_eq!(status(to, &target), 200, "{who} {target}");
                    thread::sleep(50 * MS);
                    assert_eq!(status(to, &target), second, "{who} {target} again");
                }
            }
        },
    );
}
