//! Builders of request heads and peers for unit tests.

use std::net::{IpAddr, SocketAddr};

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

/// Parses the address of a client, such as `192.0.2.1:80`.
pub(crate) fn peer_address(text: &str) -> (IpAddr, u16) {
    let address: SocketAddr = text.parse().expect("an address and a port");
    (address.ip(), address.port())
}
