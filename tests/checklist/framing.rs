//! Line 9: a request that can be read in two ways is refused, and the origin never sees it.

use super::bed::{Bed, GET, LAST, MS, OK, everybody, haproxy_and_drip, nginx_and_drip, post_with};
use crate::support::Raw;

/// What an origin that reads the request differently would take for the next request.
const SMUGGLED: &str = "GET /smuggled HTTP/1.1\r\nHost: test\r\n\r\n";

fn post(lines: &str, body: &str) -> String {
    post_with(lines, body) + SMUGGLED
}

/// Each is refused with 400 and the end of the connection, in one piece and byte by byte.
fn check_refused(beds: impl IntoIterator<Item = Bed>, requests: &[String]) {
    for bed in beds {
        for request in requests {
            assert_eq!(bed.refusal(request), 400, "{}: {request:?}", bed.who);
            let client = bed.ask_byte_by_byte(request);
            assert_eq!(
                bed.refusal_to(client),
                400,
                "{}, byte by byte: {request:?}",
                bed.who
            );
        }
    }
}

fn drip() -> [Bed; 1] {
    [Bed::drip("", "")]
}

#[test]
fn line_09_a_length_with_a_transfer_encoding_is_refused_and_never_reaches_the_origin() {
    // haproxy drops the length and closes after the answer.
    check_refused(
        nginx_and_drip(),
        &[
            post(
                "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
                "0\r\n\r\n",
            ),
            post(
                "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
                "0\r\n\r\n",
            ),
            post(
                "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n",
                "0\r\n\r\n",
            ),
            post(
                "content-length: 5\r\nX-A: 1\r\ntransfer-encoding: Chunked\r\n",
                "0\r\n\r\n",
            ),
        ],
    );
}

#[test]
fn line_09_lengths_that_differ_are_refused_and_never_reach_the_origin() {
    let lines = "Content-Length: 5\r\nContent-Length: 6\r\n";
    check_refused(
        everybody(),
        &[
            post(lines, "hello"),
            post("Content-Length: 5, 6\r\n", "hello"),
            post("Content-Length: 0\r\nContent-Length: 5\r\n", "hello"),
        ],
    );
}

#[test]
fn line_09_a_length_that_is_no_number_is_refused_and_never_reaches_the_origin() {
    let odd = [
        "+5",
        "-5",
        "0x5",
        "5 5",
        "",
        "5;",
        "5.0",
        "1e1",
        "five",
        "5,",
        "99999999999999999999",
        "18446744073709551621",
    ];
    let requests = odd.map(|length| post(&format!("Content-Length: {length}\r\n"), "hello"));
    check_refused(everybody(), &requests);
}

#[test]
fn line_09_a_coding_other_than_chunked_is_refused_and_never_reaches_the_origin() {
    let odd = [
        "gzip",
        "gzip, chunked",
        "chunked, gzip",
        "chunked, chunked",
        "identity",
        "xchunked",
        "chunked;q=1",
        "\"chunked\"",
        "",
        "\x0bchunked",
    ];
    let mut requests: Vec<_> = odd
        .iter()
        .map(|coding| post(&format!("Transfer-Encoding: {coding}\r\n"), "0\r\n\r\n"))
        .collect();
    requests.push(post(
        "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n",
        "0\r\n\r\n",
    ));
    requests.push(post(
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "0\r\n\r\n",
    ));
    // nginx answers 501, haproxy takes some of them.
    check_refused(drip(), &requests);
}

#[test]
fn line_09_chunks_in_http_1_0_are_refused_and_never_reach_the_origin() {
    // haproxy takes them, and closes after the answer.
    let request = "POST / HTTP/1.0\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    check_refused(nginx_and_drip(), &[format!("{request}{SMUGGLED}")]);
}

