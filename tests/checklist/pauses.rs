//! Checklist line 22: a response that pauses for longer than `body_timeout` is broken off.
//!
//! The client must not take it for a complete response.

use std::thread;

use super::bed::{GET, LAST, MB, MS, Testbed, each, noise};
use crate::support::{End, PATIENCE, now};

/// Beginnings of responses, each with the bytes that follow its head at the client.
const BEGUN: [(&str, &str); 4] = [
    ("Content-Length: 100\r\n\r\npart", "part"),
    (
        "Transfer-Encoding: chunked\r\n\r\n4\r\npart\r\n",
        "4\r\npart\r\n",
    ),
    ("Content-Length: 100\r\n\r\n", ""),
    ("Transfer-Encoding: chunked\r\n\r\n", ""),
];

fn impatient() -> impl Iterator<Item = Testbed> {
    each([
        || Testbed::nginx("proxy_read_timeout 500ms;"),
        || Testbed::haproxy("    timeout server 500ms"),
        || Testbed::drip("", "body_timeout = \"500ms\""),
    ])
}

#[test]
fn line_22_an_answer_whose_body_pauses_for_too_long_ends_and_not_cleanly() {
    for bed in impatient() {
        for (begun, rest) in BEGUN {
            let mut passed = bed.pass(GET, format!("HTTP/1.1 200 OK\r\n{begun}"));
            let began = now();
            assert_eq!(passed.client.head().status(), 200, "{begun:?}");
            let (got, _) = passed.client.end();
            let took = began.elapsed();
            assert_eq!(got, rest.as_bytes(), "{begun:?}");
            assert!((400..3000).contains(&took.as_millis()), "{took:?}");
            assert_eq!(passed.origin.end().0, b"", "{begun:?}");
        }
        bed.check_unseen();
    }
}

#[test]
fn line_22_a_response_that_ends_with_the_connection_is_reset() {
    // nginx closes it as if the response were complete.
    let bed = Testbed::drip("", "body_timeout = \"500ms\"");
    let request = "GET / HTTP/1.0\r\nHost: test\r\n\r\n";
    let mut passed = bed.pass(request, "HTTP/1.1 200 OK\r\n\r\npart");
    assert_eq!(passed.client.head().status(), 200);
    let (_, end) = passed.client.end();
    assert_eq!(end, End::Reset);
}

#[test]
fn line_22_a_body_that_pauses_now_and_then_is_waited_for() {
    for bed in impatient() {
        let mut passed = bed.pass(GET, "HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n");
        assert_eq!(passed.client.head().status(), 200);
        // In total three times as long as one pause may be.
        for _ in 0..15 {
            passed.origin.send("x");
            assert_eq!(passed.client.exactly(1), b"x");
            thread::sleep(100 * MS);
        }
        drop(passed.origin);
        passed.client.send(GET);
        let mut origin = bed.origin.accept();
        origin.head();
        origin.send(LAST);
        assert_eq!(passed.client.answer().body, b"ok");
    }
}

#[test]
fn line_22_it_begins_with_the_body_and_is_not_the_time_for_the_head() {
    let bed = Testbed::drip("", "body_timeout = \"300ms\"\nresponse_timeout = \"10s\"");
    let mut client = bed.ask(GET);
    let mut origin = bed.origin.accept();
    origin.head();
    thread::sleep(600 * MS);
    origin.send(LAST);
    assert_eq!(client.answer().body, b"ok");
}

#[test]
fn line_22_a_client_that_reads_slowly_is_no_pause_of_the_origins() {
    const SIZE: usize = 24 * MB;
    // Prepared before the head is sent: on a busy machine this takes longer than the allowed pause.
    let body = noise(SIZE);
    let bed = Testbed::drip("", "body_timeout = \"1s\"");
    let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {SIZE}\r\n\r\n");
    let mut passed = bed.pass(GET, answer);
    let mut sender = passed.origin.sender();
    sender.set_write_timeout(Some(PATIENCE)).expect("a timeout");
    thread::scope(|scope| {
        let sent = scope.spawn(|| std::io::Write::write_all(&mut sender, &body));
        assert_eq!(passed.client.head().status(), 200);
        // All buffers in between are full for far longer than the origin may pause.
        thread::sleep(2400 * MS);
        let got = passed.client.exactly(SIZE);
        assert!(got == body, "the body differs");
        sent.join().expect("no panic").expect("all of it is taken");
    });
}

#[test]
fn line_22_the_permit_is_free_after_the_break() {
    let origin = "body_timeout = \"300ms\"\nmax_in_flight = 1\nqueue_timeout = \"10s\"";
    let mut bed = Testbed::drip("", origin);
    let passed = bed.pass(GET, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart");
    let next = bed.seen(GET);
    assert_eq!(next.target(), "/");
    let gateway = bed.gateway();
    gateway.wait_in_flight(0);
    drop(passed);
}
