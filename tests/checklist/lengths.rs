//! Checklist lines 10 and 11: how messages are framed.

use super::bed::{GET, LAST, Testbed, everybody, get_with, haproxy_and_drip, post_with};
use crate::support::Message;

#[test]
fn line_10_a_request_of_known_length_goes_on_with_it_and_without_a_body_gains_no_framing() {
    for bed in everybody() {
        for (method, body) in [
            ("POST", "hello"),
            ("GET", "hello"),
            ("POST", ""),
            ("GET", ""),
        ] {
            let length = body.len();
            let seen = bed.seen(format!(
                "{method} / HTTP/1.1\r\nHost: test\r\nContent-Length: {length}\r\n\r\n{body}"
            ));
            assert_eq!(seen.length(), Some(length), "{method}");
            assert!(!seen.has("transfer-encoding"), "{method}");
            assert_eq!(seen.body, body.as_bytes(), "{method}");
        }
        for method in ["GET", "HEAD", "DELETE", "OPTIONS"] {
            let request = format!("{method} / HTTP/1.1\r\nHost: test\r\n\r\n");
            let answer = "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n";
            let mut passed = bed.pass(request, answer);
            let seen = &passed.seen;
            let is_framed = seen.has("content-length") || seen.has("transfer-encoding");
            assert!(!is_framed, "{method}");
            assert_eq!(passed.client.answer_to(method).status(), 204);
        }
    }
}

#[test]
fn line_10_a_chunked_request_goes_on_in_chunks() {
    // nginx buffers the complete body and sends its length. In line 9 it sends chunks.
    for bed in haproxy_and_drip() {
        for body in [
            "5\r\nhello\r\n0\r\n\r\n",
            "2;a=\"b\"\r\nhe\r\n03\r\nllo\r\n000\r\n\r\n",
            "0\r\n\r\n",
        ] {
            let expected: &[u8] = if body.starts_with('0') { b"" } else { b"hello" };
            let lines = "Transfer-Encoding: chunked\r\n";
            for request in [post_with(lines, body), get_with(lines) + body] {
                let seen = bed.seen(request);
                assert!(seen.is_chunked(), "{seen:?}");
                assert!(!seen.has("content-length"));
                assert_eq!(seen.body, expected);
            }
        }
    }
}

#[test]
fn line_10_an_answer_is_framed_as_the_origin_frames_it_and_chunks_overrule_a_length() {
    for bed in everybody() {
        for (framing, body, length, expected) in [
            ("Content-Length: 2", "ok", Some(2), "ok"),
            ("Content-Length: 0", "", Some(0), ""),
            (
                "Transfer-Encoding: chunked",
                "5\r\nhello\r\n0\r\n\r\n",
                None,
                "hello",
            ),
            (
                "Content-Length: 3\r\nTransfer-Encoding: chunked",
                "5\r\nhello\r\n0\r\n\r\n",
                None,
                "hello",
            ),
        ] {
            let received = bed.received(format!(
                "HTTP/1.1 200 OK\r\n{framing}\r\nConnection: close\r\n\r\n{body}"
            ));
            assert_eq!(received.length(), length);
            assert_eq!(received.is_chunked(), length.is_none());
            assert_eq!(received.body, expected.as_bytes(), "{framing}");
        }
    }
}

#[test]
fn line_10_a_repeated_length_is_forwarded_once() {
    // nginx passes the list on, haproxy refuses it.
    let bed = Testbed::drip("", "");
    for lines in [
        "Content-Length: 2, 2",
        "Content-Length: 2\r\nContent-Length: 2",
    ] {
        let received = bed.received(format!(
            "HTTP/1.1 200 OK\r\n{lines}\r\nConnection: close\r\n\r\nok"
        ));
        assert_eq!(received.field("content-length"), Some("2"), "{lines}");
        assert_eq!(received.body, b"ok", "{lines}");
    }
}

/// Returns the head of a response without a body, and checks that the connection is usable.
fn bodiless(bed: &Testbed, method: &str, answer: &str) -> Message {
    let request = format!("{method} / HTTP/1.1\r\nHost: test\r\n\r\n");
    let answer = format!("HTTP/1.1 {answer}\r\nConnection: close\r\n\r\n");
    let mut passed = bed.pass(request, &answer);
    let received = passed.client.answer_to(method);
    // The origin might send a body later: the next response must follow right after the head.
    drop(passed.origin);
    passed.client.send(GET);
    let mut origin = bed.origin.accept();
    assert_eq!(origin.head().line, "GET / HTTP/1.1");
    origin.send(LAST);
    assert_eq!(passed.client.answer().body, b"ok", "after {answer:?}");
    received
}

#[test]
fn line_11_an_answer_to_head_and_a_304_keep_their_length_and_have_no_body() {
    for bed in everybody() {
        for (method, answer, length) in [
            ("HEAD", "200 OK\r\nContent-Length: 1000", Some("1000")),
            ("HEAD", "404 Not Found\r\nContent-Length: 0", Some("0")),
            // The proxy adds no length.
            ("HEAD", "200 OK", None),
            ("HEAD", "200 OK\r\nTransfer-Encoding: chunked", None),
            (
                "HEAD",
                "304 Not Modified\r\nContent-Length: 500",
                Some("500"),
            ),
            (
                "GET",
                "304 Not Modified\r\nContent-Length: 500",
                Some("500"),
            ),
            ("GET", "304 Not Modified", None),
        ] {
            let received = bodiless(&bed, method, answer);
            let found = received.field("content-length");
            assert_eq!(found, length, "{method}: {answer}");
        }
    }
}

#[test]
fn line_11_a_204_has_neither_length_nor_body() {
    let check = |bed: &Testbed, line: &str| {
        let received = bodiless(bed, "GET", &format!("204 No Content{line}"));
        assert!(!received.has("content-length") && !received.has("transfer-encoding"));
    };
    for bed in everybody() {
        check(&bed, "");
    }
    // nginx and haproxy pass on a length of the origin.
    let bed = Testbed::drip("", "");
    check(&bed, "\r\nContent-Length: 0");
    check(&bed, "\r\nContent-Length: 5");
    check(&bed, "\r\nTransfer-Encoding: chunked");
}
