//! Lines 10 and 11: how messages are framed.

use super::bed::{
    Bed, GET, LAST, everybody, forwarding, get_with, haproxy_and_drip, post_with, with_drip,
};
use crate::peers;
use crate::support::{Gateway, Message, Raw, free_address};

#[test]
fn line_10_a_request_of_known_length_goes_on_with_it() {
    for bed in everybody() {
        let seen = bed.seen(post_with("Content-Length: 5\r\n", "hello"));
        assert_eq!(seen.field("content-length"), Some("5"), "{}", bed.who);
        assert!(!seen.has("transfer-encoding"), "{}", bed.who);
        assert_eq!(seen.body, b"hello", "{}", bed.who);
    }
}

#[test]
fn line_10_a_chunked_request_goes_on_in_chunks() {
    // nginx has the whole body, and sends its length; in line 9 it has not, and sends chunks.
    for bed in haproxy_and_drip() {
        for body in [
            "5\r\nhello\r\n0\r\n\r\n",
            "2;a=\"b\"\r\nhe\r\n03\r\nllo\r\n000\r\n\r\n",
            "0\r\n\r\n",
        ] {
            let wanted: &[u8] = if body.starts_with('0') { b"" } else { b"hello" };
            let seen = bed.seen(post_with("Transfer-Encoding: chunked\r\n", body));
            assert!(seen.is_chunked(), "{}: {seen:?}", bed.who);
            assert!(!seen.has("content-length"), "{}", bed.who);
            assert_eq!(seen.body, wanted, "{}", bed.who);
        }
    }
}

#[test]
fn line_10_a_request_without_a_body_gains_no_framing() {
    for bed in everybody() {
        for method in ["GET", "HEAD", "DELETE", "OPTIONS"] {
            let request = format!("{method} / HTTP/1.1\r\nHost: test\r\n\r\n");
            let mut passed = bed.pass(
                request,
                "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n",
            );
            assert!(!passed.seen.has("content-length"), "{}: {method}", bed.who);
            assert!(
                !passed.seen.has("transfer-encoding"),
                "{}: {method}",
                bed.who
            );
            assert_eq!(passed.client.answer_to(method).status(), 204, "{}", bed.who);
        }
    }
}

#[test]
fn line_10_a_length_of_0_is_kept() {
    for bed in everybody() {
        for method in ["POST", "PUT", "GET"] {
            let seen = bed.seen(format!(
                "{method} / HTTP/1.1\r\nHost: test\r\nContent-Length: 0\r\n\r\n"
            ));
            assert_eq!(
                seen.field("content-length"),
                Some("0"),
                "{}: {method}",
                bed.who
            );
            assert!(!seen.has("transfer-encoding"), "{}: {method}", bed.who);
        }
    }
}

#[test]
fn line_10_a_get_may_have_a_body() {
    for bed in everybody() {
        let seen = bed.seen(get_with("Content-Length: 5\r\n") + "hello");
        assert_eq!(seen.body, b"hello", "{}", bed.who);
        let seen = bed.seen(get_with("Transfer-Encoding: chunked\r\n") + "5\r\nhello\r\n0\r\n\r\n");
        assert_eq!(seen.body, b"hello", "{}", bed.who);
    }
}

#[test]
fn line_10_an_answer_is_framed_as_the_origin_frames_it() {
    for bed in everybody() {
        let told = bed.told(LAST);
        assert_eq!(
            (told.length(), told.is_chunked()),
            (Some(2), false),
            "{}",
            bed.who
        );
        let told = bed.told(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        );
        assert_eq!(
            (told.length(), told.is_chunked()),
            (None, true),
            "{}",
            bed.who
        );
        assert_eq!(told.body, b"hello", "{}", bed.who);
        let told = bed.told("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        assert_eq!(
            (told.length(), told.is_chunked()),
            (Some(0), false),
            "{}",
            bed.who
        );
    }
}

#[test]
fn line_10_chunks_overrule_a_length() {
    for bed in everybody() {
        let told = bed.told(
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        );
        assert_eq!(told.length(), None, "{}", bed.who);
        assert_eq!(told.body, b"hello", "{}", bed.who);
    }
}

