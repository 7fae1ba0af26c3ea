//! Tests of forged or foreign tickets and sessions.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::{SECRET, Visitor, counted, full_shop, shop, visitors, wait_until_called};
use crate::support::{Gateway, Origin, eventually, fetch_with, side_by_side};

/// Fails unless a request with these fields draws a number or is refused.
///
/// The fields may be no UTF-8.
fn check_outside(gateway: &Gateway, origin: &Origin, name: &str, fields: &[u8]) {
    let before = origin.arrivals().len();
    let mut client = gateway.connect();
    client.send([b"GET / HTTP/1.1\r\nHost: a\r\n", fields, b"\r\n"].concat());
    let answer = client.answer();
    let drew = answer.status == 429 && answer.field("drip-ticket").is_some();
    let refused = matches!(answer.status, 400 | 431);
    assert!(drew || refused, "{name}: {answer:?}");
    assert_eq!(answer.field("drip-session"), None, "{name}");
    assert_eq!(origin.arrivals().len(), before, "{name}");
}

#[test]
fn what_the_room_did_not_sign_is_never_let_in() {
    let origin = Origin::start();
    let gateway = Gateway::start(&full_shop(origin.address, ""));
    let at = gateway.address();
    let inside = Visitor::walk_in(at);
    let session = inside.session.clone().expect("a session");
    let ticket = Visitor::draw(at).ticket.expect("a ticket");

    // From a gateway with another secret, and from one with the same secret but another room file.
    let mut foreign = Vec::new();
    for secret in ["secret = \"another of sixteen\"\n", SECRET] {
        let other = Gateway::start(&shop(origin.address, &format!("{secret}sessions = 1\n")));
        foreign.push(
            Visitor::walk_in(other.address())
                .session
                .expect("a session"),
        );
        foreign.push(Visitor::draw(other.address()).ticket.expect("a ticket"));
    }
    // `room::ticket` tests edited and truncated values.
    let mut texts: Vec<&[u8]> = foreign.iter().map(String::as_bytes).collect();
    texts.extend([&b""[..], b"let me in", b"\xff\xfe\x80", &[b'A'; 6000]]);
    for text in texts {
        for field in [
            "Drip-Session: ",
            "Drip-Ticket: ",
            "Cookie: drip_room_shop=",
            "Cookie: drip_ticket_shop=",
        ] {
            let fields = [field.as_bytes(), text, b"\r\n"].concat();
            check_outside(&gateway, &origin, field, &fields);
        }
    }
    // Ticket and session are swapped.
    for fields in [
        format!("Drip-Session: {ticket}\r\n"),
        format!("Drip-Ticket: {session}\r\n"),
        format!("Cookie: drip_room_shop={ticket}; drip_ticket_shop={session}\r\n"),
        // A repeated field belongs to no visitor: programs differ in which one they read.
        format!("Drip-Session: {session}\r\nDrip-Session: {session}\r\n"),
        format!("Drip-Session: x\r\nDrip-Session: {session}\r\n"),
        format!("drip-session: {session}\r\nDRIP-SESSION: x\r\n"),
        format!("Cookie: drip_room_shopx={session}; xdrip_room_shop={session}\r\n"),
        format!("Cookie: a=drip_room_shop={session}\r\n"),
    ] {
        check_outside(&gateway, &origin, &fields, fields.as_bytes());
    }
    assert_eq!(counted(&gateway, "session"), 0);
    eventually("all are counted", || counted(&gateway, "foreign") >= 24);
    let mut inside = inside;
    assert!(inside.is_inside(at), "it is still inside");
    assert!(!gateway.log().contains("panic"), "{}", gateway.log());
}

#[test]
fn a_garbled_field_leaves_the_good_cookie_in_force_and_is_not_sent_back() {
    let origin = Origin::start();
    let gateway = Gateway::start(&full_shop(origin.address, ""));
    let at = gateway.address();
    let session = Visitor::walk_in(at).session.expect("a session");
    let ticket = Visitor::draw(at).ticket.expect("a ticket");
    let fields = format!("Drip-Session: x\r\nCookie: drip_room_shop={session}\r\n");
    assert_eq!(fetch_with(at, "/", &fields).status, 200);
    for garbled in ["", "x", &session, &"A".repeat(43)] {
        let fields = format!("Drip-Ticket: {garbled}\r\nCookie: drip_ticket_shop={ticket}\r\n");
        let answer = fetch_with(at, "/", &format!("{fields}{}", super::JSON));
        if answer.status == 429 && answer.field("drip-ticket").is_none() {
            // The visitor has polled too often by now.
            continue;
        }
        assert_eq!(answer.field("drip-ticket"), Some(&*ticket), "{garbled}");
        assert!(answer.text().contains(&ticket), "{}", answer.text());
    }
    // A value that would end the line is useless to an attacker.
    let fields = format!(
        "Cookie: drip_ticket_shop=%0d%0aX-Made: up\r\n{}",
        super::JSON
    );
    let answer = fetch_with(at, "/", &fields);
    assert_eq!(answer.field("x-made"), None, "{answer:?}");
}

#[test]
fn one_ticket_on_many_connections_at_once_begins_one_session() {
    let origin = Origin::start();
    let room = format!("{SECRET}sessions = 1\nidle = \"1s\"\nclaim = \"30s\"");
    let gateway = Gateway::start(&shop(origin.address, &room));
    let at = gateway.address();
    Visitor::walk_in(at);
    let ticket = Visitor::draw(at).ticket.expect("a ticket");
    wait_until_called(&gateway);
    let inside = AtomicUsize::new(0);
    side_by_side(0..16, |_| {
        let answer = fetch_with(at, "/", &format!("Drip-Ticket: {ticket}\r\n"));
        inside.fetch_add(usize::from(answer.status == 200), Ordering::SeqCst);
    });
    assert_eq!(inside.into_inner(), 1);
    assert!(visitors(&gateway, "inside") <= 1);
}
