//! Checklist line 13: trailers are forwarded in both directions.
//!
//! Trailers that would change the meaning of the message are dropped (RFC 9110, section 6.5).

use std::thread;

use super::bed::{LAST, MS, OK, Testbed, get_with, haproxy_and_drip, pairs, post_with};
use crate::support::{PATIENCE, Raw, SOON, now};

/// Fields of a client that accepts trailers.
const TAKES: &str = "Connection: TE\r\nTE: trailers\r\n";

/// Fields that frame a message, route it, or name its sender: they must not change after the head.
const NEVER: &str = "Content-Length: 7, Transfer-Encoding: chunked, Host: other, Connection: close, Keep-Alive: timeout=5, \
    Proxy-Connection: close, TE: trailers, Trailer: X-Other, Upgrade: h2c, Expect: 100-continue, Max-Forwards: 1, \
    Authorization: Basic eDp5, Proxy-Authorization: Basic eDp5, WWW-Authenticate: Basic, Proxy-Authenticate: Basic, \
    Content-Type: text/html, Content-Encoding: gzip, Content-Range: bytes 0-1/2, Cookie: a=b, Set-Cookie: a=b, \
    X-Forwarded-For: 6.6.6.6, X-Forwarded-Host: evil, X-Forwarded-Proto: https, X-Forwarded-Whatever: 1, \
    X_Forwarded_For: 6.6.6.6, Forwarded: for=6.6.6.6, X-Real-IP: 6.6.6.6, X_Real_IP: 6.6.6.6, content-LENGTH: 7";

/// Trailers of a request that are ambiguous or invalid.
#[rustfmt::skip]
const BROKEN: [&[u8]; 12] = [
    b"X-Sum : 1\r\n", b"X-Sum\t: 1\r\n", b"no colon\r\n", b": 1\r\n", b" X-Sum: 1\r\n",
    b"X-Sum: 1\r\n folded\r\n", b"X-Sum: 1\nX-Other: 2\r\n", b"X-Sum: 1\rX-Other: 2\r\n",
    b"X-Sum: a\0b\r\n", b"X\0Sum: 1\r\n", b"X-Sum: a\x7fb\r\n", b"X(Sum): 1\r\n",
];

fn chunked(trailers: &str) -> String {
    format!("5\r\nhello\r\n0\r\n{trailers}\r\n")
}

/// Returns a request in chunks with these trailers. `lines`: fields of its head.
fn post(lines: &str, trailers: &str) -> String {
    let lines = format!("{lines}Transfer-Encoding: chunked\r\n");
    post_with(&lines, &chunked(trailers))
}

/// Returns a response in chunks with these trailers.
fn answer(lines: &str, trailers: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\n{lines}Transfer-Encoding: chunked\r\n\r\n{}",
        chunked(trailers)
    )
}

#[test]
fn line_13_trailers_of_a_request_reach_the_origin_as_trailers() {
    // nginx buffers the complete body, and sends its length.
    for bed in haproxy_and_drip() {
        let seen = bed.seen(post(
            "Trailer: X-Sum, X-Many\r\n",
            "X-Sum: 1\r\nX-Many: a\r\nX-Many:\r\nX-Bytes: caf\u{e9}\r\nX-Many:   c \t\r\n",
        ));
        assert_eq!(seen.body, b"hello");
        assert_eq!(
            seen.trailers,
            pairs(&[
                ("x-sum", "1"),
                ("x-many", "a"),
                ("x-many", ""),
                ("x-bytes", "caf\u{c3}\u{a9}"),
                ("x-many", "c"),
            ])
        );
        assert!(!seen.has("x-sum"), "none is a field");
        assert_eq!(seen.field("trailer"), Some("X-Sum, X-Many"));
    }
}

#[test]
fn line_13_trailers_that_nobody_announced_or_of_an_empty_body_reach_the_origin_too() {
    for bed in haproxy_and_drip() {
        let empty = post_with("Transfer-Encoding: chunked\r\n", "0\r\nX-Sum: 1\r\n\r\n");
        for request in [post("", "X-Sum: 1\r\n"), empty] {
            let mut client = bed.ask_byte_by_byte(&request);
            let mut origin = bed.origin.accept();
            let seen = origin.request();
            assert_eq!(seen.trailers, pairs(&[("x-sum", "1")]), "{request:?}");
            assert!(!seen.has("trailer"));
            origin.send(LAST);
            assert_eq!(client.answer().body, b"ok");
        }
    }
}

