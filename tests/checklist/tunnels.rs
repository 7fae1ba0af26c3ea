//! Line 18: how tunnels end. Clients that vanish must not hold their slots at the origin forever.

use std::thread;
use std::time::Duration;

use super::bed::{Bed, GET, LAST, MS, each, get_with};
use super::upgrades::{SWITCHED, WEBSOCKET};
use crate::support::{End, Raw, eventually, now};

/// How long one side may stay open after the other has ended, plus what a busy machine adds.
const HALF_CLOSED: Duration = Duration::from_secs(30);
const LATER: Duration = Duration::from_secs(4);

/// Tunnels that end after half a second without a byte.
fn impatient() -> impl Iterator<Item = Bed> {
    each([
        || {
            Bed::nginx(
                "map $http_upgrade $hop { default upgrade; '' ''; } proxy_read_timeout 500ms; \
                 proxy_send_timeout 500ms; proxy_set_header Upgrade $http_upgrade; \
                 proxy_set_header Connection $hop;",
            )
        },
        || Bed::haproxy("    timeout tunnel 500ms"),
        || Bed::drip("", "tunnel_timeout = \"500ms\""),
    ])
}

/// The two ends of a tunnel.
fn open(bed: &Bed) -> (Raw, Raw) {
    let client = bed.ask(get_with(WEBSOCKET));
    switch(bed, client)
}

fn switch(bed: &Bed, mut client: Raw) -> (Raw, Raw) {
    let mut origin = bed.origin.accept();
    origin.head();
    origin.send(SWITCHED);
    assert_eq!(client.head().status(), 101, "{}", bed.who);
    (client, origin)
}

#[test]
fn line_18_a_tunnel_in_which_nothing_moves_ends() {
    for bed in impatient() {
        let began = now();
        let (mut client, mut origin) = open(&bed);
        assert_eq!(client.end().0, b"", "{}", bed.who);
        assert_eq!(origin.end().0, b"", "{}", bed.who);
        let took = began.elapsed();
        assert!(
            (450..3000).contains(&took.as_millis()),
            "{}: {took:?}",
            bed.who
        );
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
            // Three times its longest allowed silence.
            for _ in 0..15 {
                from.send("x");
                assert_eq!(to.exactly(1), b"x", "{}", bed.who);
                thread::sleep(100 * MS);
            }
            // It ends once it is silent.
            let began = now();
            assert_eq!(from.end().0, b"", "{}", bed.who);
            assert_eq!(to.end().0, b"", "{}", bed.who);
            let took = began.elapsed();
            assert!(took < 3000 * MS, "{}: {took:?}", bed.who);
        }
    }
}

#[test]
fn line_18_the_other_timeouts_are_not_those_of_a_tunnel() {
    let bed = Bed::drip(
        "header_timeout = \"200ms\"\nbody_timeout = \"200ms\"\nkeep_alive = \"200ms\"",
        "response_timeout = \"200ms\"\nbody_timeout = \"200ms\"\ntunnel_timeout = \"1h\"",
    );
    let (mut client, mut origin) = open(&bed);
    client.stays_quiet(1000 * MS);
    client.send("still");
    assert_eq!(origin.exactly(5), b"still");
    origin.send("there");
    assert_eq!(client.exactly(5), b"there");
}

#[test]
fn line_18_the_least_rate_of_a_body_is_not_that_of_a_tunnel() {
    let bed = Bed::drip(
        "body_timeout = \"100ms\"\nmin_body_rate = \"1MB/100ms\"",
        "",
    );
    let (mut client, mut origin) = open(&bed);
    for _ in 0..10 {
        client.send("x");
        assert_eq!(origin.exactly(1), b"x");
        origin.send("y");
        assert_eq!(client.exactly(1), b"y");
        thread::sleep(100 * MS);
    }
}

#[test]
fn line_18_two_silent_clients_do_not_hold_both_places_for_ever() {
    let origin = "max_in_flight = 2\nqueue_timeout = \"10s\"\ntunnel_timeout = \"500ms\"";
    let mut bed = Bed::drip("", origin);
    // They keep their ends open, and send and read nothing more.
    let vanished = [open(&bed), open(&bed)];
    let mut third = bed.ask(GET);
    let mut server = bed.origin.accept();
    assert_eq!(server.head().target(), "/");
    server.send(LAST);
    assert_eq!(third.answer().status(), 200);
    let gateway = bed.gateway();
    eventually("nobody is at the origin", || {
        gateway.metrics().count("drip_origin_in_flight", &[]) == 0
    });
    drop(vanished);
}

#[test]
fn line_18_a_side_that_may_still_send_is_heard_after_the_other_has_ended() {
    let bed = Bed::drip("", "");
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

/// Shuts one side of a tunnel, while the other continues if it `flows`, and checks when it ends.
fn check_half_closed(who: &str, (client, origin): (Raw, Raw), by_client: bool, flows: bool) {
    let (mut shut, mut goes_on) = if by_client {
        (client, origin)
    } else {
        (origin, client)
    };
    let case = format!("{who}, shut by the client: {by_client}, flows: {flows}");
    shut.shut_sending();
    let began = now();
    let mut passed = 0;
    // Its bytes pass until the tunnel ends, and then it is closed.
    while flows && began.elapsed() < HALF_CLOSED + LATER && goes_on.try_send("x").is_ok() {
        passed += 1;
        thread::sleep(200 * MS);
    }
    let left = (HALF_CLOSED + LATER).saturating_sub(began.elapsed());
    let (got, _) = shut.end_within(left.max(500 * MS));
    let took = began.elapsed();
    assert!(took < HALF_CLOSED + LATER, "{case}: ended after {took:?}");
    assert!(got.iter().all(|byte| *byte == b'x'), "{case}");
    // The last of them may have been in flight.
    assert!(got.len() + 3 > passed, "{case}: {} of {passed}", got.len());
    assert!(!flows || took > 5000 * MS, "{case}: cut off after {took:?}");
    goes_on.end();
}

#[test]
fn line_18_once_one_side_has_ended_the_other_ends_within_half_a_minute() {
    let mut bed = Bed::drip("", "");
    thread::scope(|scope| {
        for by_client in [true, false] {
            for flows in [true, false] {
                let tunnel = open(&bed);
                let who = bed.who;
                scope.spawn(move || check_half_closed(who, tunnel, by_client, flows));
            }
        }
    });
    let gateway = bed.gateway();
    eventually("nobody is at the origin", || {
        gateway.metrics().count("drip_origin_in_flight", &[]) == 0
    });
}
