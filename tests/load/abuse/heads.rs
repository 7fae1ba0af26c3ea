//! Heads that are too large.

use std::fmt::Write;
use std::time::Duration;

use crate::load::abuse::crowd::{One, watch};
use crate::load::abuse::{MB, MORE_DESCRIPTORS, open_gateway};
use crate::support::others::Others;
use crate::support::process::Process;
use crate::support::{Origin, eventually, half_alone, now};

const CONNECTIONS: usize = 50;

/// Sends this head on many connections at once, after `before`, and fails unless each gets 431 and is closed.
fn check_431(before: &[u8], head: &[u8]) {
    let _alone = half_alone();
    let origin = Origin::start();
    let gateway = open_gateway(&origin, "");
    let process = Process::of(gateway.id());
    let others = Others::start(&gateway);
    let (peak, descriptors) = (gateway.peak_memory(), process.descriptors());
    let mut crowd: Vec<_> = (0..CONNECTIONS)
        .map(|nth| One::connect(gateway.address(), nth))
        .collect();
    for one in &mut crowd {
        one.send(before);
    }
    if !before.is_empty() {
        eventually("the requests before are answered", || {
            crowd.iter_mut().all(|one| {
                one.take(1 << 20);
                one.got.ends_with(b"ok")
            })
        });
    }
    for one in &mut crowd {
        one.got.clear();
    }
    let mut sent = vec![0; CONNECTIONS];
    let deadline = now() + Duration::from_secs(5);
    while now() < deadline && watch(&mut crowd, Duration::ZERO) > 0 {
        for (one, sent) in crowd.iter_mut().zip(&mut sent) {
            if one.ended.is_none() {
                // A piece of each in turn, so that all are sent at the same time.
                let end = head.len().min(*sent + 16 * 1024);
                *sent += one.send(&head[*sent..end]);
            }
        }
    }
    for (nth, one) in crowd.iter().enumerate() {
        assert_eq!(one.status(), Some(431), "connection {nth}");
        assert!(one.ended.is_some(), "connection {nth} is still open");
    }
    let grown = gateway.peak_memory().saturating_sub(peak);
    assert!(grown < 16 * MB, "{grown} bytes for {CONNECTIONS} heads");
    others.check();
    eventually("the connections are closed", || {
        process.descriptors() <= descriptors + MORE_DESCRIPTORS
    });
    assert!(
        !origin
            .arrivals()
            .iter()
            .any(|arrival| arrival.target.contains("large")),
        "the origin never sees it"
    );
}

const SMALL: &[u8] = b"GET /?key=small HTTP/1.1\r\nHost: a\r\n\r\n";

fn one_field() -> Vec<u8> {
    let value = "a".repeat(1 << 20);
    format!("GET /?key=large HTTP/1.1\r\nHost: a\r\nX-Large: {value}\r\n\r\n").into_bytes()
}

#[test]
fn a_head_with_a_field_of_a_megabyte_is_refused() {
    check_431(b"", &one_field());
}

#[test]
fn so_is_a_later_head_of_a_connection() {
    check_431(SMALL, &one_field());
}

#[test]
fn so_is_a_head_with_a_target_of_a_megabyte() {
    let target = "a".repeat(1 << 20);
    let head = format!("GET /large/{target} HTTP/1.1\r\nHost: a\r\n\r\n");
    check_431(b"", head.as_bytes());
}

#[test]
fn so_is_a_head_of_very_many_lines() {
    let mut head = "GET /?key=large HTTP/1.1\r\nHost: a\r\n".to_owned();
    for nth in 0..50_000 {
        write!(head, "X-{nth}: {nth}\r\n").expect("memory");
    }
    check_431(b"", (head + "\r\n").as_bytes());
}
