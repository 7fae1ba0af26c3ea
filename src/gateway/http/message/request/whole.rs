//! Converts a conditional or range request to one for the whole resource.
//!
//! A refresh of a shared answer sends it.

use super::{Field, FieldName, RequestHead, Span, fields};

impl RequestHead {
    /// Returns the `GET` request for the whole resource, without preconditions and ranges.
    pub fn to_whole(&self) -> Self {
        let mut bytes = self.bytes.to_vec();
        // The old method stays in the bytes, without a range.
        let method = Span::append(&mut bytes, b"GET");
        let is_kept = |field: &&Field| field.known != FieldName::Precondition;
        let table: Box<[Field]> = self.table.iter().filter(is_kept).copied().collect();
        Self {
            bytes: bytes.into(),
            present: fields::present_names(&table),
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
        let whole = head.to_whole();
        assert_eq!(
            (whole.method(), whole.target()),
            (&b"GET"[..], &b"/a?b"[..])
        );
        let names = whole.fields().iter().map(|(_, name, _)| name);
        assert!(names.eq([&b"Host"[..], b"Accept"]));
        assert_eq!(whole.named_host(), Some(&b"h"[..]));
    }
}
