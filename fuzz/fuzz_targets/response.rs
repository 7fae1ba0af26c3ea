//! Fuzzes the parser of responses.
//!
//! The parser must not panic, and its verdict must not change as more bytes arrive. Announced
//! bodies are decoded, for responses to HEAD and to other methods.

#![no_main]

use gateway::http::message::{BodyDecoder, BodyLength, FieldName, FieldTable, ResponseHead};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for to_head in [false, true] {
        let mut rest = bytes;
        while let Some(behind) = answer(rest, to_head) {
            rest = behind;
        }
    }
});

/// Reads one response. Returns the bytes behind it if another response follows.
fn answer(bytes: &[u8], to_head: bool) -> Option<&[u8]> {
    let (mut table, mut of_cut) = (FieldTable::new(), FieldTable::new());
    let (head, length) = ResponseHead::parse(bytes, &mut table, to_head).ok()??;
    let own = &bytes[..length];
    assert!(own.ends_with(b"\n"));
    for cut in [1, length / 2, length - 1] {
        assert!(matches!(
            ResponseHead::parse(&own[..cut], &mut of_cut, to_head),
            Ok(None)
        ));
    }
    check(&head, to_head);
    if head.is_interim() {
        return Some(&bytes[length..]);
    }
    let mut body = bytes[length..].to_vec();
    let mut decoder = BodyDecoder::new(head.length);
    let (data, used) = decoder.decode(&mut body).ok()?;
    assert!(data <= used && used <= body.len());
    assert!(decoder.is_over() || used == body.len());
    let is_cut = !decoder.is_over() && decoder.end_of_connection().is_err();
    assert!(!is_cut || head.length != BodyLength::UntilClose);
    None
}

fn check(head: &ResponseHead<'_>, to_head: bool) {
    assert!((100..=999).contains(&head.status));
    assert!(!head.reason().contains(&b'\n') && !head.reason().contains(&b'\r'));
    let fields = head.fields();
    for (known, name, value) in fields.iter() {
        assert_eq!(known, FieldName::of(name));
        assert!(fields.has(known) && !name.is_empty());
        assert!(!value.contains(&b'\n') && !value.contains(&b'\r'));
    }
    let has_none = to_head || matches!(head.status, 100..200 | 204 | 304);
    assert_eq!(has_none, head.length == BodyLength::None);
    assert!(has_none || head.announced_length.is_none());
    let chunked = fields.has(FieldName::TransferEncoding);
    assert_eq!(chunked && !has_none, head.length == BodyLength::Chunked);
    assert!(!head.keeps_alive() || head.length != BodyLength::UntilClose);
}
