//! Lines 10 to 13: how bodies are framed, and how they end.

use crate::bed::{
    Bed, GET, LAST, MB, OK, everybody, get_with, haproxy_and_drip, nginx_and_drip, noise, ok_with,
    post_with,
};
use crate::support::{End, Raw};

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

/// What the client gets of the head of an answer without a body, after which the same connection serves another request.
fn bodiless(bed: &Bed, method: &str, answer: &str) -> crate::support::Message {
    let request = format!("{method} / HTTP/1.1\r\nHost: test\r\n\r\n");
    let mut passed = bed.pass(request, answer);
    let told = passed.client.answer_to(method);
    // It might send a body nobody expects after a while: the next answer must come right after the head.
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
    // 502: nobody listens where the origin was.
    for bed in everybody() {
        let mut client = bed.ask("HEAD / HTTP/1.1\r\nHost: test\r\n\r\n");
        drop(bed.origin.accept());
        let told = client.answer_to("HEAD");
        assert!(
            told.status() == 502 || told.status() == 503,
            "{}: {told:?}",
            bed.who
        );
        client
            .try_send("HEAD / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n")
            .unwrap_or_default();
        drop(bed.origin.accept_within(crate::bed::MS * 200));
        let (rest, _) = client.end();
        let heads = String::from_utf8_lossy(&rest);
        assert!(
            heads.is_empty() || heads.ends_with("\r\n\r\n"),
            "{}: {heads:?}",
            bed.who
        );
    }
}

#[test]
fn line_12_a_body_that_ends_with_the_connection_arrives_whole() {
    for bed in everybody() {
        for (version, length) in [("1.1", 5), ("1.0", 5), ("1.1", 0), ("1.0", MB), ("1.1", MB)] {
            let body = noise(length);
            let mut client = bed.ask(GET);
            let mut origin = bed.origin.accept();
            origin.head();
            let sent = body.clone();
            let told = std::thread::scope(|scope| {
                scope.spawn(move || {
                    origin.send(format!("HTTP/{version} 200 OK\r\nX-A: 1\r\n\r\n"));
                    origin.send(sent);
                    drop(origin);
                });
                client.answer()
            });
            assert_eq!(told.field("x-a"), Some("1"), "{}", bed.who);
            assert!(told.body == body, "{}: {version}, {length} bytes", bed.who);
        }
    }
}

/// The client's side of an answer that the origin breaks off after `part`.
fn broken_off(bed: &Bed, part: &str, end: fn(Raw)) -> std::io::Result<Vec<u8>> {
    let mut client = bed.ask(GET);
    let mut origin = bed.origin.accept();
    origin.head();
    origin.send(part);
    // The client has had what came; only then it ends.
    let at = part.find("\r\n\r\n").expect("a head") + 4;
    if part.len() > at {
        client.wait_for("part");
    }
    end(origin);
    let told = client.try_answer_to("GET", 5 * crate::bed::MS * 1000);
    told.map(|told| told.body)
}

#[test]
fn line_12_an_answer_cut_short_of_its_length_is_no_clean_end() {
    for bed in everybody() {
        let part = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart";
        assert!(broken_off(&bed, part, drop).is_err(), "{}", bed.who);
        assert!(broken_off(&bed, part, Raw::reset).is_err(), "{}", bed.who);
    }
}

#[test]
fn line_12_an_answer_cut_short_of_its_last_chunk_is_no_clean_end() {
    for bed in everybody() {
        for rest in [
            "4\r\npart\r\n",
            "64\r\npart",
            "4\r\npart\r\n5",
            "4\r\npart\r\n0\r\n",
            "4\r\npart",
        ] {
            let part = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{rest}");
            assert!(
                broken_off(&bed, &part, drop).is_err(),
                "{}: {rest:?}",
                bed.who
            );
            assert!(
                broken_off(&bed, &part, Raw::reset).is_err(),
                "{}: {rest:?}",
                bed.who
            );
        }
    }
}

#[test]
fn line_12_nonsense_for_a_chunk_is_no_clean_end() {
    for bed in everybody() {
        let part = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npart\r\n";
        let ended = broken_off(&bed, part, |mut origin| {
            origin.send("zz\r\npart\r\n0\r\n\r\n");
        });
        assert!(ended.is_err(), "{}: {ended:?}", bed.who);
    }
}

