//! Tests of PROXY protocol headers: in pieces, invalid, missing, or from untrusted peers.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use rustix::process::Signal;

use super::*;
use crate::support::process::Process;
use crate::support::{MS, SOON, assert_contains, eventually, now};

/// Returns a valid header of each version.
fn both() -> [Vec<u8>; 2] {
    [TEXT.to_vec(), binary(0x21, 0x11, &ADDRESSES)]
}

/// Fails unless the gateway closes the connection at once, without a byte.
fn assert_closed(client: &mut Raw, what: &str) {
    let (bytes, _how) = client.end();
    assert_eq!(String::from_utf8_lossy(&bytes), "", "{what}");
}

#[test]
fn a_header_names_the_client_for_everything_on_its_connection() {
    let origin = echo_origin();
    let more = "trusted_proxies = [\"192.0.2.1\"]";
    let (gateway, _) = gateway(&origin, "\"127.0.0.1\"", more);
    for header in both() {
        let mut client = Raw::connect(gateway.address());
        client.send([&header[..], REQUEST, REQUEST].concat());
        for _ in 0..2 {
            assert_eq!(client.answer().body, b"192.0.2.1");
        }
        // The peer is the one in the header, and it is trusted.
        let forwarded = b"GET / HTTP/1.1\r\nHost: test\r\nX-Forwarded-For: 203.0.113.9\r\n\r\n";
        client.send(forwarded);
        assert_eq!(client.answer().body, b"203.0.113.9, 192.0.2.1");
        assert!(has_key(&gateway, "192.0.2.1 443"));
        assert!(has_key(&gateway, "203.0.113.9 443"));
    }
    let six = b"PROXY TCP6 2001:db8::1 2001:db8::2 4711 8443\r\n";
    assert_eq!(received(gateway.address(), six), "2001:db8::1");
    assert!(has_key(&gateway, "2001:db8:: 8443"));
    let mapped = b"PROXY TCP6 ::ffff:192.0.2.7 ::1 4711 8443\r\n";
    assert_eq!(received(gateway.address(), mapped), "192.0.2.7");
}

#[test]
fn the_proxy_itself_is_not_trusted_for_what_its_client_writes() {
    let origin = echo_origin();
    let more = "trusted_proxies = [\"127.0.0.1\"]";
    let (gateway, _) = gateway(&origin, "\"127.0.0.1\"", more);
    let mut client = Raw::connect(gateway.address());
    client.send(TEXT);
    client.send(b"GET / HTTP/1.1\r\nHost: test\r\nX-Forwarded-For: 203.0.113.9\r\n\r\n");
    assert_eq!(client.answer().body, b"192.0.2.1");
    assert!(has_key(&gateway, "192.0.2.1 443"));
}

#[test]
fn a_header_without_ip_addresses_keeps_those_of_the_connection() {
    let origin = echo_origin();
    let (gateway, _) = gateway(&origin, "\"127.0.0.1\"", "");
    for header in [
        b"PROXY UNKNOWN 192.0.2.1 198.51.100.2 4711 443\r\n".to_vec(),
        binary(0x20, 0x11, &ADDRESSES),
        binary(0x21, 0x31, &[b'a'; 216]),
    ] {
        let shown = header.escape_ascii();
        assert_eq!(received(gateway.address(), &header), "127.0.0.1", "{shown}");
    }
    let own = format!("127.0.0.1 {}", gateway.address().port());
    assert!(has_key(&gateway, &own));
    assert!(!has_key(&gateway, "192.0.2.1 443"));
}