#[test]
fn line_09_a_folded_line_is_refused_and_never_reaches_the_origin() {
    // haproxy unfolds it, as RFC 9112 allows.
    check_refused(
        nginx_and_drip(),
        &[
            post("X-A: 1\r\n 2\r\nContent-Length: 0\r\n", ""),
            post("X-A: 1\r\n\tTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
            format!("GET / HTTP/1.1\r\n Host: test\r\nHost: test\r\n\r\n{SMUGGLED}"),
        ],
    );
}

#[test]
fn line_09_a_space_before_the_colon_is_refused_and_never_reaches_the_origin() {
    check_refused(
        everybody(),
        &[
            post("Content-Length : 5\r\n", "hello"),
            post("Transfer-Encoding : chunked\r\n", "0\r\n\r\n"),
            post("X-A\t: 1\r\nContent-Length: 0\r\n", ""),
            format!("GET / HTTP/1.1\r\nHost : test\r\n\r\n{SMUGGLED}"),
        ],
    );
}

#[test]
fn line_09_a_line_that_is_no_field_is_refused_and_never_reaches_the_origin() {
    // nginx ignores some of them.
    check_refused(
        haproxy_and_drip(),
        &[
            post("no colon\r\n", ""),
            post(": no name\r\n", ""),
            post("X(A): 1\r\n", ""),
        ],
    );
    // haproxy lets it pass.
    check_refused(
        nginx_and_drip(),
        &[post("X-A: 1\0Content-Length: 5\r\n", "")],
    );
}

#[test]
fn line_09_a_bare_lf_or_cr_is_refused_and_never_reaches_the_origin() {
    // nginx and haproxy take LF for CRLF.
    check_refused(
        drip(),
        &[
            format!("GET / HTTP/1.1\nHost: test\r\n\r\n{SMUGGLED}"),
            format!("GET / HTTP/1.1\r\nHost: test\nX-A: 1\r\n\r\n{SMUGGLED}"),
            format!(
                "GET / HTTP/1.1\r\nHost: test\n\nGET /smuggled HTTP/1.1\nHost: test\n\n{SMUGGLED}"
            ),
            format!("GET / HTTP/1.1\r\nHost: test\r\n\n{SMUGGLED}"),
            format!("GET / HTTP/1.1\r\nHost: test\r\nX-A: 1\rX-B: 2\r\n\r\n{SMUGGLED}"),
            format!("GET / HTTP/1.1\rHost: test\r\n\r\n{SMUGGLED}"),
            post("X-A: 1\nContent-Length: 5\r\n", "hello"),
        ],
    );
}

/// What an origin saw of requests that it must not see completely: at most their beginning.
fn check_never_whole(bed: &Bed, request: &str) {
    while let Some(mut origin) = bed.origin.accept_within(10 * MS) {
        let (seen, _) = origin.end();
        let seen = String::from_utf8_lossy(&seen);
        assert!(
            !seen.contains("\r\n0\r\n"),
            "{}, {request:?}: {seen:?}",
            bed.who
        );
        assert!(
            !seen.contains("smuggled"),
            "{}, {request:?}: {seen:?}",
            bed.who
        );
    }
}

/// 400 and the end, and no end of the body for the origin: its beginning may have been forwarded before the rest came.
fn check_broken(bed: &Bed, mut client: Raw, request: &str) {
    let answer = client.answer();
    assert_eq!(answer.status(), 400, "{}: {request:?}", bed.who);
    assert_eq!(client.end().0, b"", "{}: {request:?}", bed.who);
    check_never_whole(bed, request);
}

fn check_chunks_refused(beds: impl IntoIterator<Item = Bed>, bodies: &[&str]) {
    for bed in beds {
        for body in bodies {
            let request = post("Transfer-Encoding: chunked\r\n", body);
            check_broken(&bed, bed.ask(&request), &request);
            check_broken(&bed, bed.ask_byte_by_byte(&request), &request);
        }
        bed.check_unseen();
    }
}

#[test]
fn line_09_a_chunk_size_that_is_none_or_overflows_is_refused_and_the_origin_sees_no_whole_request()
{
    check_chunks_refused(
        nginx_and_drip(),
        &[
            "\r\nhello\r\n0\r\n\r\n",
            "10000000000000005\r\nhello\r\n0\r\n\r\n",
            "fffffffffffffffff\r\nhello\r\n0\r\n\r\n",
            "-5\r\nhello\r\n0\r\n\r\n",
            "+5\r\nhello\r\n0\r\n\r\n",
            "g\r\nhello\r\n0\r\n\r\n",
        ],
    );
    // nginx ignores what follows the digits; haproxy answers only once the origin has closed.
    check_chunks_refused(
        drip(),
        &[
            "0x5\r\nhello\r\n0\r\n\r\n",
            "5_\r\nhello\r\n0\r\n\r\n",
            ";a=b\r\nhello\r\n0\r\n\r\n",
            "5\r\nhello\r\n\r\n0\r\n\r\n",
        ],
    );
}

#[test]
fn line_09_a_chunk_that_is_not_as_long_as_it_says_is_refused() {
    check_chunks_refused(
        nginx_and_drip(),
        &["3\r\nhello\r\n0\r\n\r\n", "5\r\nhelloworld\r\n0\r\n\r\n"],
    );
}

#[test]
fn line_09_a_bare_lf_or_cr_in_the_framing_of_chunks_is_refused() {
    // nginx and haproxy take LF for CRLF here too.
    check_chunks_refused(
        drip(),
        &[
            "5\nhello\r\n0\r\n\r\n",
            "5\r\nhello\n0\r\n\r\n",
            "5;a\nb\r\nhello\r\n0\r\n\r\n",
            "5\rhello\r\n0\r\n\r\n",
            "5\r\nhello\r\n0\n\r\n",
        ],
    );
}

#[test]
fn line_09_a_bad_chunk_after_good_ones_ends_both_connections() {
    for bed in nginx_and_drip() {
        let mut client = bed.ask(post_with(
            "Transfer-Encoding: chunked\r\n",
            "5\r\nhello\r\n",
        ));
        let mut origin = bed.origin.accept();
        assert!(origin.head().is_chunked(), "{}", bed.who);
        assert_eq!(origin.exactly(10), b"5\r\nhello\r\n", "{}", bed.who);
        client.send(format!("zz\r\nhello\r\n0\r\n\r\n{SMUGGLED}"));
        assert_eq!(client.answer().status(), 400, "{}", bed.who);
        assert_eq!(client.end().0, b"", "{}", bed.who);
        assert_eq!(origin.end().0, b"", "{}", bed.who);
        bed.check_unseen();
    }
}

#[test]
fn line_09_an_empty_line_before_a_request_is_no_offence() {
    // RFC 9112, section 2.2: at least one should be ignored; and what follows good framing is the next request.
    for bed in everybody() {
        let mut client = bed.ask(post_with("Content-Length: 5\r\n", "hello") + "\r\n" + GET);
        let mut origin = bed.origin.accept();
        assert_eq!(origin.request().body, b"hello", "{}", bed.who);
        origin.send(LAST);
        assert_eq!(client.answer().body, b"ok", "{}", bed.who);
        let mut origin = bed.origin.accept();
        assert_eq!(origin.request().line, "GET / HTTP/1.1", "{}", bed.who);
        origin.send(OK);
        assert_eq!(client.answer().body, b"ok", "{}", bed.who);
    }
}
