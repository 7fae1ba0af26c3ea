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

/// Reads how the body after these lines is framed, and the length of a body that does not follow.
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
fn a_head_tells_how_its_body_is_framed() {
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
fn a_length_is_told_of_a_body_that_does_not_follow() {
    use BodyLength::None;
    for (lines, to_head, told) in [
        ("HTTP/1.1 200 OK\ncontent-length: 5", true, Some(5)),
        ("HTTP/1.1 200 OK", true, Option::None),
        (
            "HTTP/1.1 200 OK\ntransfer-encoding: chunked",
            true,
            Option::None,
        ),
        ("HTTP/1.1 304 X\ncontent-length: 5", false, Some(5)),
        ("HTTP/1.1 304 X\ncontent-length: 5", true, Some(5)),
        ("HTTP/1.1 204 X\ncontent-length: 5", true, Option::None),
    ] {
        assert_eq!(framing(lines, to_head), Ok((None, told)), "{lines}");
    }
}

#[test]
fn what_could_be_read_in_two_ways_is_refused() {
    for (lines, expected) in [
        (
            "content-length: 5\ncontent-length: 6",
            InvalidResponse::Length,
        ),
        ("content-length: 5, 6", InvalidResponse::Length),
        ("content-length: 5,", InvalidResponse::Length),
        ("content-length: +5", InvalidResponse::Length),
        ("content-length: 0x5", InvalidResponse::Length),
        ("content-length:", InvalidResponse::Length),
        (
            "content-length: 18446744073709551616",
            InvalidResponse::Length,
        ),
        ("transfer-encoding: gzip", InvalidResponse::Coding),
        ("transfer-encoding: gzip, chunked", InvalidResponse::Coding),
        (
            "transfer-encoding: chunked\ntransfer-encoding: chunked",
            InvalidResponse::Coding,
        ),
        ("transfer-encoding: identity", InvalidResponse::Coding),
        ("transfer-encoding:", InvalidResponse::Coding),
        ("content-length : 5", InvalidResponse::Malformed),
        ("a: b\n c", InvalidResponse::Malformed),
        ("content-length: 5\r", InvalidResponse::Malformed),
        ("no colon", InvalidResponse::Malformed),
        ("a: \u{0}", InvalidResponse::Malformed),
    ] {
        let found = framing(&format!("HTTP/1.1 200 OK\n{lines}"), false);
        assert_eq!(found, Err(expected), "{lines:?}");
    }
    let old = framing("HTTP/1.0 200 OK\ntransfer-encoding: chunked", false);
    assert_eq!(old, Err(InvalidResponse::Coding));
    for line in [
        "HTTP/2 200 OK",
        "HTTP/1.2 200 OK",
        "HTTP/1.1 099 Early",
        "HTTP/1.1 20 OK",
        "HTTP/1.1 2000 OK",
        "HTTP/1.1  200 OK",
        "HTTP/1.1 200 O\u{1}K",
        "http/1.1 200 OK",
        "ICY 200 OK",
        "GET / HTTP/1.1",
    ] {
        let found = framing(line, false);
        assert_eq!(found, Err(InvalidResponse::Malformed), "{line:?}");
    }
}

#[test]
fn lines_of_old_origins_are_taken() {
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
fn so_many_fields_are_taken_and_one_more_is_too_large() {
    let fields = |count| bytes(&format!("HTTP/1.1 200 OK{}", "\na: b".repeat(count)));
    let most = fields(512);
    assert_eq!(parse(&most, false).unwrap().fields().iter().count(), 512);
    let more = fields(513);
    let refused = parse(&more, false).err();
    assert_eq!(refused, Some(InvalidResponse::HeadTooLarge));
}

#[test]
fn a_connection_is_kept_as_its_server_says() {
    for (lines, keeps) in [
        ("HTTP/1.1 200 OK\ncontent-length: 0", true),
        ("HTTP/1.1 200 OK\ntransfer-encoding: chunked", true),
        ("HTTP/1.1 204 OK", true),
        ("HTTP/1.1 200 OK", false),
        (
            "HTTP/1.1 200 OK\ncontent-length: 0\nconnection: close",
            false,
        ),
        (
            "HTTP/1.1 200 OK\ncontent-length: 0\nconnection: a\nconnection: b, CLOSE",
            false,
        ),
        ("HTTP/1.0 200 OK\ncontent-length: 0", false),
        (
            "HTTP/1.0 200 OK\ncontent-length: 0\nconnection: keep-alive",
            true,
        ),
        (
            "HTTP/1.0 200 OK\ncontent-length: 0\nconnection: keep-alive, close",
            false,
        ),
        ("HTTP/1.0 200 OK\nconnection: keep-alive", false),
    ] {
        let bytes = bytes(lines);
        let head = parse(&bytes, false).unwrap();
        assert_eq!(head.keeps_alive(), keeps, "{lines}");
    }
}

#[test]
fn other_answers_follow_an_interim_one() {
    for (status, interim) in [
        (100, true),
        (101, false),
        (103, true),
        (199, true),
        (200, false),
    ] {
        let bytes = bytes(&format!("HTTP/1.1 {status} X"));
        let head = parse(&bytes, false).unwrap();
        assert_eq!(head.is_interim(), interim, "{status}");
    }
}
