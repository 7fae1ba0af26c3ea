//! Checklist line 20: a waiting client that disconnects is detected at once.
//!
//! This holds even if the client has sent bytes that are not read yet.

use std::io::Write;
use std::thread;
use std::time::Duration;

use super::bed::{GET, LAST, MB, MS, Testbed, noise, post_with};
use crate::support::{Raw, alone, now};

/// Rounds of each kind of request.
const ROUNDS: usize = 9;
/// Maximum detection time: below the interval of a check, and enough for a busy machine.
const AT_ONCE: Duration = Duration::from_millis(100);

/// Bytes that a client has sent when it disconnects, with a name.
type Sent = (&'static str, fn() -> Vec<u8>);

/// Data that fits into the kernel's buffers: the end is known there, after unread bytes.
const LITTLE: [Sent; 4] = [
    ("its request", || GET.into()),
    ("some requests behind it", || GET.repeat(3).into()),
    ("a thousand requests behind it", || GET.repeat(1000).into()),
    ("a part of its body", || upload(30_000)),
];
/// Data that exceeds the kernel's buffers: only a reset is detected.
const MUCH: [Sent; 2] = [
    ("very many requests behind it", || {
        GET.repeat(400_000).into()
    }),
    ("much of its body", || upload(16 * MB)),
];

/// Returns the head and the beginning of a body.
fn upload(length: usize) -> Vec<u8> {
    let head = post_with(&format!("Content-Length: {}\r\n", 64 * MB), "");
    [head.into_bytes(), noise(length)].concat()
}

/// Starts a gateway where the first request passes and the next one waits for an hour.
fn queue() -> Testbed {
    let zone = "[zones.z]\nkey = \"$remote_addr\"\nrate = \"1r/h\"";
    let bed = Testbed::limited_drip("", "", zone, "limits = [{ zone = \"z\", burst = 1 }]");
    bed.seen(GET);
    bed
}

/// Returns a waiting client that has sent as much of `bytes` as the kernel takes.
fn waits(bed: &mut Testbed, bytes: &[u8]) -> Raw {
    let client = bed.client();
    send_what_is_taken(&client, bytes);
    bed.gateway().wait_for_depth(1);
    client
}

/// Sends `bytes` until the kernel takes no more.
fn send_what_is_taken(client: &Raw, bytes: &[u8]) {
    let mut sender = client.sender();
    // Most of it is never read.
    sender.set_write_timeout(Some(20 * MS)).expect("a timeout");
    let mut sent = 0;
    while let Ok(taken @ 1..) = sender.write(&bytes[sent..]) {
        sent += taken;
    }
    assert!(sent > 0, "nothing was taken");
}

/// Ends a client; `Some`: its connection stays open.
type Way = fn(Raw) -> Option<Raw>;

#[test]
fn line_20_a_client_that_leaves_is_noticed_at_once_whatever_it_has_sent() {
    let _alone = alone();
    let mut bed = queue();
    for (nth, (sent, bytes)) in LITTLE.iter().chain(&MUCH).enumerate() {
        let bytes = bytes();
        let ways: [(&str, Way); 3] = [
            ("it resets", |client| {
                client.reset();
                None
            }),
            ("it closes", |_| None),
            ("no more comes", |client| {
                client.shut_sending();
                Some(client)
            }),
        ];
        let mut all = Vec::new();
        let count = if nth < LITTLE.len() { ways.len() } else { 1 };
        for (way, leave) in ways[..count].iter().cycle().take(ROUNDS) {
            let client = waits(&mut bed, &bytes);
            let began = now();
            let _kept = leave(client);
            bed.gateway().wait_for_depth(0);
            let took = began.elapsed();
            let is_soon = took < Duration::from_secs(1);
            assert!(is_soon, "{way} after {sent}: {took:?}");
            all.push(took);
        }
        all.sort_unstable();
        assert!(all[ROUNDS / 2] < AT_ONCE, "{sent}: {all:?}");
    }
    let none = bed.origin.accept_within(20 * MS);
    assert!(none.is_none(), "none of them reached the origin");
}

#[test]
fn line_20_a_client_that_disconnects_at_the_gate_or_the_origin_is_detected() {
    let bed = Testbed::drip("", "max_in_flight = 1\nqueue_timeout = \"30s\"");
    for (sent, bytes) in LITTLE {
        let first = bed.ask(bytes());
        let mut origin = bed.origin.accept();
        origin.head();
        let second = bed.ask(bytes());
        thread::sleep(50 * MS);
        drop(second);
        thread::sleep(50 * MS);
        let mut third = bed.ask("GET /third HTTP/1.1\r\nHost: test\r\n\r\n");
        let began = now();
        drop(first);
        // The origin may have received a part of a body.
        origin.end();
        let took = began.elapsed();
        assert!(took < Duration::from_secs(1), "after {sent}: {took:?}");
        let mut origin = bed.origin.accept();
        assert_eq!(origin.head().target(), "/third", "after {sent}");
        origin.send(LAST);
        assert_eq!(third.answer().body, b"ok");
    }
}

#[test]
fn line_20_so_is_one_whose_upload_the_origin_does_not_take() {
    let bed = Testbed::drip("", "max_in_flight = 1\nqueue_timeout = \"30s\"");
    for round in 0..3 {
        let client = bed.client();
        send_what_is_taken(&client, &upload(16 * MB));
        let mut origin = bed.origin.accept();
        origin.head();
        let mut next = bed.ask("GET /next HTTP/1.1\r\nHost: test\r\n\r\n");
        let waits = bed.origin.accept_within(50 * MS);
        assert!(waits.is_none(), "the upload has the only slot");
        let began = now();
        client.reset();
        let mut freed = bed.origin.accept();
        let took = began.elapsed();
        assert!(took < Duration::from_secs(1), "round {round}: {took:?}");
        assert_eq!(freed.head().target(), "/next");
        freed.send(LAST);
        assert_eq!(next.answer().body, b"ok");
    }
}
