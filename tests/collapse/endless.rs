//! Tests of collapsed responses that never end or end late, and of requests that wait for them.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use super::{Hold, ask, file_with};
use crate::support::{Client, Exchange, Gateway, MS, Origin, eventually, now, side_by_side};

/// Heads of responses by path. All but the last have no length.
const HEADS: [(&str, &str); 3] = [
    (
        "/feed",
        "Content-Type: application/x-ndjson\r\nTransfer-Encoding: chunked",
    ),
    (
        "/text",
        "Content-Type: text/plain\r\nTransfer-Encoding: chunked",
    ),
    ("/long", "Content-Type: text/plain\r\nContent-Length: 90000"),
];

/// Sends the head of the path and five bytes, and then nothing until the end of the test.
fn endless() -> (Origin, Hold) {
    let hold = Hold::default();
    let until = hold.clone();
    let origin = Origin::answering(move |exchange| {
        if exchange.target() == "/late" {
            until.wait();
            return exchange.reply(b"late!");
        }
        let found = HEADS.iter().find(|it| it.0 == exchange.target());
        let fields = found.map_or("Content-Length: 5", |it| it.1);
        exchange.send(format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n").as_bytes())?;
        if fields.contains("chunked") {
            exchange.send(b"5\r\n")?;
        }
        exchange.send(b"hello\r\n")?;
        until.wait();
        Exchange::close()
    });
    (origin, hold)
}

/// Returns the time until the first bytes of the body.
fn first_bytes(mut client: Client, since: Instant) -> Duration {
    client.head();
    client.read_exact(&mut [0; 5]);
    since.elapsed()
}

/// Starts a leader that gets the first bytes, then followers. Returns the wait of each follower.
fn waits(at: SocketAddr, origin: &Origin, path: &str, count: usize) -> (Client, Vec<Duration>) {
    let before = origin.arrivals().len();
    let mut leader = ask(at, path, "");
    leader.head();
    eventually("it is at the origin", || origin.arrivals().len() > before);
    (leader, together(at, path, count))
}

fn together(at: SocketAddr, path: &str, count: usize) -> Vec<Duration> {
    let asked = |_| {
        let path = path.to_owned();
        thread::spawn(move || {
            let since = now();
            first_bytes(ask(at, &path, ""), since)
        })
    };
    let asking: Vec<_> = (0..count).map(asked).collect();
    let asked = asking.into_iter();
    asked.map(|it| it.join().expect("no panic")).collect()
}

#[test]
fn who_follows_an_answer_that_does_not_end_goes_on_after_follow_timeout() {
    side_by_side(&["", "max_in_flight = 30\nqueue = 30"], |of_origin| {
        let (origin, _hold) = endless();
        let collapse = "follow_timeout = \"1s\"";
        let gateway = Gateway::start(&file_with(origin.address, of_origin, "", collapse));
        let at = gateway.address();
        for (path, fields) in HEADS {
            let (_leader, waited) = waits(at, &origin, path, 3);
            let in_time = |it: &Duration| (700 * MS..3500 * MS).contains(it);
            assert!(waited.iter().all(in_time), "{path}: {waited:?}");
            if fields.contains("chunked") {
                // No request waits for it again.
                let waited = together(at, path, 3);
                let at_once = |it: &Duration| *it < 700 * MS;
                assert!(waited.iter().all(at_once), "{path}: {waited:?}");
            }
        }
    });
}

#[test]
fn max_wait_bounds_the_wait_for_the_answer_of_another_one() {
    let (origin, _hold) = endless();
    let (route, collapse) = ("max_wait = \"500ms\"", "follow_timeout = \"1h\"");
    let gateway = Gateway::start(&file_with(origin.address, "", route, collapse));
    let (_leader, waited) = waits(gateway.address(), &origin, "/text", 3);
    let in_time = |it: &Duration| (300 * MS..2500 * MS).contains(it);
    assert!(waited.iter().all(in_time), "{waited:?}");
}
