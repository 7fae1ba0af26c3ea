//! Checklist lines 22 and 23: messages that are too large or too slow, and their memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use super::bed::{GET, LAST, MB, MS, OK, Testbed, each, get_with, noise, post_with};
use crate::support::{Raw, SOON, eventually, half_alone, now, quarter_alone};

#[test]
fn line_22_a_head_too_large_is_a_431_and_never_reaches_the_origin() {
    // nginx and haproxy answer 400.
    let mut bed = Testbed::drip("", "");
    let before = bed.gateway().peak_memory();
    let long = "x".repeat(40_000);
    for request in [
        get_with(&format!("X-Long: {long}\r\n")),
        get_with(&format!("X-Long: {}\r\n", &long[..990]).repeat(40)),
        format!("GET /{long} HTTP/1.1\r\nHost: test\r\n\r\n"),
        // Without an end.
        format!("GET / HTTP/1.1\r\nX-Long: {long}{long}{long}"),
    ] {
        assert_eq!(bed.refusal(request), 431);
    }
    let grown = bed.gateway().peak_memory().saturating_sub(before);
    assert!(grown < MAY_GROW, "grew by {grown} bytes");
}

#[test]
fn line_22_the_limit_of_a_head_is_the_files() {
    let bed = Testbed::drip("max_header_size = \"2KB\"", "");
    let seen = bed.seen(get_with(&format!("X-Long: {}\r\n", "x".repeat(1500))));
    assert_eq!(seen.field("x-long").map(str::len), Some(1500));
    let long = format!("X-Long: {}\r\n", "x".repeat(2500));
    assert_eq!(bed.refusal(get_with(&long)), 431);
    // On every request of a connection.
    let mut passed = bed.pass(GET, LAST);
    assert_eq!(passed.client.answer().status(), 200);
    passed.client.send(get_with(&long));
    assert_eq!(bed.refusal_to(passed.client), 431);
}

#[test]
fn line_22_a_head_within_the_limit_passes() {
    // haproxy accepts 16 KB in all.
    for bed in each([
        || Testbed::nginx("large_client_header_buffers 8 32k;"),
        || Testbed::drip("", ""),
    ]) {
        let seen = bed.seen(get_with(&format!("X-Long: {}\r\n", "x".repeat(30_000))));
        assert_eq!(seen.field("x-long").map(str::len), Some(30_000));
    }
}

/// Maximum number of fields, including Host.
const MOST: usize = 256;

/// Returns a GET with this many fields in total.
fn get_of(fields: usize) -> String {
    let lines = (1..fields).map(|nth| format!("X-{nth}: {nth}\r\n"));
    get_with(&lines.collect::<Vec<_>>().concat())
}

#[test]
fn line_22_256_fields_pass_in_order() {
    // haproxy accepts a hundred.
    for bed in each([
        || Testbed::nginx("large_client_header_buffers 8 32k;"),
        || Testbed::drip("", ""),
    ]) {
        for count in [97, 150, MOST - 1, MOST] {
            let seen = bed.seen(get_of(count));
            let ours = seen.fields.iter().filter(|(name, _)| {
                name.strip_prefix("x-")
                    .is_some_and(|nth| nth.parse::<usize>().is_ok())
            });
            let values: Vec<usize> = ours.map(|(_, value)| value.parse().expect("one")).collect();
            let sent: Vec<usize> = (1..count).collect();
            assert_eq!(values, sent);
        }
    }
}

#[test]
fn line_22_one_field_more_is_a_431() {
    let bed = Testbed::drip("", "");
    for count in [MOST + 1, 2 * MOST, 1000] {
        assert_eq!(bed.refusal(get_of(count)), 431, "{count}");
    }
}

// haproxy has no such limit.
fn small_bodies() -> impl Iterator<Item = Testbed> {
    each([
        || Testbed::nginx("client_max_body_size 1k;"),
        || Testbed::drip("max_body_size = \"1KB\"", ""),
    ])
}