#[test]
fn line_13_trailers_of_an_answer_reach_a_client_that_takes_them() {
    for bed in haproxy_and_drip() {
        for takes in [
            TAKES,
            "TE: trailers\r\nConnection: te\r\n",
            "TE: deflate;q=0.5, Trailers\r\nConnection: keep-alive, TE\r\n",
        ] {
            let mut passed = bed.pass(
                get_with(takes),
                answer(
                    "Trailer: X-Sum\r\nConnection: close\r\n",
                    "X-Sum: 1\r\nX-Other: 2\r\nX-Sum: 3\r\n",
                ),
            );
            let received = passed.client.answer();
            assert_eq!(received.body, b"hello");
            let expected = pairs(&[("x-sum", "1"), ("x-other", "2"), ("x-sum", "3")]);
            assert_eq!(received.trailers, expected, "{takes:?}");
            assert!(!received.has("x-sum"), "none is a field");
            assert_eq!(received.field("trailer"), Some("X-Sum"));
        }
    }
}

#[test]
fn line_13_trailers_of_an_answer_are_dropped_for_whoever_does_not_take_them() {
    // haproxy sends them to every client.
    let bed = Testbed::drip("", "");
    for lines in [
        "",
        "Connection: TE\r\n",
        "Connection: TE\r\nTE: deflate\r\n",
        "Connection: TE\r\nTE:\r\n",
        "Connection: TE\r\nTE: xtrailers, trailers2\r\n",
    ] {
        let announced = answer("Trailer: X-Sum\r\n", "X-Sum: 1\r\nX-Other: 2\r\n");
        let mut passed = bed.pass(get_with(lines), announced);
        let received = passed.client.answer();
        assert_eq!(received.body, b"hello", "{lines:?}");
        assert_eq!(received.trailers, [], "{lines:?}");
        assert!(!received.has("trailer"), "{lines:?}: none follow");
        // No byte of them is left on either connection.
        passed.client.send(get_with(TAKES));
        assert_eq!(passed.origin.head().line, "GET / HTTP/1.1");
        passed.origin.send(answer("", "X-Sum: 2\r\n"));
        let received = passed.client.answer();
        let expected = pairs(&[("x-sum", "2")]);
        assert_eq!(received.trailers, expected, "after {lines:?}");
    }
}

#[test]
fn line_13_a_trailer_field_does_not_pass_where_no_trailers_can() {
    let bed = Testbed::drip("", "");
    let lines = format!("{TAKES}Trailer: X-Sum\r\nContent-Length: 5\r\n");
    let answer = "HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nContent-Length: 2\r\n\r\nok";
    let mut passed = bed.pass(post_with(&lines, "hello"), answer);
    assert!(!passed.seen.has("trailer"), "{:?}", passed.seen);
    assert!(!passed.client.answer().has("trailer"));
}

#[test]
fn line_13_fields_that_frame_or_route_never_pass_as_trailers() {
    // haproxy forwards them.
    let bed = Testbed::drip("trusted_proxies = [\"127.0.0.1\"]", "");
    let all = NEVER.replace(", ", "\r\n");
    let between = |line: &str| format!("X-First: 1\r\n{line}\r\nX-Last: 2\r\n");
    let kept = pairs(&[("x-first", "1"), ("x-last", "2")]);
    for trailers in NEVER.split(", ").chain([&*all]).map(between) {
        // If the proxy missed the end of a kept connection, the next request would be lost with it.
        let answer = answer("Connection: close\r\n", &trailers);
        let mut passed = bed.pass(post(TAKES, &trailers), answer);
        let seen = &passed.seen;
        assert_eq!(seen.trailers, kept, "to the origin: {trailers:?}");
        assert_eq!(seen.body, b"hello");
        for (name, value) in [
            ("host", Some("test")),
            ("content-length", None),
            ("authorization", None),
            ("cookie", None),
            ("x-forwarded-for", Some("127.0.0.1")),
            ("x-real-ip", None),
        ] {
            assert_eq!(seen.field(name), value, "{trailers:?}");
        }
        let received = passed.client.answer();
        assert_eq!(received.trailers, kept, "to the client: {trailers:?}");
        assert_eq!(received.body, b"hello");
    }
}