#[test]
fn line_10_a_length_that_is_told_twice_goes_on_once() {
    // nginx passes the list on, haproxy refuses it.
    let bed = Bed::drip("", "");
    for lines in [
        "Content-Length: 2, 2",
        "Content-Length: 2\r\nContent-Length: 2",
    ] {
        let told = bed.told(format!(
            "HTTP/1.1 200 OK\r\n{lines}\r\nConnection: close\r\n\r\nok"
        ));
        assert_eq!(told.field("content-length"), Some("2"), "{lines}");
        assert_eq!(told.body, b"ok", "{lines}");
    }
}

/// The head that the client gets of a response without a body; then the same connection serves another request.
fn bodiless(bed: &Bed, method: &str, answer: &str) -> Message {
    let request = format!("{method} / HTTP/1.1\r\nHost: test\r\n\r\n");
    let mut passed = bed.pass(request, answer);
    let told = passed.client.answer_to(method);
    // It might send an unexpected body later: the next response must come right after the head.
    drop(passed.origin);
    passed.client.send(GET);
    let mut origin = bed.origin.accept();
    assert_eq!(origin.head().line, "GET / HTTP/1.1", "{}", bed.who);
    origin.send(LAST);
    assert_eq!(
        passed.client.answer().body,
        b"ok",
        "{}: after {answer:?}",
        bed.who
    );
    told
}

#[test]
fn line_11_an_answer_to_head_keeps_its_length_and_has_no_body() {
    for bed in everybody() {
        let told = bodiless(
            &bed,
            "HEAD",
            "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nConnection: close\r\n\r\n",
        );
        assert_eq!(told.field("content-length"), Some("1000"), "{}", bed.who);
        let told = bodiless(
            &bed,
            "HEAD",
            "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        );
        assert_eq!(told.field("content-length"), Some("0"), "{}", bed.who);
        let told = bodiless(&bed, "HEAD", "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
        assert_eq!(
            told.field("content-length"),
            None,
            "{}: none is made up",
            bed.who
        );
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n";
        let told = bodiless(&bed, "HEAD", chunked);
        assert_eq!(told.field("content-length"), None, "{}", bed.who);
    }
}

#[test]
fn line_11_a_304_keeps_its_length_and_has_no_body() {
    for bed in everybody() {
        for method in ["GET", "HEAD"] {
            let told = bodiless(
                &bed,
                method,
                "HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\nContent-Length: 500\r\nConnection: close\r\n\r\n",
            );
            assert_eq!(told.field("etag"), Some("\"x\""), "{}", bed.who);
            assert_eq!(
                told.field("content-length"),
                Some("500"),
                "{}: {method}",
                bed.who
            );
            let told = bodiless(
                &bed,
                method,
                "HTTP/1.1 304 Not Modified\r\nConnection: close\r\n\r\n",
            );
            assert!(
                !told.has("content-length") && !told.has("transfer-encoding"),
                "{}",
                bed.who
            );
        }
    }
}

#[test]
fn line_11_a_204_has_neither_length_nor_body() {
    // nginx and haproxy pass on a length that the origin gives it.
    let bed = Bed::drip("", "");
    for line in [
        "Content-Length: 0\r\n",
        "Content-Length: 5\r\n",
        "Transfer-Encoding: chunked\r\n",
    ] {
        let told = bodiless(
            &bed,
            "GET",
            &format!("HTTP/1.1 204 No Content\r\n{line}Connection: close\r\n\r\n"),
        );
        assert!(
            !told.has("content-length") && !told.has("transfer-encoding"),
            "{told:?}"
        );
    }
    for bed in everybody() {
        let told = bodiless(
            &bed,
            "GET",
            "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n",
        );
        assert!(
            !told.has("content-length") && !told.has("transfer-encoding"),
            "{}",
            bed.who
        );
    }
}

#[test]
fn line_11_an_answer_of_the_proxys_own_to_head_has_no_body() {
    // haproxy closes after it.
    let nginx = peers::nginx(free_address(), "");
    let drip = Gateway::start(&forwarding(&[free_address()], ""));
    for (_, to) in with_drip([&nginx], &drip) {
        let mut client = Raw::connect(to);
        for method in ["HEAD", "HEAD", "GET"] {
            client.send(format!("{method} / HTTP/1.1\r\nHost: test\r\n\r\n"));
            let told = client.answer_to(method);
            assert_eq!(told.status(), 502, "{method}");
            assert_eq!(told.body.is_empty(), method == "HEAD", "{told:?}");
        }
    }
}
