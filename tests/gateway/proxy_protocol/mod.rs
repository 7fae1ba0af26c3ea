//! Tests of PROXY protocol bytes that no proxy sends.
//!
//! `tests/counterparts/haproxy` has real proxies.

mod abuse;

use std::net::SocketAddr;

use crate::support::Raw;
use crate::support::proxy_protocol::*;

/// Returns a header of version 2: a command, a protocol, and the rest.
fn binary(command: u8, protocol: u8, block: &[u8]) -> Vec<u8> {
    let length = u16::try_from(block.len()).expect("a short block");
    let fixed = [command, protocol];
    [
        &b"\r\n\r\n\0\r\nQUIT\n"[..],
        &fixed[..],
        &length.to_be_bytes(),
        block,
    ]
    .concat()
}

/// From `192.0.2.1:4711` to `198.51.100.2:443`.
const ADDRESSES: [u8; 12] = [192, 0, 2, 1, 198, 51, 100, 2, 0x12, 0x67, 0x01, 0xbb];
/// The same addresses as text.
const TEXT: &[u8] = b"PROXY TCP4 192.0.2.1 198.51.100.2 4711 443\r\n";

/// Returns the addresses that the origin received for a header and a request in one write.
fn received(to: SocketAddr, header: &[u8]) -> String {
    let mut client = Raw::connect(to);
    client.send([header, REQUEST].concat());
    let answer = client.answer();
    assert_eq!(answer.status(), 200, "{answer:?}");
    String::from_utf8(answer.body).expect("text")
}
