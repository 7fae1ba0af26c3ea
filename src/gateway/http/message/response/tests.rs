//! Tests of the response parser.

use super::super::test_heads::bytes;
use super::*;
use crate::http::message::FieldName;

fn parse(bytes: &[u8], to_head: bool) -> Result<ResponseHead<'_>, InvalidResponse> {
    let table = Box::leak(Box::default());
    let (head, end) = ResponseHead::parse(bytes, table, to_head)?.expect("a whole head");
    assert_eq!(end, bytes.len());
    Ok(head)
}

/// Builds a head from these lines, which come after `HTTP/`.
///
/// `te` and `cl` stand for `transfer-encoding` and `content-length`.
fn expand(lines: &str) -> Vec<u8> {
    let lines = lines.replace("\nte", "\ntransfer-encoding");
    let lines = lines.replace("\ncl", "\ncontent-length");
    bytes(&format!("HTTP/{lines}"))
}

/// Returns the framing of the body after these lines, and the length of a body that is not sent.
fn framing(lines: &str, to_head: bool) -> Result<(BodyLength, Option<u64>), InvalidResponse> {
    let bytes = expand(lines);
    let head = parse(&bytes, to_head)?;
    Ok((head.length, head.announced_length))
}

#[test]
fn a_head_is_parsed_once_it_is_whole() {
    let whole = b"HTTP/1.1 404 Not here\r\nDate: now\r\nx:\t y \r\ncontent-length: 2\r\n\r\n";
    let more = [&whole[..], b"no"].concat();
    let mut table = FieldTable::new();
    for arrived in 0..=more.len() {
        let parsed = ResponseHead::parse(&more[..arrived], &mut table, false);
        let Some((head, end)) = parsed.unwrap() else {
            assert!(arrived < whole.len(), "{arrived}");
            continue;
        };
        assert!(end == whole.len() && arrived >= end, "{arrived}");
        assert_eq!((head.status, head.reason()), (404, &b"Not here"[..]));
        assert_eq!(head.version, Version::Http11);
        assert_eq!(head.length, BodyLength::Length(2));
        let expected: [(_, &[u8], &[u8]); 3] = [
            (FieldName::Date, b"Date", b"now"),
            (FieldName::Other, b"x", b"y"),
            (FieldName::ContentLength, b"content-length", b"2"),
        ];
        assert!(head.fields().iter().eq(expected), "{head:?}");
    }
}

#[test]
fn the_framing_of_a_body_follows_from_its_head() {
    use BodyLength::{Chunked, Length, None, UntilClose};
    let cases = [
        ("1.1 200 OK", UntilClose),
        ("1.0 200 OK", UntilClose),
        ("1.1 200 OK\ncl: 0", Length(0)),
        ("1.1 200 OK\ncl: 5", Length(5)),
        ("1.0 500\ncl: 05", Length(5)),
        ("1.1 200 OK\ncl: 5\nContent-Length: 5", Length(5)),
        ("1.1 200 OK\ncl: 5, 5", Length(5)),
        ("1.1 200 OK\nte: chunked", Chunked),
        ("1.1 200 OK\nte: Chunked\ncl: 5", Chunked),
        ("1.1 200 OK\ncl: none\nte: chunked", Chunked),
        ("1.1 100 Continue\ncl: 5", None),
        ("1.1 101 Switching Protocols", None),
        ("1.1 204 No Content\ncl: 5", None),
        ("1.1 204 No Content\nte: chunked", None),
        ("1.1 304 Not Modified", None),
        ("1.1 205 Reset Content\ncl: 0", Length(0)),
        ("1.1 999 Odd\ncl: 1", Length(1)),
    ];
    for (lines, length) in cases {
        assert_eq!(framing(lines, false), Ok((length, Option::None)), "{lines}");
    }
}

#[test]
fn the_length_of_a_body_that_is_not_sent_is_announced() {
    for (lines, to_head, announced) in [
        ("1.1 200 OK\ncl: 5", true, Some(5)),
        ("1.1 200 OK", true, None),
        ("1.1 200 OK\nte: chunked", true, None),
        ("1.1 304 X\ncl: 5", false, Some(5)),
        ("1.1 304 X\ncl: 5", true, Some(5)),
        ("1.1 204 X\ncl: 5", true, None),
    ] {
        let found = framing(lines, to_head);
        assert_eq!(found, Ok((BodyLength::None, announced)), "{lines}");
    }
}