#[test]
fn line_22_a_length_over_the_limit_is_a_413_and_never_reaches_the_origin() {
    for bed in small_bodies() {
        let mut client = bed.ask(post_with("Content-Length: 5000\r\n", ""));
        assert_eq!(client.answer().status(), 413);
        bed.check_unseen();
        let lines = "Expect: 100-continue\r\nContent-Length: 5000\r\n";
        let mut client = bed.ask(post_with(lines, ""));
        assert_eq!(client.head().status(), 413, "without a 100");
        bed.check_unseen();
        let seen = bed.seen(post_with("Content-Length: 900\r\n", &"x".repeat(900)));
        assert_eq!(seen.body.len(), 900);
    }
}

#[test]
fn line_22_chunks_over_the_limit_are_a_413_and_never_reach_the_origin_whole() {
    for bed in small_bodies() {
        let chunk = format!("190\r\n{}\r\n", "x".repeat(400));
        // Before the other request, whose connection to the origin may come late.
        let body = format!("{chunk}0\r\n\r\n");
        let seen = bed.seen(post_with("Transfer-Encoding: chunked\r\n", &body));
        assert_eq!(seen.body.len(), 400);
        let mut client = bed.ask(post_with("Transfer-Encoding: chunked\r\n", &chunk));
        for _ in 0..4 {
            client.send(&chunk);
            thread::sleep(5 * MS);
        }
        // The proxy may have closed already.
        let _late = client.try_send("0\r\n\r\n");
        assert_eq!(client.answer().status(), 413);
        if let Some(mut origin) = bed.origin.accept_within(20 * MS) {
            let (seen, _) = origin.end();
            assert!(!seen.ends_with(b"0\r\n\r\n"), "no clean end");
        }
    }
}

fn impatient_with_heads() -> impl Iterator<Item = Testbed> {
    each([
        || Testbed::nginx("client_header_timeout 500ms;"),
        || Testbed::haproxy("    timeout http-request 500ms"),
        || Testbed::drip("header_timeout = \"500ms\"", ""),
    ])
}

/// Checks that 408 and the end of the connection arrive in about half a second.
fn check_timed_out(bed: &Testbed, mut client: Raw, began: std::time::Instant) {
    let (bytes, _) = client.end();
    let took = began.elapsed();
    let received = String::from_utf8_lossy(&bytes);
    // nginx closes without a response.
    let expected = if bed.who == "nginx" {
        ""
    } else {
        "HTTP/1.1 408 "
    };
    // haproxy's own responses are HTTP/1.0 in some cases.
    let fits = received.starts_with(expected) || received.starts_with("HTTP/1.0 408 ");
    assert!(fits, "{received:?} after {took:?}");
    assert!((400..2500).contains(&took.as_millis()), "{took:?}");
}

/// Sends slowly without a stop until the peer closes.
fn trickle(client: &Raw, bytes: &'static [u8]) {
    let mut sender = client.sender();
    thread::spawn(move || {
        for byte in bytes.iter().cycle().take(400) {
            if std::io::Write::write_all(&mut sender, &[*byte]).is_err() {
                return;
            }
            thread::sleep(20 * MS);
        }
    });
}

#[test]
fn line_22_a_slow_first_head_is_a_408_in_time() {
    for bed in impatient_with_heads() {
        for (first, then) in [
            ("", ""),
            ("GET / HTTP/1.1\r\nHost: te", ""),
            ("GET / HTTP/1.1\r\nX-A: ", "slow"),
        ] {
            let began = now();
            let client = bed.ask(first);
            trickle(&client, then.as_bytes());
            check_timed_out(&bed, client, began);
        }
    }
}

