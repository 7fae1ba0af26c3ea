//! Builders of heads for unit tests.

use super::RequestHead;

/// Builds the head of a request from its first line and these fields.
pub(crate) fn head(line: &str, fields: &[(&str, &[u8])]) -> RequestHead {
    let mut bytes = format!("{line}\r\n").into_bytes();
    for (name, value) in fields {
        bytes.extend([name.as_bytes(), b": ", value, b"\r\n"].concat());
    }
    bytes.extend(b"\r\n");
    let (head, end) = RequestHead::parse(&bytes).unwrap().unwrap();
    assert_eq!(end, bytes.len());
    head
}

/// Builds the head of a request for `/` with these fields.
pub(crate) fn request(fields: &[(&str, &[u8])]) -> RequestHead {
    head("GET / HTTP/1.1", fields)
}

/// Builds a head from its lines, which end in `\n` here and in CR LF in the head.
pub(crate) fn bytes(lines: &str) -> Vec<u8> {
    format!("{}\r\n\r\n", lines.replace('\n', "\r\n")).into_bytes()
}