#[test]
fn a_header_in_pieces_loses_no_byte_behind_it() {
    let origin = echo_origin();
    let (gateway, _) = gateway(&origin, "\"127.0.0.1\", \"unix:\"", "");
    let socket = gateway.site.folder().join("drip.sock");
    let mut headers = Vec::from(both());
    // The longest header: its further fields arrive in many segments.
    let field = [&[4, 0x0f, 0xe1][..], &[7; 0x0fe1]].concat();
    headers.push(binary(0x21, 0x11, &[&ADDRESSES[..], &field].concat()));
    assert_eq!(headers[2].len(), 4096);
    let body = "0123456789".repeat(1000);
    let fields = format!(
        "Host: test\r\nContent-Length: {}\r\nConnection: close",
        body.len()
    );
    let post = format!("POST / HTTP/1.1\r\n{fields}\r\n\r\n{body}");
    for header in headers {
        let whole = [&header[..], post.as_bytes()].concat();
        let end = header.len();
        for cut in [1, 5, 13, 16, 20, end - 1, end, end + 1] {
            let mut client = Raw::connect(gateway.address());
            client.send(&whole[..cut]);
            std::thread::sleep(5 * MS);
            client.send(&whole[cut..]);
            assert_eq!(client.answer().body, b"192.0.2.1", "{cut}");
        }
        if end < 4096 {
            let mut client = Raw::connect(gateway.address());
            client.send_byte_by_byte([&header[..], REQUEST].concat());
            assert_eq!(client.answer().body, b"192.0.2.1");
        }
        let mut client = UnixStream::connect(&socket).expect("a connection");
        for piece in whole[..end + 20].chunks(1).chain([&whole[end + 20..]]) {
            client.write_all(piece).expect("sent");
        }
        let mut answer = String::new();
        client.read_to_string(&mut answer).expect("an answer");
        assert!(answer.ends_with("\r\n\r\n192.0.2.1"), "{answer}");
    }
    assert!(has_key(&gateway, "192.0.2.1 443"));
}

/// An invalid header closes the connection, and the log says why.
///
/// The unit tests of the header cover all kinds of invalid bytes.
#[test]
fn a_wrong_header_closes_the_connection_and_the_log_says_why() {
    let origin = echo_origin();
    let long = format!("PROXY UNKNOWN {}\r\n", "a".repeat(92)).into_bytes();
    for (header, why) in [
        (REQUEST.to_vec(), "it begins with something else"),
        (b"\x16\x03\x01\0\x05hello".to_vec(), "something else"),
        (long, "it is too long"),
        (
            b"PROXY UNKNOWN\n".to_vec(),
            "its line does not end with CR and LF",
        ),
        (binary(0x41, 0x11, &ADDRESSES), "unknown version or command"),
        (binary(0x20, 0, &[0; 5000]), "it is too long"),
        (
            b"PROXY TCP4 1.2.3.4".to_vec(),
            "the connection ended within it",
        ),
    ] {
        let (gateway, _) = gateway(&origin, "\"127.0.0.1\"", "");
        let began = now();
        for _ in 0..4 {
            let mut client = Raw::connect(gateway.address());
            // The gateway may close before all bytes are sent.
            let _closed = client.try_send(&header);
            if why.contains("ended") {
                client.shut_sending();
            } else {
                let _closed = client.try_send(REQUEST);
            }
            assert_closed(&mut client, why);
        }
        let line = gateway.wait_for_line("PROXY protocol");
        assert_contains!(line, "WARN", "127.0.0.1:", why);
        // At most one line in each second of the gateway's clock: two may follow each other.
        let lines = gateway.log().matches("PROXY protocol").count() as u64;
        assert!(lines <= 2 + began.elapsed().as_secs(), "{}", gateway.log());
    }
    assert_eq!(origin.arrivals().len(), 0);
}

#[test]
fn nobody_else_is_read_for_a_header() {
    let origin = echo_origin();
    let (gateway, _) = gateway(&origin, "\"127.0.0.9\", \"unix:\"", "");
    for header in both() {
        let mut client = Raw::connect(gateway.address());
        client.send([&header[..], REQUEST].concat());
        assert_eq!(client.answer().status(), 400);
        assert_eq!(client.end().0, b"");
    }
    assert_eq!(received(gateway.address(), b""), "127.0.0.1");
    assert_eq!(origin.arrivals().len(), 1);
    assert!(!gateway.log().contains("PROXY protocol"));
    // Programs at a socket file are listed here, and must send it.
    let socket = gateway.site.folder().join("drip.sock");
    let mut client = UnixStream::connect(&socket).expect("a connection");
    client.write_all(REQUEST).expect("sent");
    let mut answer = Vec::new();
    // A reset ends the connection, too.
    let _reset = client.read_to_end(&mut answer);
    assert_eq!(answer, b"");
    let line = gateway.wait_for_line("PROXY protocol");
    assert_contains!(line, "unix:");
}

