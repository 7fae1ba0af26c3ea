//! Checklist line 17: expectations. The origin decides on `Expect: 100-continue`.
//!
//! The gateway sends no 100 of its own (RFC 9110, section 10.1.1).

use super::bed::{GET, LAST, MS, OK, Testbed, get_with, haproxy_and_drip, ok_with, post_with};
use crate::support::{Message, Raw};

const EXPECTING: &str = "Expect: 100-continue\r\nContent-Length: 5\r\n";
/// Framing by a length and by chunks, with the body that follows.
const BODIES: [(&str, &str); 2] = [
    (EXPECTING, "hello"),
    (
        "Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n",
        "5\r\nhello\r\n0\r\n\r\n",
    ),
];
const CONTINUE: &str = "HTTP/1.1 100 Continue\r\n\r\n";

/// Returns a client that waits before it sends its body, and the origin with the expectation.
fn waiting(bed: &Testbed, lines: &str) -> (Raw, Raw) {
    let client = bed.ask(post_with(lines, ""));
    let mut origin = bed.origin.accept();
    let seen = origin.head();
    assert_eq!(seen.field("expect"), Some("100-continue"));
    (client, origin)
}

/// Lets the origin send 100. The client then sends `hello` and gets a response.
fn go_on(client: &mut Raw, origin: &mut Raw) {
    origin.send(CONTINUE);
    assert_eq!(client.head().status(), 100);
    client.send("hello");
    assert_eq!(origin.exactly(5), b"hello");
    origin.send(LAST);
    assert_eq!(client.answer().body, b"ok");
}

#[test]
fn line_17_the_word_to_go_on_is_the_origins_and_comes_once() {
    // nginx sends 100 itself, before it contacts the origin.
    for bed in haproxy_and_drip() {
        for (lines, body) in BODIES {
            let (mut client, mut origin) = waiting(&bed, lines);
            client.stays_quiet(100 * MS);
            origin.send(CONTINUE);
            let first = client.head();
            assert_eq!(first.line, "HTTP/1.1 100 Continue");
            assert_eq!(first.fields, []);
            client.stays_quiet(20 * MS);
            client.send(body);
            origin.wait_for("hello");
            origin.send(LAST);
            let (before, received) = client.answers();
            assert_eq!(before, [], "one 100 is enough");
            assert_eq!(received.body, b"ok");
        }
    }
}

#[test]
fn line_17_of_several_100s_one_passes() {
    // haproxy passes each 100 on.
    let bed = Testbed::drip("", "");
    let (mut client, mut origin) = waiting(&bed, EXPECTING);
    origin.send(CONTINUE.repeat(2));
    go_on(&mut client, &mut origin);
}

/// Checks the connection after the final response to a request whose body was never requested.
///
/// Either the connection ends, or the body is discarded and the next request is served.
fn check_goes_on(bed: &Testbed, mut client: Raw, received: &Message, body: &str) {
    let closes = received
        .field("connection")
        .is_some_and(|it| it.eq_ignore_ascii_case("close"));
    if closes {
        assert_eq!(client.end().0, b"", "nothing follows");
        return;
    }
    client.send(format!("{body}{GET}"));
    let mut origin = bed.origin.accept();
    assert_eq!(origin.head().line, "GET / HTTP/1.1");
    origin.send(LAST);
    assert_eq!(client.answer().body, b"ok");
}

