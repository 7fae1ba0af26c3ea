//! Converts a conditional or range request to one for the whole resource.

use super::{Field, RequestHead, Span, fields};

/// Returns whether a field is a precondition or a range (RFC 9110, sections 13 and 14).
fn is_for_less(name: &[u8]) -> bool {
    let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
    is(b"range")
        || is(b"if-range")
        || is(b"if-match")
        || is(b"if-none-match")
        || is(b"if-modified-since")
        || is(b"if-unmodified-since")
}

impl RequestHead {
    /// Returns the `GET` request for the whole resource, without preconditions and ranges.
    pub fn whole(&self) -> Self {
        let mut bytes = self.bytes.to_vec();
        let method = Span::written(&mut bytes, b"GET");
        let is_kept = |field: &&Field| !is_for_less(field.name().in_bytes(&self.bytes));
        let table: Box<[Field]> = self.table.iter().filter(is_kept).copied().collect();
        Self {
            bytes: bytes.into(),
            present: fields::present(&table),
            table,
            method,
            ..*self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_for_a_part_becomes_one_for_the_whole() {
        let text = b"HEAD /a?b HTTP/1.1\r\nHost: h\r\nIf-None-Match: \"x\"\r\nRange: bytes=0-1\r\n\
            If-Range: \"x\"\r\nAccept: */*\r\nif-modified-since: x\r\n\r\n";
        let (head, _) = RequestHead::parse(text).unwrap().unwrap();
        let whole = head.whole();
        assert_eq!(
            (whole.method(), whole.target()),
            (&b"GET"[..], &b"/a?b"[..])
        );
        let names: Vec<_> = whole.fields().iter().map(|(_, name, _)| name).collect();
        assert_eq!(names, [&b"Host"[..], b"Accept"]);
        assert_eq!(whole.named_host(), Some(&b"h"[..]));
    }
}
