//! Checklist line 20: TCP keepalive probes detect a peer that vanishes without closing.
//!
//! This applies to clients and to origins.

use std::fs;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::bed::{OK, Testbed, get_with};
use super::upgrades::{SWITCHED, WEBSOCKET};
use crate::support::{Raw, eventually, now};

/// Returns the time until the connection's keepalive timer ends; `None` without a timer.
///
/// The kernel reports the timer in `/proc/net/tcp`.
fn keepalive(local: SocketAddr, remote: SocketAddr) -> Option<Duration> {
    let table = fs::read_to_string("/proc/net/tcp").expect("the kernel's table");
    let port = |address: &str| {
        let (_, port) = address.split_once(':')?;
        u16::from_str_radix(port, 16).ok()
    };
    // sl, local_address, rem_address, st, tx_queue:rx_queue, tr:tm->when, and more.
    let mut rows = table
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    let row = rows.find(|row| {
        let ports = (
            row.get(1).and_then(|it| port(it)),
            row.get(2).and_then(|it| port(it)),
        );
        ports == (Some(local.port()), Some(remote.port()))
    })?;
    let (kind, when) = row.get(5)?.split_once(':')?;
    let hundredths = u64::from_str_radix(when, 16).ok()?;
    // 2 stands for a keepalive timer.
    (kind == "02").then(|| Duration::from_millis(10 * hundredths))
}

/// Fails unless a probe is due within `most` on both sides of this connection.
///
/// It must not be due sooner than after the last byte, which is not older than `began`.
fn check_legs(bed: &Testbed, client: &Raw, origin: &Raw, most: Duration, began: Instant) {
    let to_client = (bed.address, client.sender().local_addr().expect("a socket"));
    let of_origin = origin.sender();
    let to_origin = (
        of_origin.peer_addr().expect("a socket"),
        of_origin.local_addr().expect("a socket"),
    );
    for (leg, (local, remote)) in [("client", to_client), ("origin", to_origin)] {
        // While bytes are in flight the kernel shows another timer.
        let mut due = None;
        eventually(&format!("the {leg}'s leg has a keepalive timer"), || {
            due = keepalive(local, remote);
            due.is_some()
        });
        let due = due.unwrap_or_default();
        let soonest = most.saturating_sub(began.elapsed() + Duration::from_secs(10));
        let is_due = due <= most && due >= soonest;
        assert!(is_due, "the {leg}'s leg: {due:?}, not {most:?}");
    }
}

#[test]
fn line_20_the_kernel_looks_after_both_legs_of_a_request_and_of_a_tunnel() {
    for (server, seconds) in [("", 60), ("tcp_keepalive = \"25s\"", 25)] {
        let bed = Testbed::drip(server, "");
        let most = Duration::from_secs(seconds);
        let began = now();
        let mut client = bed.ask(get_with(""));
        let mut origin = bed.origin.accept();
        origin.head();
        check_legs(&bed, &client, &origin, most, began);
        origin.send(OK);
        assert_eq!(client.answer().status(), 200);
        check_legs(&bed, &client, &origin, most, began);
        client.send(get_with(WEBSOCKET));
        if let Some(other) = bed.origin.accept_within(Duration::from_millis(20)) {
            origin = other;
        }
        origin.head();
        origin.send(SWITCHED);
        assert_eq!(client.head().status(), 101);
        check_legs(&bed, &client, &origin, most, began);
    }
}