#[test]
fn line_12_a_body_that_ends_with_a_reset_is_no_clean_end() {
    // nginx and haproxy take a reset for the end.
    let bed = Bed::drip("", "");
    let ended = broken_off(&bed, "HTTP/1.1 200 OK\r\n\r\npart", Raw::reset);
    assert!(ended.is_err(), "{ended:?}");
}

#[test]
fn line_12_a_request_cut_short_never_reaches_the_origin_whole() {
    for bed in everybody() {
        for (framing, part) in [
            ("Content-Length: 100", "part"),
            ("Transfer-Encoding: chunked", "4\r\npart\r\n"),
        ] {
            let client = bed.ask(post_with(&format!("{framing}\r\n"), part));
            let mut origin = bed.origin.accept();
            origin.head();
            origin.wait_for("part");
            drop(client);
            let (rest, _) = origin.end();
            assert!(!rest.ends_with(b"0\r\n\r\n"), "{}: {framing}", bed.who);
        }
    }
}

#[test]
fn line_13_a_client_of_http_1_0_never_sees_chunks() {
    const CHUNKED: &str =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n";
    // haproxy sends it chunks.
    for bed in nginx_and_drip() {
        for lines in ["", "Connection: keep-alive\r\n"] {
            let mut passed = bed.pass(
                format!("GET / HTTP/1.0\r\nHost: test\r\n{lines}\r\n"),
                CHUNKED,
            );
            let told = passed.client.head();
            assert!(!told.has("transfer-encoding"), "{}: {told:?}", bed.who);
            assert_eq!(
                passed.client.end(),
                (b"hello".to_vec(), End::Closed),
                "{}",
                bed.who
            );
            drop(passed.origin);
        }
    }
}

#[test]
fn line_13_a_client_of_http_1_0_is_closed_unless_it_asks_otherwise() {
    for bed in everybody() {
        let mut passed = bed.pass("GET / HTTP/1.0\r\nHost: test\r\n\r\n", ok_with(""));
        assert_eq!(passed.client.answer().body, b"ok", "{}", bed.who);
        assert_eq!(
            passed.client.end(),
            (Vec::new(), End::Closed),
            "{}",
            bed.who
        );
    }
}

#[test]
fn line_13_trailers_of_a_request_break_nothing() {
    for bed in everybody() {
        let mut client = bed.ask(post_with(
            "Trailer: X-Sum\r\nTransfer-Encoding: chunked\r\n",
            "5\r\nhello\r\n0\r\nX-Sum: 1\r\nContent-Length: 7\r\n\r\n",
        ));
        client.send(GET);
        let mut origin = bed.origin.accept();
        let seen = origin.request();
        assert_eq!(seen.body, b"hello", "{}", bed.who);
        assert!(!seen.has("x-sum"), "{}", bed.who);
        // nginx has the whole body, and sends its length.
        assert_ne!(seen.field("content-length"), Some("7"), "{}", bed.who);
        origin.send(LAST);
        assert_eq!(client.answer().body, b"ok", "{}", bed.who);
        drop(origin);
        let mut origin = bed.origin.accept();
        assert_eq!(origin.request().line, "GET / HTTP/1.1", "{}", bed.who);
        origin.send(OK);
        assert_eq!(client.answer().body, b"ok", "{}", bed.who);
    }
}

#[test]
fn line_13_trailers_of_an_answer_break_nothing() {
    for bed in everybody() {
        let mut passed = bed.pass(
            GET,
            "HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\
             X-Sum: 1\r\nX-Other: 2\r\n\r\n",
        );
        let told = passed.client.answer();
        assert_eq!(told.body, b"hello", "{}", bed.who);
        assert!(!told.has("x-sum"), "{}", bed.who);
        drop(passed.origin);
        passed.client.send(GET);
        let mut origin = bed.origin.accept();
        origin.head();
        origin.send(OK);
        assert_eq!(passed.client.answer().body, b"ok", "{}", bed.who);
    }
}
