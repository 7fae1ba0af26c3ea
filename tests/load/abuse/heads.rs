//! Heads that are too large.

use std::fmt::Write;
use std::time::Duration;

use crate::load::abuse::crowd::{One, watch};
use crate::load::abuse::{MB, MORE_DESCRIPTORS, open_gateway};
use crate::support::others::Others;
use crate::support::process::Process;
use crate::support::{Origin, eventually, half_alone, now};

const CONNECTIONS: usize = 50;

/// Sends these heads on many connections at once, each after `before`, and fails unless each gets 431 and is closed.
fn check_431(before: &[u8], heads: &[Vec<u8>]) {
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
        for (nth, (one, sent)) in crowd.iter_mut().zip(&mut sent).enumerate() {
            let head = &heads[nth % heads.len()];
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

#[test]
fn heads_of_a_megabyte_are_refused_whatever_makes_them_large() {
    let large = "a".repeat(1 << 20);
    let lines = (0..50_000).fold(String::new(), |mut lines, nth| {
        write!(lines, "X-{nth}: {nth}\r\n").expect("memory");
        lines
    });
    let heads = [
        format!("GET /?key=large HTTP/1.1\r\nHost: a\r\nX-Large: {large}\r\n\r\n"),
        format!("GET /large/{large} HTTP/1.1\r\nHost: a\r\n\r\n"),
        format!("GET /?key=large HTTP/1.1\r\nHost: a\r\n{lines}\r\n"),
    ];
    let heads = heads.map(String::into_bytes);
    check_431(b"", &heads);
    // A later head of a connection.
    check_431(SMALL, &heads[..1]);
}
