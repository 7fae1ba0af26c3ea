//! Tests of responses from memory: complete, in part, head only, or 304, each with its age.

use std::net::SocketAddr;

use super::{ask, file, how, request, wait_until_passed};
use crate::support::{Answer, Exchange, Gateway, HoldingOrigin, Origin, Raw};

const BODY: &str = "0123456789";
const MODIFIED: &str = "Tue, 06 Jan 2026 10:00:00 GMT";

/// Returns the status and the fields of each path.
fn answer(path: &str) -> (u16, String) {
    let fields = match path {
        "/dated" => format!("Last-Modified: {MODIFIED}\r\n"),
        _ => format!(
            "ETag: \"a\"\r\nLast-Modified: {MODIFIED}\r\nContent-Type: text/x\r\nCache-Control: max-age=3600\r\n\
             Content-Language: en\r\nVary: Accept-Encoding\r\nConnection: x-hop\r\nX-Hop: 1\r\nX-Own: 2\r\n"
        ),
    };
    let status = if path == "/gone" { 404 } else { 200 };
    (status, fields)
}

/// Starts a gateway that keeps the origin's responses.
fn keeping() -> (Origin, Gateway) {
    let origin = Origin::answering(|exchange: &mut Exchange| {
        let (status, fields) = answer(exchange.target());
        let head = format!("HTTP/1.1 {status} Fine\r\n{fields}Content-Length: 10\r\n\r\n");
        exchange.send(format!("{head}{BODY}").as_bytes())
    });
    let gateway = Gateway::start(&file(origin.address, "keep = \"1h\""));
    (origin, gateway)
}

/// Sends a request, and fails unless it is answered from memory.
fn kept(at: SocketAddr, path: &str, fields: &str) -> Answer {
    let answer = ask(at, path, fields).answer();
    assert_eq!(how(&answer), "kept", "{path} {fields}: {answer:?}");
    answer
}

#[test]
fn a_condition_that_fits_gets_304_with_the_fields_that_it_needs() {
    let (origin, gateway) = keeping();
    let at = gateway.address();
    // `present/tests` has all conditions.
    let cases = [
        ("/tag", "If-None-Match: \"x\", W/\"a\"".to_owned(), 304),
        ("/tag", "If-None-Match: \"b\"".to_owned(), 200),
        ("/dated", format!("If-Modified-Since: {MODIFIED}"), 304),
        // Only a success can be not modified.
        ("/gone", "If-None-Match: \"a\"".to_owned(), 404),
    ];
    for path in ["/tag", "/dated", "/gone"] {
        assert_eq!(how(&ask(at, path, "").answer()), "leader");
    }
    for (path, fields, status) in cases {
        let answer = kept(at, path, &format!("{fields}\r\n"));
        assert_eq!(answer.status, status, "{path} {fields}");
        let body = if status == 304 { "" } else { BODY };
        assert_eq!(answer.text(), body, "{path} {fields}");
    }
    let answer = kept(at, "/tag", "If-None-Match: \"a\"\r\n");
    for (name, value) in [
        ("etag", "\"a\""),
        ("cache-control", "max-age=3600"),
        ("vary", "Accept-Encoding"),
    ] {
        assert_eq!(answer.field(name), Some(value), "{answer:?}");
    }
    assert!(answer.field("date").is_some(), "{answer:?}");
    assert_eq!(answer.field("transfer-encoding"), None);
    assert!(matches!(answer.field("content-length"), None | Some("10")));
    assert_eq!(origin.arrivals().len(), 3);
}

/// A path, the fields of a request, and the response: status, body, and `Content-Range`.
type RangeCase = (&'static str, &'static str, u16, &'static str, &'static str);