#[test]
fn line_17_where_the_origin_refuses_its_answer_decides_and_no_100_comes() {
    for bed in haproxy_and_drip() {
        for status in [
            "417 Expectation Failed",
            "401 Unauthorized",
            "413 Too Large",
            "200 OK",
        ] {
            for (lines, body) in BODIES {
                let (mut client, mut origin) = waiting(&bed, lines);
                client.stays_quiet(50 * MS);
                origin.send(format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\nno"));
                let (before, received) = client.answers();
                assert_eq!(before, [], "{status}");
                let has_status = status.starts_with(&received.status().to_string());
                assert!(has_status, "{received:?}");
                assert_eq!(received.body, b"no", "{status}");
                if bed.is_drip() {
                    // The origin would take the next bytes for the body, so the connection carries
                    // no other request.
                    assert_eq!(origin.end().0, b"", "{status}");
                    check_goes_on(&bed, client, &received, body);
                    bed.check_unseen();
                }
            }
        }
    }
}

#[test]
fn line_17_a_client_that_waits_for_a_100_in_vain_sends_its_body_and_is_served() {
    for bed in haproxy_and_drip() {
        for late in ["", CONTINUE] {
            let (mut client, mut origin) = waiting(&bed, EXPECTING);
            client.stays_quiet(300 * MS);
            client.send("hel");
            assert_eq!(origin.exactly(3), b"hel");
            origin.send(late);
            client.send("lo");
            assert_eq!(origin.exactly(2), b"lo");
            origin.send(LAST);
            assert_eq!(client.answer().body, b"ok");
        }
    }
}

#[test]
fn line_17_interim_answers_of_other_kinds_do_not_stand_for_a_100() {
    for bed in haproxy_and_drip() {
        let (mut client, mut origin) = waiting(&bed, EXPECTING);
        origin.send("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n");
        assert_eq!(client.head().status(), 103);
        client.stays_quiet(50 * MS);
        go_on(&mut client, &mut origin);
    }
}

#[test]
fn line_17_a_request_that_its_limits_reject_gets_no_100() {
    let zone = "[zones.z]\nkey = \"$remote_addr\"\nrate = \"1r/h\"";
    let bed = Testbed::limited_drip("", "", zone, "limits = [{ zone = \"z\" }]");
    bed.seen(GET);
    let mut client = bed.ask(post_with(EXPECTING, ""));
    assert_eq!(client.head().status(), 429, "the first that comes");
    assert!(bed.origin.accept_within(20 * MS).is_none());
}

#[test]
fn line_17_a_request_that_waits_for_its_turn_or_for_a_permit_gets_no_100_before_it() {
    let zone = "[zones.z]\nkey = \"$remote_addr\"\nrate = \"2r/s\"";
    let limits = "limits = [{ zone = \"z\", burst = 1 }]";
    let bed = Testbed::limited_drip("", "", zone, limits);
    bed.seen(GET);
    let mut client = bed.ask(post_with(EXPECTING, ""));
    client.stays_quiet(300 * MS);
    let mut origin = bed.origin.accept();
    assert_eq!(origin.head().field("expect"), Some("100-continue"));
    client.stays_quiet(50 * MS);
    go_on(&mut client, &mut origin);

    let bed = Testbed::drip("", "max_in_flight = 1");
    let mut first = bed.ask(GET);
    let mut origin = bed.origin.accept();
    origin.head();
    let mut client = bed.ask(post_with(EXPECTING, ""));
    client.stays_quiet(100 * MS);
    origin.send(OK);
    assert_eq!(first.answer().body, b"ok");
    assert_eq!(origin.head().field("expect"), Some("100-continue"));
    go_on(&mut client, &mut origin);
}

#[test]
fn line_17_another_expectation_fails() {
    // nginx and haproxy ignore it.
    let bed = Testbed::drip("", "");
    for expect in [
        "200-ok",
        "100-continue, 200-ok",
        "100-continued",
        "x=\"100-continue\"",
    ] {
        let lines = format!("Expect: {expect}\r\nContent-Length: 0\r\n");
        let status = bed.own_status(post_with(&lines, ""));
        assert_eq!(status, 417, "{expect}");
    }
    let twice = "Expect: 100-continue\r\nExpect: 200-ok\r\nContent-Length: 0\r\n";
    assert_eq!(bed.own_status(post_with(twice, "")), 417);
    // The case of the value does not matter.
    let lines = "Expect: 100-Continue\r\nContent-Length: 5\r\n";
    let mut client = bed.ask(post_with(lines, ""));
    let mut origin = bed.origin.accept();
    origin.head();
    go_on(&mut client, &mut origin);
}

#[test]
fn line_17_an_early_answer_amid_an_expected_body_is_forwarded() {
    for bed in haproxy_and_drip() {
        let (mut client, mut origin) =
            waiting(&bed, "Expect: 100-continue\r\nContent-Length: 10\r\n");
        origin.send(CONTINUE);
        assert_eq!(client.head().status(), 100);
        client.send("first");
        assert_eq!(origin.exactly(5), b"first");
        origin.send("HTTP/1.1 507 Insufficient Storage\r\nContent-Length: 2\r\n\r\nno");
        let (before, received) = client.answers();
        assert_eq!(before, []);
        assert_eq!((received.status(), &*received.body), (507, &b"no"[..]));
    }
}

#[test]
fn line_17_a_request_without_a_body_may_expect_too() {
    let bed = Testbed::drip("", "");
    for lines in [
        "Expect: 100-continue\r\n",
        "Expect: 100-continue\r\nContent-Length: 0\r\n",
    ] {
        let mut passed = bed.pass(get_with(lines), ok_with(""));
        let (before, received) = passed.client.answers();
        assert_eq!(before, [], "{lines:?}: nothing is to be sent");
        assert_eq!(received.body, b"ok");
    }
}