#[test]
fn line_22_a_slow_later_head_is_a_408_in_time() {
    for bed in impatient_with_heads() {
        let mut passed = bed.pass(GET, LAST);
        assert_eq!(passed.client.answer().status(), 200);
        passed.client.send(GET);
        let mut origin = bed.origin.accept();
        origin.head();
        origin.send(LAST);
        assert_eq!(passed.client.answer().status(), 200);
        let began = now();
        passed.client.send("GET / HTTP/1.1\r\nX-A: ");
        trickle(&passed.client, b"slow");
        check_timed_out(&bed, passed.client, began);
    }
}

#[test]
fn line_22_an_idle_connection_is_closed_in_time_and_without_a_word() {
    for bed in each([
        || Testbed::nginx("keepalive_timeout 500ms;"),
        || Testbed::haproxy("    timeout http-keep-alive 500ms"),
        || Testbed::drip("keep_alive = \"500ms\"", ""),
    ]) {
        let mut passed = bed.pass(GET, OK);
        assert_eq!(passed.client.answer().status(), 200);
        let began = now();
        assert_eq!(passed.client.end().0, b"");
        let took = began.elapsed();
        assert!((400..2500).contains(&took.as_millis()), "{took:?}");
    }
}

fn impatient_with_bodies() -> impl Iterator<Item = Testbed> {
    each([
        || Testbed::nginx("client_body_timeout 500ms; send_timeout 500ms;"),
        || Testbed::haproxy("    timeout client 500ms"),
        || Testbed::drip("body_timeout = \"500ms\"", ""),
    ])
}

#[test]
fn line_22_a_slow_body_is_a_408_in_time() {
    // haproxy closes too, but only after the origin's timeout.
    for bed in impatient_with_bodies().filter(|bed| bed.who != "haproxy") {
        for (framing, part) in [
            ("Content-Length: 100", "part"),
            ("Transfer-Encoding: chunked", "4\r\npart\r\n5"),
        ] {
            let began = now();
            let client = bed.ask(post_with(&format!("{framing}\r\n"), part));
            let mut origin = bed.origin.accept();
            origin.head();
            check_timed_out(&bed, client, began);
            let (rest, _) = origin.end();
            assert!(!rest.ends_with(b"0\r\n\r\n"), "no clean end");
        }
    }
}

#[test]
fn line_22_a_body_that_moves_is_given_its_time() {
    for bed in impatient_with_bodies() {
        let mut client = bed.ask(post_with("Content-Length: 10\r\n", ""));
        let mut origin = bed.origin.accept();
        origin.head();
        for _ in 0..10 {
            client.send("x");
            assert_eq!(origin.exactly(1), b"x");
            thread::sleep(100 * MS);
        }
        origin.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n");
        assert_eq!(client.head().status(), 200);
        for _ in 0..10 {
            origin.send("y");
            assert_eq!(client.exactly(1), b"y");
            thread::sleep(100 * MS);
        }
    }
}

/// Writes without end on its own thread. Reports the bytes taken, and whether the peer reads.
fn endless(
    bytes: std::net::TcpStream,
    framed: bool,
) -> (Arc<AtomicU64>, thread::JoinHandle<std::io::Error>) {
    const PIECE: usize = 64 * 1024;
    let sent = Arc::<AtomicU64>::default();
    let counted = Arc::clone(&sent);
    let mut to = bytes;
    let sending = thread::spawn(move || {
        let (before, after) = if framed {
            (format!("{PIECE:x}\r\n"), "\r\n")
        } else {
            (String::new(), "")
        };
        let piece = [before.as_bytes(), &noise(PIECE), after.as_bytes()].concat();
        // If the peer takes all bytes, the thread ends too.
        while counted.load(Ordering::SeqCst) < 512 * MB as u64 {
            if let Err(error) = std::io::Write::write_all(&mut to, &piece) {
                return error;
            }
            counted.fetch_add(piece.len() as u64, Ordering::SeqCst);
        }
        std::io::Error::other("all of it was taken")
    });
    (sent, sending)
}

