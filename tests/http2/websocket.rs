//! Tests of `WebSocket`s over HTTP/2 (RFC 8441) to an origin over HTTP/1, in frames.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::thread;
use std::time::Duration;

use crate::support::frames::{
    DATA, END_STREAM, Frames, INITIAL_WINDOW_SIZE, Outcome, RST_STREAM, frame, head, reset,
    settings, window_update,
};
use crate::support::noise;
use crate::support::{Gateway, Raw, RawOrigin, SOON, fetch, one_origin};

const CANCEL: u32 = 8;
const SWITCHED: &str = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n\
     Upgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\n";

/// Starts drip in front of a raw origin, with further fields of the origin.
fn drip(more: &str) -> (RawOrigin, Gateway) {
    let origin = RawOrigin::start();
    let more = format!("max_in_flight = 10\n{more}");
    let gateway = Gateway::start(&one_origin(origin.address, "workers = 1", &more));
    (origin, gateway)
}

/// Opens a WebSocket on a new connection, with more fields.
fn open(gateway: &Gateway, more: &[(&str, &str)]) -> Frames {
    let mut client = Frames::connect(gateway.address());
    let mut fields = vec![
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        (":scheme", "http"),
        (":authority", "test"),
        (":path", "/chat"),
        ("sec-websocket-version", "13"),
    ];
    fields.extend(more);
    client.send(head(1, 0, &fields)).expect("the gateway reads");
    client
}

/// Returns an open WebSocket: the client and the origin's end.
fn opened(origin: &RawOrigin, gateway: &Gateway) -> (Frames, Raw) {
    let mut client = open(gateway, &[]);
    let mut at_origin = origin.accept();
    let seen = at_origin.head();
    assert_eq!(seen.line, "GET /chat HTTP/1.1");
    assert_eq!(seen.field("upgrade"), Some("websocket"));
    assert_eq!(seen.field("host"), Some("test"));
    assert_eq!(seen.field("sec-websocket-key").map(str::len), Some(24));
    at_origin.send(SWITCHED);
    assert_eq!(client.outcome(1), Outcome::Status(200));
    (client, at_origin)
}

#[test]
fn small_and_large_messages_pass_both_ways() {
    let (origin, gateway) = drip("");
    let (mut client, mut at_origin) = opened(&origin, &gateway);
    client.send(frame(DATA, 0, 1, "hello")).expect("it reads");
    assert_eq!(at_origin.exactly(5), b"hello");
    at_origin.send("world");
    assert_eq!(client.next().expect("a piece").payload, b"world");
    // More than all windows together.
    let large = noise(1 << 20);
    client.send(window_update(0, 1 << 24)).expect("it reads");
    client.send(window_update(1, 1 << 24)).expect("it reads");
    let (mut sender, expected) = (at_origin.sender(), large.clone());
    let sending = thread::spawn(move || sender.write_all(&expected));
    let mut came = Vec::new();
    while came.len() < large.len() {
        came.extend(client.next().expect("a piece").payload);
    }
    assert!(came == large, "other bytes came");
    sending
        .join()
        .expect("no panic")
        .expect("the gateway reads");
    // Within the windows that the gateway gives: 256 KB, and more as bytes are read.
    for piece in large[..200_000].chunks(16_000) {
        client.send(frame(DATA, 0, 1, piece)).expect("it reads");
    }
    let passed = at_origin.exactly(200_000);
    assert!(passed == large[..200_000], "other bytes came");
}

#[test]
fn either_side_may_close_and_the_permit_is_freed() {
    let (origin, gateway) = drip("");
    let (mut client, mut at_origin) = opened(&origin, &gateway);
    assert_eq!(gateway.in_flight(), 1);
    client
        .send(frame(DATA, END_STREAM, 1, "bye"))
        .expect("it reads");
    let (came, _) = at_origin.end();
    assert_eq!(came, b"bye");
    at_origin.send("bye too");
    drop(at_origin);
    assert_eq!(client.body(1), Ok(b"bye too".to_vec()));
    gateway.wait_in_flight(0);

    let (mut client, at_origin) = opened(&origin, &gateway);
    let mut sender = at_origin.sender();
    sender.write_all(b"bye").expect("it reads");
    sender
        .shutdown(Shutdown::Write)
        .expect("an open connection");
    assert_eq!(client.body(1), Ok(b"bye".to_vec()));
    client
        .send(frame(DATA, END_STREAM, 1, "bye too"))
        .expect("it reads");
    let mut rest = String::new();
    sender.set_read_timeout(Some(SOON)).expect("a timeout");
    sender.read_to_string(&mut rest).expect("the end");
    assert_eq!(rest, "bye too");
    gateway.wait_in_flight(0);
}