#[test]
fn a_header_that_does_not_come_in_time_ends_the_connection() {
    let origin = echo_origin();
    let (gateway, tls) = gateway(&origin, "\"127.0.0.1\"", "header_timeout = \"500ms\"");
    let began = now();
    let mut clients = Vec::new();
    for to in [gateway.address(), tls] {
        for header in both() {
            for part in [&header[..0], &header[..1], &header[..header.len() - 1]] {
                let mut client = Raw::connect(to);
                client.send(part);
                clients.push(client);
            }
        }
    }
    for client in &mut clients {
        assert_closed(client, "a part");
        assert!(began.elapsed() >= 450 * MS);
    }
    let line = gateway.wait_for_line("PROXY protocol");
    assert_contains!(line, "within header_timeout");
    // After the header, the request head has the same time again, and its own response.
    let mut client = Raw::connect(gateway.address());
    client.send(TEXT);
    assert_eq!(client.answer().status(), 408);
}

#[test]
fn parts_of_headers_cost_nothing_while_the_rest_is_awaited() {
    let origin = echo_origin();
    let (gateway, _) = gateway(&origin, "\"127.0.0.1\"", "");
    let waiting = (0..50).map(|_| {
        let mut client = Raw::connect(gateway.address());
        client.send(&TEXT[..20]);
        client
    });
    let mut waiting: Vec<Raw> = waiting.collect();
    // All of them are processed before the load is measured.
    assert_eq!(received(gateway.address(), TEXT), "192.0.2.1");
    let load = Process::of(gateway.id()).load();
    let is_idle = load < 0.3;
    assert!(is_idle, "{load} of a core, for connections that only wait");
    for client in &mut waiting {
        client.send([&TEXT[20..], REQUEST].concat());
        assert_eq!(client.answer().body, b"192.0.2.1");
    }
    // A connection that ends after a part of a header is closed at once, without a busy loop.
    for client in &waiting {
        client.shut_sending();
    }
    let mut client = Raw::connect(gateway.address());
    client.send(&TEXT[..20]);
    client.shut_sending();
    let began = now();
    assert_closed(&mut client, "a part");
    assert!(began.elapsed() < SOON);
}

#[test]
fn connections_without_a_header_do_not_hold_up_a_stop() {
    let origin = echo_origin();
    let more = "shutdown_timeout = \"1m\"\nheader_timeout = \"1m\"";
    let (mut gateway, _) = gateway(&origin, "\"127.0.0.1\"", more);
    let mut silent = Raw::connect(gateway.address());
    let mut late = Raw::connect(gateway.address());
    late.send(&TEXT[..20]);
    // Both were accepted before this one is answered.
    for _ in 0..8 {
        assert_eq!(received(gateway.address(), TEXT), "192.0.2.1");
    }
    gateway.signal(Signal::TERM);
    late.send([&TEXT[20..], REQUEST].concat());
    assert_eq!(late.answer().status(), 200);
    assert_closed(&mut silent, "nothing was sent");
    assert!(gateway.wait(2 * SOON).success());
}

#[test]
fn a_changed_list_holds_for_new_connections() {
    let origin = echo_origin();
    let (gateway, tls) = gateway(&origin, "", "");
    let mut old = Raw::connect(gateway.address());
    old.send(REQUEST);
    assert_eq!(old.answer().body, b"127.0.0.1");
    let changed = text(&gateway.site, tls, &origin, "\"127.0.0.0/8\"", "");
    fs::write(gateway.site.file(), changed).expect("a file");
    gateway.wait_for_line("the changed file is in force");
    eventually("the header is read", || {
        let mut client = Raw::connect(gateway.address());
        client.send([TEXT, REQUEST].concat());
        let answer = client.try_answer_to("GET", SOON);
        answer.is_ok_and(|answer| answer.body == b"192.0.2.1")
    });
    old.send(REQUEST);
    assert_eq!(old.answer().body, b"127.0.0.1");
    assert!(!gateway.log().contains("needs a restart"));
}