#[test]
fn line_13_trailers_that_connection_names_stay_behind() {
    // RFC 9110, section 7.6.1, says so of header and trailer fields alike.
    let bed = Testbed::drip("", "");
    let lines = "Connection: TE, X-One\r\nTE: trailers\r\n";
    let trailers = "X-One: 1\r\nX-Two: 2\r\n";
    let answer = answer("Connection: X-One\r\n", trailers);
    let mut passed = bed.pass(post(lines, trailers), answer);
    let two = pairs(&[("x-two", "2")]);
    assert_eq!(passed.seen.trailers, two, "to the origin");
    assert_eq!(passed.client.answer().trailers, two, "to the client");
}

#[test]
fn line_13_broken_trailers_of_a_request_are_refused_as_broken_fields_are() {
    // haproxy and nginx forward some of them.
    let bed = Testbed::drip("", "");
    for broken in BROKEN {
        for before in ["", "X-Good: 1\r\n"] {
            let head = post_with("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\n");
            let next = b"\r\nGET /smuggled HTTP/1.1\r\nHost: test\r\n\r\n";
            let request = [head.as_bytes(), before.as_bytes(), broken, next].concat();
            let shown = String::from_utf8_lossy(&request);
            let mut client = bed.ask(&request);
            let received = client.answer();
            let is_refused = (400..500).contains(&received.status());
            assert!(is_refused, "{shown:?}: {received:?}");
            assert_eq!(client.end().0, b"", "{shown:?}");
            // The origin must not receive the end of the request.
            while let Some(mut origin) = bed.origin.accept_within(10 * MS) {
                let (seen, _) = origin.end();
                let seen = String::from_utf8_lossy(&seen);
                let whole = seen.contains("\r\n0\r\n") || seen.contains("/smuggled");
                assert!(!whole, "{shown:?}: {seen:?}");
            }
            bed.check_unseen();
        }
    }
}

/// Checks that the client gets no complete response, or a 502 if nothing was forwarded before.
fn check_broken_off(client: &mut Raw, case: &str) {
    let received = client.try_answer_to("GET", SOON);
    let is_whole = received.as_ref().is_ok_and(|it| it.status() != 502);
    assert!(!is_whole, "{case}: {received:?}");
}

#[test]
fn line_13_broken_trailers_of_an_answer_are_no_clean_end() {
    let bed = Testbed::drip("", "");
    for broken in BROKEN {
        for takes in ["", TAKES] {
            let mut client = bed.ask(get_with(takes));
            let mut origin = bed.origin.accept();
            origin.head();
            let head = answer("", "");
            let head = head.strip_suffix("\r\n").expect("the empty line");
            origin.send([head.as_bytes(), b"X-Good: 1\r\n", broken, b"\r\n"].concat());
            let shown = String::from_utf8_lossy(broken);
            check_broken_off(&mut client, &format!("{shown:?}, {takes:?}"));
            assert_eq!(origin.end().0, b"", "{shown:?}: it carries nothing else");
        }
    }
}

#[test]
fn line_13_trailers_without_end_are_refused() {
    let bed = Testbed::drip("", "");
    let line = format!("X-Sum: {}\r\n", "x".repeat(1000));
    let endless = |raw: &mut Raw| {
        let began = now();
        // The peer may close first.
        while raw.try_send(&line).is_ok() {
            assert!(began.elapsed() < PATIENCE, "trailers are taken without end");
        }
    };
    let mut client = bed.ask(get_with(TAKES));
    let mut origin = bed.origin.accept();
    origin.head();
    origin.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n");
    endless(&mut origin);
    check_broken_off(&mut client, "without end");

    let mut client = bed.ask(post_with("Transfer-Encoding: chunked\r\n", "0\r\n"));
    let mut sender = Raw::over(client.sender());
    let received = thread::scope(|scope| {
        scope.spawn(|| endless(&mut sender));
        client.answer()
    });
    assert!((400..500).contains(&received.status()), "{received:?}");
}

#[test]
fn line_13_the_most_of_a_body_does_not_count_its_trailers() {
    let bed = Testbed::drip("max_body_size = \"1KB\"", "");
    let body = format!("3e8\r\n{}\r\n0\r\n", "x".repeat(1000));
    let long = "y".repeat(2000);
    let body = format!("{body}X-Sum: {long}\r\n\r\n");
    let request = post_with("Transfer-Encoding: chunked\r\n", &body);
    let seen = bed.seen(request);
    assert_eq!(seen.body.len(), 1000);
    assert_eq!(seen.trailers, pairs(&[("x-sum", &long)]));
    // A connection whose request was served also serves the next one.
    assert_eq!(bed.received(OK).body, b"ok");
}