#[test]
fn a_client_that_resets_its_stream_or_leaves_closes_the_connection_to_the_origin() {
    let (origin, gateway) = drip("");
    let (mut client, mut at_origin) = opened(&origin, &gateway);
    client.send(reset(1, CANCEL)).expect("it reads");
    at_origin.end();
    gateway.wait_in_flight(0);
    // The same before the origin has answered.
    let mut client = open(&gateway, &[]);
    let mut at_origin = origin.accept();
    at_origin.head();
    client.send(reset(1, CANCEL)).expect("it reads");
    at_origin.end();
    gateway.wait_in_flight(0);
    let (client, mut at_origin) = opened(&origin, &gateway);
    drop(client);
    at_origin.end();
    gateway.wait_in_flight(0);
    // If the origin breaks off, the stream is reset or ends.
    let (mut client, at_origin) = opened(&origin, &gateway);
    at_origin.reset();
    let last = client.next().expect("an end");
    assert!(last.kind == RST_STREAM || last.ends_stream(), "{last:?}");
    gateway.wait_in_flight(0);
}

#[test]
fn what_is_no_switch_opens_no_websocket() {
    let (origin, gateway) = drip("");
    let refused = |answer: &str| {
        let mut client = open(&gateway, &[]);
        let mut at_origin = origin.accept();
        at_origin.head();
        at_origin.send(answer);
        let outcome = client.outcome(1);
        drop(at_origin);
        gateway.wait_in_flight(0);
        outcome
    };
    let forbidden = "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno";
    assert_eq!(refused(forbidden), Outcome::Status(403));
    let moved = refused("HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(moved, Outcome::Status(302));
    // Over HTTP/2 any 2xx would open the WebSocket, and the page would be taken for messages.
    for status in ["200 OK", "201 Created", "204 No Content", "299 Odd"] {
        let page = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
        assert_eq!(refused(&page), Outcome::Status(502), "{status}");
    }
    let other = SWITCHED.replace("websocket", "chat");
    assert_eq!(refused(&other), Outcome::Status(502));
}

#[test]
fn an_opening_with_a_length_or_of_another_protocol_is_refused() {
    let (origin, gateway) = drip("");
    let received = |fields: &[(&str, &str)]| {
        let mut client = Frames::connect(gateway.address());
        client.send(head(1, 0, fields)).expect("it reads");
        // Bytes that would be the body of the request over HTTP/1.
        let _sent = client.send(frame(DATA, 0, 1, "hello"));
        client.outcome(1)
    };
    let opening = [
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        (":scheme", "http"),
        (":authority", "test"),
        (":path", "/chat"),
    ];
    let with = |length| [&opening[..], &[("content-length", length)]].concat();
    assert_eq!(received(&with("5")), Outcome::Status(400));
    let outcome = received(&with("0"));
    let is_refused = matches!(outcome, Outcome::Status(400) | Outcome::Reset(_));
    assert!(is_refused, "{outcome:?}");
    let mut fields = opening;
    fields[1].1 = "connect-udp";
    assert_eq!(received(&fields), Outcome::Status(405));
    let plain = [(":method", "CONNECT"), (":authority", "test:80")];
    assert_eq!(received(&plain), Outcome::Status(405));
    let without_path = &opening[..4];
    assert!(matches!(received(without_path), Outcome::Reset(_)));
    // None of them reached the origin.
    let next = thread::spawn({
        let address = gateway.address();
        move || fetch(address, "/next").status
    });
    let mut at_origin = origin.accept();
    assert_eq!(at_origin.head().target(), "/next");
    at_origin.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(next.join().expect("no panic"), 200);
}

#[test]
fn a_client_that_reads_nothing_holds_no_more_than_a_few_buffers() {
    let (origin, gateway) = drip("tunnel_timeout = \"2s\"");
    let mut client = open(&gateway, &[]);
    client
        .send(settings(&[(INITIAL_WINDOW_SIZE, 0)]))
        .expect("it reads");
    let mut at_origin = origin.accept();
    at_origin.head();
    at_origin.send(SWITCHED);
    let before = gateway.peak_memory();
    let mut sender = at_origin.sender();
    sender
        .set_write_timeout(Some(Duration::from_secs(1)))
        .expect("a timeout");
    let piece = vec![b'x'; 1 << 20];
    let sent = (0..64)
        .take_while(|_| sender.write_all(&piece).is_ok())
        .count();
    assert!(sent < 32, "{sent} MB were taken");
    let grown = gateway.peak_memory() - before;
    assert!(grown < 8 << 20, "{grown} bytes more");
    gateway.wait_in_flight(0);
}
