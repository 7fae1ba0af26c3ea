//! Tests of the room with HTTP/2, gRPC, `WebSocket` and HTTP/1.0 clients.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{Visitor, counted, full_shop, number};
use crate::support::secure;
use crate::support::{Client, Gateway, Origin, Raw, RawOrigin, http2};

#[test]
fn over_http_2_it_is_the_same() {
    let origin = Origin::start();
    let gateway = Gateway::start(&full_shop(origin.address, ""));
    let at = gateway.address();
    let first = http2::get(at, &[]);
    assert_eq!(first.status, 200);
    let session = first.field("drip-session").expect("a session").to_owned();
    let cookie = format!("drip_room_shop={session}; Path=/; HttpOnly; SameSite=Lax");
    assert_eq!(first.field("set-cookie"), Some(&*cookie));
    let waits = http2::get(at, &[("accept", "application/json")]);
    assert_eq!(waits.status, 429);
    let ticket = waits.field("drip-ticket").expect("a ticket").to_owned();
    assert!(waits.text().contains(&ticket), "{waits:?}");
    let again = http2::get(at, &[("drip-ticket", &ticket)]);
    assert_eq!(again.field("drip-ticket"), Some(&*ticket));
    let posted = http2::fetch(at, "POST", "/", &[], &vec![b'x'; 100_000]).answer;
    assert_eq!(posted.status, 429);
    let head = http2::fetch(at, "HEAD", "/", &[], b"").answer;
    assert_eq!(number(head.field("drip-ticket").expect("a ticket")), 4);
    for field in [
        ("drip-session", &*session),
        ("cookie", &format!("a=b; drip_room_shop={session}")),
    ] {
        let answer = http2::get(at, &[field]);
        assert_eq!((answer.status, answer.field("set-cookie")), (200, None));
    }
    // The same session over both.
    let mut visitor = Visitor {
        session: Some(session),
        ticket: None,
    };
    assert!(visitor.is_inside(at));
    assert_eq!(counted(&gateway, "walked_in"), 1);
    // A client of HTTP/1.0 waits as well.
    let mut client = Client::connect(at);
    client.send(b"GET / HTTP/1.0\r\n\r\n");
    let answer = client.answer();
    assert_eq!(answer.status, 429);
    assert!(answer.field("drip-ticket").is_some());
}

#[test]
fn a_grpc_call_gets_a_retry_time_and_its_ticket() {
    let origin = Origin::start();
    let gateway = Gateway::start(&full_shop(origin.address, ""));
    let at = gateway.address();
    let mut inside = Visitor::walk_in(at);
    let call = [("content-type", "application/grpc"), ("te", "trailers")];
    let ask = |fields: &[(&str, &str)]| http2::fetch(at, "POST", "/", fields, b"12345").answer;
    let waits = ask(&call);
    assert_eq!(waits.status, 200);
    assert_eq!(waits.field("content-type"), Some("application/grpc"));
    // RESOURCE_EXHAUSTED
    assert_eq!(waits.field("grpc-status"), Some("8"), "{waits:?}");
    assert!(waits.number("grpc-retry-pushback-ms") >= 2000);
    let ticket = waits.field("drip-ticket").expect("a ticket").to_owned();
    let poll = [&call[..], &[("drip-ticket", &ticket), ("drip-poll", "1")]].concat();
    assert_eq!(ask(&poll).field("drip-ticket"), Some(&*ticket));
    assert!(inside.is_inside(at));
}

const UPGRADE: &str = "Connection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                       Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
const SWITCHED: &str =
    "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";

#[test]
fn a_websocket_needs_a_session_too() {
    let origin = RawOrigin::start();
    let gateway = Gateway::start(&full_shop(origin.address, ""));
    let at = gateway.address();
    let open = |more: &str| {
        let mut client = Raw::connect(at);
        client.send(format!(
            "GET /chat HTTP/1.1\r\nHost: a\r\n{UPGRADE}{more}\r\n"
        ));
        client
    };
    let begin = |mut client: Raw| {
        let mut at_origin = origin.accept();
        at_origin.head();
        at_origin.send(SWITCHED);
        let head = client.head();
        assert_eq!(head.status(), 101);
        client.send("ping");
        assert_eq!(at_origin.exactly(4), b"ping");
        head
    };
    let head = begin(open(""));
    let session = head.field("drip-session").expect("a session").to_owned();
    assert!(head.field("set-cookie").is_some(), "{head:?}");
    let mut waits = open("");
    let answer = waits.answer();
    assert_eq!(answer.status(), 429);
    assert!(answer.has("drip-ticket"), "{answer:?}");
    waits.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(waits.answer().status(), 429, "the connection stays open");
    let head = begin(open(&format!("Cookie: drip_room_shop={session}\r\n")));
    assert!(!head.has("set-cookie"), "{head:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn over_tls_cookies_are_secure() {
    let origin = Origin::start();
    let gateway = secure::gateway("", &full_shop(origin.address, ""));
    for expected in ["drip_room_shop=", "drip_ticket_shop="] {
        let (mut tls, _) = secure::connect(&gateway, "a.test", &["http/1.1"]).await;
        let request = b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n";
        tls.write_all(request).await.expect("it reads");
        let mut come = Vec::new();
        // The connection may end without TLS's close notification.
        while tls.read_buf(&mut come).await.is_ok_and(|count| count > 0) {}
        let text = String::from_utf8(come).expect("a text");
        let mut lines = text
            .lines()
            .filter_map(|line| line.strip_prefix("Set-Cookie: "));
        let cookie = lines.next().unwrap_or_else(|| panic!("no cookie: {text}"));
        let is_secure = cookie.starts_with(expected) && cookie.ends_with("; Secure");
        assert!(is_secure, "{cookie}");
        assert_eq!(lines.next(), None);
    }
}