/// Some ranges of each kind. `present/tests` has all of them.
#[rustfmt::skip]
const RANGES: &[RangeCase] = &[
    ("/tag", "Range: bytes=0-3", 206, "0123", "bytes 0-3/10"),
    ("/tag", "Range: bytes=10-", 416, "", "bytes */10"),
    ("/tag", "Range: bytes=0-1,3-4", 200, BODY, ""),
    // If the condition names another response, the complete one is sent.
    ("/tag", "Range: bytes=99-\r\nIf-Range: \"b\"", 200, BODY, ""),
    // The condition is checked first.
    ("/tag", "Range: bytes=0-3\r\nIf-None-Match: \"a\"", 304, "", ""),
];

#[test]
fn one_range_is_cut_from_what_is_kept_and_several_get_the_whole() {
    let (origin, gateway) = keeping();
    let at = gateway.address();
    assert_eq!(how(&ask(at, "/tag", "").answer()), "leader");
    for &(path, fields, status, body, range) in RANGES {
        let answer = kept(at, path, &format!("{fields}\r\n"));
        let said = answer.field("content-range").unwrap_or_default();
        assert_eq!((answer.status, said), (status, range), "{path} {fields}");
        if status != 416 {
            assert_eq!(answer.text(), body, "{path} {fields}");
        }
        if status == 206 {
            assert_eq!(answer.number("content-length"), body.len() as u64);
        }
    }
    let part = kept(at, "/tag", "Range: bytes=0-3\r\n");
    assert_eq!(part.field("etag"), Some("\"a\""));
    assert_eq!(part.field("content-type"), Some("text/x"));
    assert_eq!(origin.arrivals().len(), 1);
}

/// Followers that request a part or only the head get it, as from memory.
#[test]
fn a_part_and_a_head_follow_one_that_leads() {
    let origin = HoldingOrigin::start();
    let gateway = Gateway::start(&file(origin.origin.address, ""));
    let at = gateway.address();
    let mut leader = ask(at, "/a", "");
    origin.origin.wait_for(1);
    let mut part = ask(at, "/a", "Range: bytes=1-\r\n");
    let mut head = Raw::connect(at);
    head.send(request("HEAD", "/a", "Range: bytes=1-\r\n"));
    let mut whole = ask(at, "/a", "If-None-Match: \"x\"\r\n");
    wait_until_passed(&gateway, 4);
    origin.release("/a");
    assert_eq!(leader.answer().text(), "ok");
    let part = part.answer();
    assert_eq!((part.status, part.text().as_str()), (206, "k"));
    assert_eq!(part.field("content-range"), Some("bytes 1-1/2"));
    // A range means nothing for HEAD (RFC 9110, section 14.2).
    let head = head.answer_to("HEAD");
    assert_eq!((head.status(), head.length()), (200, Some(2)));
    assert_eq!(head.field("x-drip-shared"), Some("follower"));
    assert_eq!(whole.answer().text(), "ok");
    assert_eq!(origin.targets(), ["/a"]);
}

#[test]
fn head_gets_the_head_of_what_is_kept_on_a_connection_that_stays() {
    let (origin, gateway) = keeping();
    let at = gateway.address();
    let whole = ask(at, "/tag", "").answer();
    assert_eq!(how(&whole), "leader");
    let mut raw = Raw::connect(at);
    for fields in ["", "If-None-Match: \"b\"\r\n", "Range: bytes=0-3\r\n"] {
        raw.send(request("HEAD", "/tag", fields));
        let head = raw.answer_to("HEAD");
        assert_eq!((head.status(), head.length()), (200, Some(10)), "{fields}");
        assert_eq!(head.field("etag"), Some("\"a\""));
        assert_eq!(head.field("x-own"), Some("2"));
        assert!(!head.has("x-hop"), "{head:?}");
    }
    raw.send(request("HEAD", "/tag", "If-None-Match: \"a\"\r\n"));
    assert_eq!(raw.answer_to("HEAD").status(), 304);
    // The bytes behind it belong to the next response.
    raw.send(request("GET", "/tag", ""));
    let answer = raw.answer();
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.body, BODY.as_bytes());
    assert!(!answer.has("x-hop"), "{answer:?}");
    assert_eq!(origin.arrivals().len(), 1);
}
