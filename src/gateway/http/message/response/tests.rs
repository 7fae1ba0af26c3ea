//! Tests of the response parser.

use super::*;
use crate::http::message::FieldName;

fn bytes(lines: &str) -> Vec<u8> {
    format!("{}\r\n\r\n", lines.replace('\n', "\r\n")).into_bytes()
}

fn parse(bytes: &[u8], to_head: bool) -> Result<ResponseHead<'_>, InvalidResponse> {
    let table = Box::leak(Box::default());
    let (head, end) = ResponseHead::parse(bytes, table, to_head)?.expect("a whole head");
    assert_eq!(end, bytes.len());
    Ok(head)
}

/// Returns the framing of the body after these lines, and the length of a body that is not sent.
fn framing(lines: &str, to_head: bool) -> Result<(BodyLength, Option<u64>), InvalidResponse> {
    let bytes = bytes(lines);
    let head = parse(&bytes, to_head)?;
    Ok((head.length, head.announced_length))
}

#[test]
fn a_head_is_parsed_once_it_is_whole() {
    let whole = b"HTTP/1.1 404 Not here\r\nDate: now\r\nx:\t y \r\ncontent-length: 2\r\n\r\n";
    let more = [&whole[..], b"no"].concat();
    let mut table = FieldTable::new();
    for come in 0..whole.len() {
        let parsed = ResponseHead::parse(&more[..come], &mut table, false);
        assert!(matches!(parsed, Ok(None)), "{come}");
    }
    for come in whole.len()..=more.len() {
        let parsed = ResponseHead::parse(&more[..come], &mut table, false);
        let (head, end) = parsed.unwrap().unwrap();
        assert_eq!(end, whole.len());
        assert_eq!((head.status, head.reason()), (404, &b"Not here"[..]));
        assert_eq!(head.version, Version::Http11);
        assert_eq!(head.length, BodyLength::Length(2));
        let fields: Vec<_> = head.fields().iter().collect();
        let expected: [(_, &[u8], &[u8]); 3] = [
            (FieldName::Date, b"Date", b"now"),
            (FieldName::Other, b"x", b"y"),
            (FieldName::ContentLength, b"content-length", b"2"),
        ];
        assert_eq!(fields, expected);
    }
}

#[test]
fn the_framing_of_a_body_follows_from_its_head() {
    use BodyLength::{Chunked, Length, None, UntilClose};
    let cases = [
        ("HTTP/1.1 200 OK", UntilClose),
        ("HTTP/1.0 200 OK", UntilClose),
        ("HTTP/1.1 200 OK\ncontent-length: 0", Length(0)),
        ("HTTP/1.1 200 OK\ncontent-length: 5", Length(5)),
        ("HTTP/1.0 500\ncontent-length: 05", Length(5)),
        (
            "HTTP/1.1 200 OK\ncontent-length: 5\nContent-Length: 5",
            Length(5),
        ),
        ("HTTP/1.1 200 OK\ncontent-length: 5, 5", Length(5)),
        ("HTTP/1.1 200 OK\ntransfer-encoding: chunked", Chunked),
        (
            "HTTP/1.1 200 OK\ntransfer-encoding: Chunked\ncontent-length: 5",
            Chunked,
        ),
        (
            "HTTP/1.1 200 OK\ncontent-length: none\ntransfer-encoding: chunked",
            Chunked,
        ),
        ("HTTP/1.1 100 Continue\ncontent-length: 5", None),
        ("HTTP/1.1 101 Switching Protocols", None),
        ("HTTP/1.1 204 No Content\ncontent-length: 5", None),
        ("HTTP/1.1 204 No Content\ntransfer-encoding: chunked", None),
        ("HTTP/1.1 304 Not Modified", None),
        ("HTTP/1.1 205 Reset Content\ncontent-length: 0", Length(0)),
        ("HTTP/1.1 999 Odd\ncontent-length: 1", Length(1)),
    ];
    for (lines, length) in cases {
        assert_eq!(framing(lines, false), Ok((length, Option::None)), "{lines}");
    }
}

#[test]
fn the_length_of_a_body_that_is_not_sent_is_announced() {
    for (lines, to_head, announced) in [
        ("200 OK\ncontent-length: 5", true, Some(5)),
        ("200 OK", true, None),
        ("200 OK\ntransfer-encoding: chunked", true, None),
        ("304 X\ncontent-length: 5", false, Some(5)),
        ("304 X\ncontent-length: 5", true, Some(5)),
        ("204 X\ncontent-length: 5", true, None),
    ] {
        let found = framing(&format!("HTTP/1.1 {lines}"), to_head);
        assert_eq!(found, Ok((BodyLength::None, announced)), "{lines}");
    }
}

#[test]
fn ambiguous_framing_is_refused() {
    for (expected, cases) in [
        (
            InvalidResponse::Length,
            "content-length: 5\ncontent-length: 6|content-length: 5, 6|content-length: 5,|\
             content-length: +5|content-length: 0x5|content-length:|\
             content-length: 18446744073709551616",
        ),
        (
            InvalidResponse::Coding,
            "transfer-encoding: gzip|transfer-encoding: gzip, chunked|\
             transfer-encoding: chunked\ntransfer-encoding: chunked|\
             transfer-encoding: identity|transfer-encoding:",
        ),
        (
            InvalidResponse::Malformed,
            "content-length : 5|a: b\n c|content-length: 5\r|no colon|a: \u{0}",
        ),
    ] {
        for lines in cases.split('|') {
            let found = framing(&format!("HTTP/1.1 200 OK\n{lines}"), false);
            assert_eq!(found, Err(expected), "{lines:?}");
        }
    }
    let old = framing("HTTP/1.0 200 OK\ntransfer-encoding: chunked", false);
    assert_eq!(old, Err(InvalidResponse::Coding));
    let cases = "HTTP/2 200 OK|HTTP/1.2 200 OK|HTTP/1.1 099 Early|HTTP/1.1 20 OK|\
        HTTP/1.1 2000 OK|HTTP/1.1  200 OK|HTTP/1.1 200 O\u{1}K|http/1.1 200 OK|\
        ICY 200 OK|GET / HTTP/1.1";
    for line in cases.split('|') {
        let found = framing(line, false);
        assert_eq!(found, Err(InvalidResponse::Malformed), "{line:?}");
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
    let length = "\ncontent-length: 0";
    for (status, framed, options, keeps) in [
        ("1.1 200", length, &[][..], true),
        ("1.1 200", "\ntransfer-encoding: chunked", &[], true),
        ("1.1 204", "", &[], true),
        ("1.1 200", "", &[], false),
        ("1.1 200", length, &["close"], false),
        ("1.1 200", length, &["a", "b, CLOSE"], false),
        ("1.0 200", length, &[], false),
        ("1.0 200", length, &["keep-alive"], true),
        ("1.0 200", length, &["keep-alive, close"], false),
        ("1.0 200", "", &["keep-alive"], false),
    ] {
        let options = options.iter().map(|it| format!("\nconnection: {it}"));
        let options: String = options.collect();
        let bytes = bytes(&format!("HTTP/{status} OK{framed}{options}"));
        let head = parse(&bytes, false).unwrap();
        assert_eq!(head.keeps_alive(), keeps, "{status} {framed} {options}");
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
