//! Checklist line 18: how tunnels end.
//!
//! A client that vanishes must not hold its permit at the origin forever.

use std::thread;
use std::time::Duration;

use super::bed::{MS, Testbed, each, get_with};
use super::upgrades::{SWITCHED, WEBSOCKET};
use crate::support::{End, Raw, now};

/// Time for which one side may stay open after the other has ended.
const HALF_CLOSED: Duration = Duration::from_secs(30);
const LATER: Duration = Duration::from_secs(4);

/// Returns proxies whose tunnels end after half a second without a byte.
fn impatient() -> impl Iterator<Item = Testbed> {
    each([
        || {
            Testbed::nginx(
                "map $http_upgrade $hop { default upgrade; '' ''; } proxy_read_timeout 500ms; \
                 proxy_send_timeout 500ms; proxy_set_header Upgrade $http_upgrade; \
                 proxy_set_header Connection $hop;",
            )
        },
        || Testbed::haproxy("    timeout tunnel 500ms"),
        || Testbed::drip("", "tunnel_timeout = \"500ms\""),
    ])
}

/// Returns the two ends of a tunnel.
fn open(bed: &Testbed) -> (Raw, Raw) {
    let client = bed.ask(get_with(WEBSOCKET));
    switch(bed, client)
}

fn switch(bed: &Testbed, mut client: Raw) -> (Raw, Raw) {
    let mut origin = bed.origin.accept();
    origin.head();
    origin.send(SWITCHED);
    assert_eq!(client.head().status(), 101);
    (client, origin)
}

#[test]
fn line_18_a_tunnel_in_which_nothing_moves_ends() {
    for bed in impatient() {
        let began = now();
        let (mut client, mut origin) = open(&bed);
        assert_eq!(client.end().0, b"");
        assert_eq!(origin.end().0, b"");
        let took = began.elapsed();
        assert!((450..3000).contains(&took.as_millis()), "{took:?}");
    }
}

#[test]
fn line_18_a_tunnel_in_which_bytes_move_in_one_direction_goes_on() {
    for bed in impatient() {
        for from_client in [true, false] {
            let (client, origin) = open(&bed);
            let (mut from, mut to) = if from_client {
                (client, origin)
            } else {
                (origin, client)
            };
            // In total three times the longest allowed silence.
            for _ in 0..15 {
                from.send("x");
                assert_eq!(to.exactly(1), b"x");
                thread::sleep(100 * MS);
            }
            // The tunnel ends once it is silent.
            let began = now();
            assert_eq!(from.end().0, b"");
            assert_eq!(to.end().0, b"");
            let took = began.elapsed();
            assert!(took < 3000 * MS, "{took:?}");
        }
    }
}

#[test]
fn line_18_the_other_timeouts_and_the_least_rate_of_a_body_are_not_those_of_a_tunnel() {
    let bed = Testbed::drip(
        "header_timeout = \"200ms\"\nbody_timeout = \"200ms\"\nkeep_alive = \"200ms\"\nmin_body_rate = \"1MB/200ms\"",
        "response_timeout = \"200ms\"\nbody_timeout = \"200ms\"\ntunnel_timeout = \"1h\"",
    );
    let (mut client, mut origin) = open(&bed);
    for pause in [100, 100, 100, 100, 700] {
        client.send("x");
        assert_eq!(origin.exactly(1), b"x");
        origin.send("y");
        assert_eq!(client.exactly(1), b"y");
        client.stays_quiet(pause * MS);
    }
}

#[test]
fn line_18_the_other_side_of_a_half_closed_tunnel_is_forwarded() {
    let bed = Testbed::drip("", "");
    for by_client in [true, false] {
        let (client, origin) = open(&bed);
        let (mut shut, mut goes_on) = if by_client {
            (client, origin)
        } else {
            (origin, client)
        };
        shut.send("bye");
        shut.shut_sending();
        assert_eq!(goes_on.exactly(3), b"bye", "by the client: {by_client}");
        for _ in 0..5 {
            goes_on.send("x");
            assert_eq!(shut.exactly(1), b"x", "by the client: {by_client}");
            thread::sleep(20 * MS);
        }
        drop(goes_on);
        assert_eq!(shut.end(), (Vec::new(), End::Closed));
    }
}

/// Shuts one side of a tunnel and checks when it ends. The other side continues if it `flows`.
fn check_half_closed((client, origin): (Raw, Raw), by_client: bool, flows: bool) {
    let (mut shut, mut goes_on) = if by_client {
        (client, origin)
    } else {
        (origin, client)
    };
    let case = format!("shut by the client: {by_client}, flows: {flows}");
    shut.shut_sending();
    let began = now();
    let mut passed = 0;
    // Bytes are forwarded until the tunnel ends. Then it is closed.
    while flows && began.elapsed() < HALF_CLOSED + LATER && goes_on.try_send("x").is_ok() {
        passed += 1;
        thread::sleep(200 * MS);
    }
    let left = (HALF_CLOSED + LATER).saturating_sub(began.elapsed());
    let (got, _) = shut.end_within(left.max(500 * MS));
    let took = began.elapsed();
    assert!(took < HALF_CLOSED + LATER, "{case}: ended after {took:?}");
    assert!(got.iter().all(|byte| *byte == b'x'), "{case}");
    // The last bytes may have been in flight.
    assert!(got.len() + 3 > passed, "{case}: {} of {passed}", got.len());
    assert!(!flows || took > 5000 * MS, "{case}: cut off after {took:?}");
    goes_on.end();
}

#[test]
#[ignore = "half a minute is a constant of the product: tests/run.sh long"]
fn line_18_once_one_side_has_ended_the_other_ends_within_half_a_minute() {
    let mut bed = Testbed::drip("", "");
    thread::scope(|scope| {
        for by_client in [true, false] {
            for flows in [true, false] {
                let tunnel = open(&bed);
                scope.spawn(move || check_half_closed(tunnel, by_client, flows));
            }
        }
    });
    let gateway = bed.gateway();
    gateway.wait_in_flight(0);
}
