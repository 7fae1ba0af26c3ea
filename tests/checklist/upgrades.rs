//! Checklist line 18: WebSocket upgrades, accepted or refused.

use super::bed::{GET, MS, OK, Testbed, each, get_with, haproxy_and_drip, noise};
use crate::support::{End, Raw, eventually, now};

pub const WEBSOCKET: &str = "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
     Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
pub const SWITCHED: &str = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
     Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

fn switching() -> impl Iterator<Item = Testbed> {
    each([
        || {
            Testbed::nginx(
                "map $http_upgrade $hop { default upgrade; '' ''; } \
                 proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection $hop;",
            )
        },
        || Testbed::haproxy(""),
        || Testbed::drip("", "response_timeout = \"300ms\""),
    ])
}

/// Returns both ends of a WebSocket.
///
/// The client sends `early` with its head, the origin `first` with its 101.
fn switched(bed: &Testbed, early: &str, first: &str) -> (Raw, Raw) {
    let mut client = bed.ask(get_with(WEBSOCKET) + early);
    let mut origin = bed.origin.accept();
    let seen = origin.head();
    assert_eq!(seen.field("upgrade"), Some("websocket"));
    let connection = seen
        .field("connection")
        .unwrap_or_default()
        .to_ascii_lowercase();
    assert!(connection.contains("upgrade"), "{seen:?}");
    let key = seen.field("sec-websocket-key");
    assert_eq!(key, Some("dGhlIHNhbXBsZSBub25jZQ=="));
    origin.send(format!("{SWITCHED}{first}"));
    let received = client.head();
    assert_eq!(received.status(), 101);
    assert_eq!(received.field("upgrade"), Some("websocket"));
    let connection = received.field("connection").unwrap_or_default();
    assert!(connection.eq_ignore_ascii_case("upgrade"), "{received:?}");
    let accept = received.field("sec-websocket-accept");
    assert_eq!(accept, Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
    assert!(!received.has("content-length") && !received.has("transfer-encoding"));
    (client, origin)
}

#[test]
fn line_18_bytes_pass_both_ways_after_a_101() {
    for bed in switching() {
        let (mut client, mut origin) = switched(&bed, "", "");
        for piece in [noise(1), noise(100_000), b"GET / HTTP/1.1\r\n\r\n".to_vec()] {
            client.send(&piece);
            assert!(origin.exactly(piece.len()) == piece, "to the origin");
            origin.send(&piece);
            assert!(client.exactly(piece.len()) == piece, "to the client");
        }
        // A WebSocket may be silent for longer than a response may take.
        client.stays_quiet(700 * MS);
        origin.send("later");
        assert_eq!(client.exactly(5), b"later");
    }
}

#[test]
fn line_18_bytes_that_come_with_the_101_or_right_behind_the_head_are_not_lost() {
    for bed in switching() {
        let (mut client, _origin) = switched(&bed, "", "first");
        assert_eq!(client.exactly(5), b"first");
        let (mut client, mut origin) = switched(&bed, "early", "first");
        assert_eq!(client.exactly(5), b"first");
        assert_eq!(origin.exactly(5), b"early");
    }
}

#[test]
fn line_18_either_ends_end_is_the_others() {
    for bed in switching() {
        let (mut client, mut origin) = switched(&bed, "", "");
        origin.send("bye");
        drop(origin);
        assert_eq!(client.end(), (b"bye".to_vec(), End::Closed));
        let (mut client, mut open) = switched(&bed, "", "");
        client.send("bye");
        drop(client);
        assert_eq!(open.end().0, b"bye");
    }
}

#[test]
fn line_18_a_refusal_is_an_answer_and_the_connection_goes_on() {
    for bed in switching() {
        for refusal in [
            "403 Forbidden\r\nContent-Length: 2\r\n\r\nno",
            "426 Upgrade Required\r\nUpgrade: websocket\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n",
            "200 OK\r\nContent-Length: 2\r\n\r\nno",
        ] {
            let mut passed = bed.pass(get_with(WEBSOCKET), format!("HTTP/1.1 {refusal}"));
            let received = passed.client.answer();
            let has_status = refusal.starts_with(&received.status().to_string());
            assert!(has_status, "{received:?}");
            assert_eq!(received.body, b"no", "{refusal}");
            drop(passed.origin);
            passed.client.send(GET);
            let mut origin = bed.origin.accept();
            assert!(!origin.head().has("upgrade"));
            origin.send(OK);
            assert_eq!(passed.client.answer().body, b"ok", "after {refusal}");
        }
    }
}

#[test]
fn line_18_an_upgrade_waits_for_its_slot_and_holds_its_permit_to_the_end() {
    let zone = "[zones.z]\nkey = \"$remote_addr\"\nrate = \"2r/s\"";
    let limits = "limits = [{ zone = \"z\", burst = 5 }]";
    let mut bed = Testbed::limited_drip("", "max_in_flight = 2", zone, limits);
    let one = switched(&bed, "", "");
    let since = now();
    let other = switched(&bed, "", "");
    assert!(since.elapsed() > 300 * MS, "{:?}", since.elapsed());
    let mut in_flight = || bed.gateway().in_flight();
    assert_eq!(in_flight(), 2);
    drop(one);
    eventually("one slot is free", || in_flight() == 1);
    drop(other);
    eventually("both are", || in_flight() == 0);
}

#[test]
fn line_18_http_1_0_and_http_2_are_not_upgraded() {
    // nginx and haproxy forward the upgrade.
    let bed = Testbed::drip("", "");
    for request in [
        "GET / HTTP/1.0\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n".to_owned(),
        get_with(
            "Connection: upgrade, http2-settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n",
        ),
        get_with("Connection: upgrade\r\nUpgrade: websocket, h2c\r\n"),
    ] {
        let seen = bed.seen(&request);
        let is_passed = seen.has("upgrade") || seen.has("http2-settings");
        assert!(!is_passed, "{request}");
    }
}

#[test]
fn line_18_a_101_that_nobody_asked_for_or_to_another_protocol_is_a_bad_answer() {
    let check = |bed: &Testbed, request: &str| {
        assert_eq!(bed.pass(request, SWITCHED).client.answer().status(), 502);
    };
    // nginx passes it on.
    for bed in haproxy_and_drip() {
        check(&bed, GET);
    }
    // nginx and haproxy trust the origin.
    let other = get_with("Connection: upgrade\r\nUpgrade: other\r\n");
    check(&Testbed::drip("", ""), &other);
}