#[test]
fn line_22_a_client_that_does_not_read_is_closed_in_time() {
    let _alone = quarter_alone();
    for bed in impatient_with_bodies() {
        for framing in ["Content-Length: 1000000000", "Transfer-Encoding: chunked"] {
            let mut passed = bed.pass(GET, format!("HTTP/1.1 200 OK\r\n{framing}\r\n\r\n"));
            let began = now();
            let (_, sending) = endless(passed.origin.sender(), framing.starts_with('T'));
            let error = sending.join().expect("no panic");
            let took = began.elapsed();
            assert!(took + 500 * MS < SOON, "{error} after {took:?}");
            let received = passed.client.try_answer_to("GET", SOON);
            assert!(received.is_err(), "no clean end");
        }
    }
}

/// Memory of buffers, independent of the number of bytes that pass through.
const MAY_GROW: u64 = 16 * MB as u64;

/// Waits until no more bytes are taken, and checks the memory.
fn check_bounded(bed: &mut Testbed, before: u64, sent: &AtomicU64) {
    let mut last = 0;
    eventually("the bytes no longer move", || {
        thread::sleep(100 * MS);
        let moved = sent.load(Ordering::SeqCst);
        moved > 0 && moved == std::mem::replace(&mut last, moved)
    });
    assert!(last < 64 * MB as u64, "{last} bytes were read");
    let grown = bed.gateway().peak_memory().saturating_sub(before);
    assert!(grown < MAY_GROW, "grew by {grown} bytes for {last}");
}

// nginx and haproxy are not measured here.
#[test]
fn line_23_an_endless_answer_to_a_client_that_does_not_read_costs_bounded_memory() {
    let _alone = half_alone();
    let mut bed = Testbed::drip("", "");
    let before = bed.gateway().peak_memory();
    for framing in [
        "Transfer-Encoding: chunked\r\n",
        "Content-Length: 10000000000\r\n",
        "",
    ] {
        let passed = bed.pass(GET, format!("HTTP/1.1 200 OK\r\n{framing}\r\n"));
        let (sent, sending) = endless(passed.origin.sender(), framing.starts_with('T'));
        check_bounded(&mut bed, before, &sent);
        drop(passed);
        sending.join().expect("no panic");
    }
}

#[test]
fn line_23_an_endless_upload_to_an_origin_that_does_not_read_costs_bounded_memory() {
    let _alone = half_alone();
    let mut bed = Testbed::drip("", "");
    let before = bed.gateway().peak_memory();
    for framing in [
        "Transfer-Encoding: chunked\r\n",
        "Content-Length: 10000000000\r\n",
    ] {
        let client = bed.ask(post_with(framing, ""));
        let mut origin = bed.origin.accept();
        origin.head();
        let (sent, sending) = endless(client.sender(), framing.starts_with('T'));
        check_bounded(&mut bed, before, &sent);
        drop((client, origin));
        sending.join().expect("no panic");
    }
}

#[test]
fn line_23_an_endless_upload_that_nobody_asked_for_costs_bounded_memory() {
    let _alone = quarter_alone();
    // The gateway's own response must not make it read forever.
    let zone = "[zones.z]\nkey = \"$remote_addr\"\nrate = \"1r/h\"";
    let mut bed = Testbed::limited_drip(
        "body_timeout = \"500ms\"",
        "",
        zone,
        "limits = [{ zone = \"z\" }]",
    );
    bed.seen(GET);
    let before = bed.gateway().peak_memory();
    let mut client = bed.ask(post_with("Content-Length: 10000000000\r\n", ""));
    let (sent, sending) = endless(client.sender(), false);
    assert_eq!(client.answer().status(), 429);
    let error = sending.join().expect("no panic");
    let taken = sent.load(Ordering::SeqCst);
    assert!(taken < 512 * MB as u64, "{error}: it reads on for ever");
    let grown = bed.gateway().peak_memory().saturating_sub(before);
    assert!(grown < MAY_GROW, "grew by {grown} bytes for {taken}");
}