#[test]
fn ambiguous_framing_is_refused() {
    for (expected, cases) in [
        (
            InvalidResponse::Length,
            "cl: 5\ncl: 6|cl: 5, 6|cl: 5,|cl: +5|cl: 0x5|cl:|cl: 18446744073709551616",
        ),
        (
            InvalidResponse::Coding,
            "te: gzip|te: gzip, chunked|te: chunked\nte: chunked|te: identity|te:",
        ),
        (
            InvalidResponse::Malformed,
            "cl : 5|a: b\n c|cl: 5\r|no colon|a: \u{0}",
        ),
    ] {
        for lines in cases.split('|') {
            let found = framing(&format!("1.1 200 OK\n{lines}"), false);
            assert_eq!(found, Err(expected), "{lines:?}");
        }
    }
    let old = framing("1.0 200 OK\nte: chunked", false);
    assert_eq!(old, Err(InvalidResponse::Coding));
    let cases = "HTTP/2 200 OK|HTTP/1.2 200 OK|HTTP/1.1 099 Early|HTTP/1.1 20 OK|\
        HTTP/1.1 2000 OK|HTTP/1.1  200 OK|HTTP/1.1 200 O\u{1}K|http/1.1 200 OK|\
        ICY 200 OK|GET / HTTP/1.1";
    for line in cases.split('|') {
        let found = parse(&bytes(line), false).err();
        assert_eq!(found, Some(InvalidResponse::Malformed), "{line:?}");
    }
}

#[test]
fn line_endings_of_old_origins_are_accepted() {
    let bare = b"HTTP/1.1 200 OK\na: b\ncontent-length: 3\n\n";
    let head = parse(bare, false).unwrap();
    assert_eq!(head.length, BodyLength::Length(3));
    assert_eq!(head.fields().named("A").collect::<Vec<_>>(), [b"b"]);
    for line in ["HTTP/1.1 200", "HTTP/1.1 200 ", "HTTP/1.1 200 caf\u{e9}"] {
        let bytes = bytes(line);
        let head = parse(&bytes, false).unwrap();
        assert_eq!((head.status, head.reason()), (200, &b""[..]), "{line}");
    }
}

#[test]
fn the_maximum_number_of_fields_is_accepted_and_one_more_is_not() {
    let fields = |count| bytes(&format!("HTTP/1.1 200 OK{}", "\na: b".repeat(count)));
    let most = fields(512);
    assert_eq!(parse(&most, false).unwrap().fields().iter().count(), 512);
    let more = fields(513);
    let refused = parse(&more, false).err();
    assert_eq!(refused, Some(InvalidResponse::HeadTooLarge));
}

#[test]
fn a_connection_is_kept_as_its_server_says() {
    for (keeps, cases) in [
        (
            true,
            "1.1 200 OK\ncl: 0|1.1 200 OK\nte: chunked|1.1 204 OK|\
             1.0 200 OK\ncl: 0\nconnection: keep-alive",
        ),
        (
            false,
            "1.1 200 OK|1.1 200 OK\ncl: 0\nconnection: close|\
             1.1 200 OK\ncl: 0\nconnection: a\nconnection: b, CLOSE|1.0 200 OK\ncl: 0|\
             1.0 200 OK\ncl: 0\nconnection: keep-alive, close|\
             1.0 200 OK\nconnection: keep-alive",
        ),
    ] {
        for lines in cases.split('|') {
            let bytes = expand(lines);
            let head = parse(&bytes, false).unwrap();
            assert_eq!(head.keeps_alive(), keeps, "{lines:?}");
        }
    }
}

#[test]
fn other_answers_follow_an_interim_one() {
    for status in [100, 101, 103, 199, 200] {
        let bytes = bytes(&format!("HTTP/1.1 {status} X"));
        let head = parse(&bytes, false).unwrap();
        assert_eq!(head.is_interim(), ![101, 200].contains(&status), "{status}");
    }
}
