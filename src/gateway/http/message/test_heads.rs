//! Builders of request heads for unit tests.

use super::RequestHead;

/// Builds the head of a request from its first line and these fields.
pub(crate) fn head(line: &str, fields: &[(&str, &[u8])]) -> RequestHead {
    let mut bytes = format!("{line}\r\n").into_bytes();
    for (name, value) in fields {
        bytes.extend([name.as_bytes(), b": ", value, b"\r\n"].concat());
    }
    bytes.extend(b"\r\n");
    let parsed = RequestHead::parse(&bytes);
    let (head, end) = parsed.unwrap().unwrap();
    assert_eq!(end, bytes.len());
    head
}

/// Builds the head of a request for `/` with these fields.
pub(crate) fn request(fields: &[(&str, &[u8])]) -> RequestHead {
    head("GET / HTTP/1.1", fields)
}
