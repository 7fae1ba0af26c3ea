//! Tests of invalid server names, as bytes.
//!
//! `tests/counterparts/curl` has the names that openssl can send.

mod best;
mod two;

use std::io::{Read, Write};
use std::net::TcpStream;

use two::two_certificates;

use crate::support::secure::write_pair;
use crate::support::{Gateway, Origin, SOON, Site, assert_contains, eventually, one_zone};

/// Returns a first message with TLS 1.3's extensions, as far as a server reads before the name.
fn hello(name: &[u8]) -> Vec<u8> {
    let number = |number: usize| u16::try_from(number).expect("short").to_be_bytes();
    let sized = |bytes: &[u8]| [&number(bytes.len())[..], bytes].concat();
    let name = sized(&[&[0][..], &sized(name)].concat());
    let extensions = [
        // Supported versions, groups, signature schemes, and the name.
        &[0, 43, 0, 3, 2, 3, 4][..],
        &[0, 10, 0, 4, 0, 2, 0, 29],
        &[0, 13, 0, 4, 0, 2, 4, 3],
        &[0, 0],
        &sized(&name),
    ]
    .concat();
    let body = [
        &[3, 3][..],
        &[7; 32],
        &[0],
        &[0, 2, 0x13, 1],
        &[1, 0],
        &sized(&extensions),
    ]
    .concat();
    let message = [&[1, 0][..], &sized(&body)].concat();
    [&[22, 3, 1][..], &sized(&message)].concat()
}

#[test]
fn a_name_of_any_bytes_is_refused_and_not_written_into_the_log() {
    let origin = Origin::start();
    let gateway = two_certificates(&origin);
    let mut client = TcpStream::connect(gateway.address()).expect("a connection");
    client.set_read_timeout(Some(SOON)).expect("a timeout");
    client
        .write_all(&hello(b"a\" x\n\xff\x1b[1m"))
        .expect("it reads");
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).expect("it closes");
    // A fatal alert: illegal_parameter.
    assert_eq!(answer, [21, 3, 3, 0, 2, 2, 47]);
    let line = gateway.wait_for_line("a TLS handshake failed");
    let end = "error=peer misbehaved: ServerNameMustContainOneHostName hidden=0";
    assert!(line.ends_with(end), "{line}");
    let labels = [("reason", "server_name")];
    let failed = || gateway.count("drip_tls_handshake_failures_total", &labels);
    eventually("it is counted", || failed() == 1);
}

#[test]
fn a_client_without_tls_is_logged_at_debug() {
    let origin = Origin::start();
    let site = Site::new();
    write_pair(site.folder(), "a", &["a.test"]);
    let rest =
        "[server.tls]\ncert = \"a.pem\"\nkey = \"a.key\"\n[log]\nlevel = \"debug\"\n".to_owned();
    site.write(&(rest + &one_zone(&origin, "1000r/s", "burst = 9")));
    let gateway = Gateway::start_at(site);
    let mut client = TcpStream::connect(gateway.address()).expect("a connection");
    client
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        .expect("it reads");
    let line = gateway.wait_for_line("a TLS handshake failed");
    assert_contains!(line, "DEBUG");
}
