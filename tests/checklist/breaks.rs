//! Checklist line 12: a client can detect a response that its origin breaks off.

use std::thread;

use rustix::process::Signal;

use super::bed::{GET, MS, Testbed, post_with};
use crate::support::{End, Raw};

/// Parts of responses, with the bytes that follow the head of each at the client.
const PARTS: [(&str, &str); 5] = [
    ("Content-Length: 100\r\n\r\n", ""),
    ("Content-Length: 100\r\n\r\npart", "part"),
    ("Transfer-Encoding: chunked\r\n\r\n", ""),
    (
        "Transfer-Encoding: chunked\r\n\r\n4\r\npart\r\n",
        "4\r\npart\r\n",
    ),
    (
        "Transfer-Encoding: chunked\r\n\r\n4\r\npart\r\n0\r\n",
        "4\r\npart\r\n",
    ),
];

/// Sends a request, and lets the origin break off its response at once.
///
/// The origin reads the head and `read` more bytes, sends `part` of a response and ends the
/// connection. The gateway receives all of that at the same time.
fn broken_off_at_once(
    bed: &mut Testbed,
    request: &str,
    read: usize,
    part: &str,
    end: fn(Raw),
) -> Raw {
    let client = bed.ask(request);
    let mut origin = bed.origin.accept();
    origin.head();
    origin.exactly(read);
    bed.gateway().signal(Signal::STOP);
    origin.send(format!("HTTP/1.1 200 OK\r\n{part}"));
    end(origin);
    bed.gateway().signal(Signal::CONT);
    client
}

#[test]
fn line_12_an_answer_that_breaks_off_as_it_begins_is_still_one() {
    let mut bed = Testbed::drip("", "");
    for end in [drop, Raw::reset] {
        for (part, rest) in PARTS {
            let mut client = broken_off_at_once(&mut bed, GET, 0, part, end);
            assert_eq!(client.head().status(), 200, "{part:?}");
            let (got, end) = client.end();
            assert_eq!(got, rest.as_bytes(), "{part:?}");
            assert_eq!(end, End::Closed, "{part:?}");
        }
    }
}

#[test]
fn line_12_what_a_client_still_sends_takes_no_part_of_a_broken_answer() {
    const HALF: usize = 100_000;
    let half = "x".repeat(HALF);
    let pipelined = GET.repeat(2000);
    let upload = post_with(&format!("Content-Length: {}\r\n", 2 * HALF), &half);
    let mut bed = Testbed::drip("", "");
    for (request, read, more) in [(&pipelined, 0, ""), (&upload, HALF, &*half)] {
        for (part, rest) in PARTS {
            let mut client = broken_off_at_once(&mut bed, request, read, part, drop);
            thread::sleep(20 * MS);
            client.send(more);
            // Anything that is lost is lost by now.
            thread::sleep(20 * MS);
            assert_eq!(client.head().status(), 200, "{part:?}");
            let (got, end) = client.end();
            assert_eq!(got, rest.as_bytes(), "{part:?}");
            assert_eq!(end, End::Closed, "{part:?}");
        }
    }
}

#[test]
fn line_12_an_http_1_0_client_is_reset_if_it_could_not_detect_the_end() {
    // nginx closes the connection, and haproxy sends chunks.
    let bed = Testbed::drip("", "");
    for (lines, expected) in [
        ("Transfer-Encoding: chunked\r\n\r\n4\r\n", End::Reset),
        // With a length, the client detects the missing bytes itself.
        ("Content-Length: 100\r\n\r\n", End::Closed),
    ] {
        let mut client = bed.ask("GET / HTTP/1.0\r\nHost: test\r\n\r\n");
        let mut origin = bed.origin.accept();
        origin.head();
        origin.send(format!("HTTP/1.1 200 OK\r\n{lines}part"));
        client.wait_for("part");
        drop(origin);
        let (_, end) = client.end();
        assert_eq!(end, expected, "{lines:?}");
    }
}
