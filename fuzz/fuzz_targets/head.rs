//! Fuzzes the parser of requests.
//!
//! The parser must not panic, and its verdict must not change as more bytes arrive. Announced
//! bodies are decoded.

#![no_main]

use gateway::http::message::framing::{empty_lines, end_of_head};
use gateway::http::message::{BodyDecoder, BodyLength, FieldName, RequestHead};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut rest = &bytes[empty_lines(bytes)..];
    while let Some(behind) = request(rest) {
        rest = &behind[empty_lines(behind)..];
    }
});

/// Reads one request. Returns the bytes behind it.
fn request(bytes: &[u8]) -> Option<&[u8]> {
    let end = end_of_head(bytes, 0);
    let Ok(parsed) = RequestHead::parse(bytes) else {
        return None;
    };
    let Some((head, length)) = parsed else {
        assert_eq!(end, None, "a head with its end is whole");
        return None;
    };
    assert_eq!(end, Some(length));
    let own = &bytes[..length];
    assert!(own.ends_with(b"\r\n\r\n"));
    for cut in [1, length / 2, length - 1] {
        assert!(matches!(RequestHead::parse(&own[..cut]), Ok(None)));
        assert_eq!(end_of_head(own, cut.min(length - 2)), Some(length));
    }
    check(&head, own);
    let mut body = bytes[length..].to_vec();
    let mut decoder = BodyDecoder::new(head.length());
    let (data, used) = decoder.decode(&mut body).ok()?;
    assert!(data <= used && used <= body.len());
    assert!(decoder.is_over() || used == body.len());
    let goes_on = decoder.is_over() && head.keeps_alive();
    goes_on.then(|| &bytes[length + used..])
}

/// Checks that all parsed values appear in the head, and only unambiguous heads have a length.
fn check(head: &RequestHead, own: &[u8]) {
    assert!(own.starts_with(head.method()));
    assert!(!head.target().iter().any(|byte| *byte <= b' '));
    assert!(head.path_and_query().len() <= head.target().len());
    let fields = head.fields();
    let lines = own.iter().filter(|byte| **byte == b'\n').count();
    assert_eq!(fields.iter().count() + 2, lines);
    for (known, name, value) in fields.iter() {
        assert_eq!(known, FieldName::of(name));
        assert!(fields.has(known) && !name.is_empty());
        assert!(!value.contains(&b'\n') && !value.contains(&b'\r'));
        let text = str::from_utf8(name).expect("a token");
        assert!(fields.named(text).any(|found| found == value));
        let _away = fields.is_listed_in_connection(known, name);
    }
    let lengths = fields.all(FieldName::ContentLength).count();
    let codings = fields.all(FieldName::TransferEncoding).count();
    match head.length() {
        BodyLength::None => assert_eq!((lengths, codings), (0, 0)),
        BodyLength::Length(_) => assert!(lengths > 0 && codings == 0),
        BodyLength::Chunked => assert_eq!((lengths, codings), (0, 1)),
        BodyLength::UntilClose => panic!("a request ends before its connection"),
    }
    let _flags = (head.expects_continue(), head.takes_trailers());
}
