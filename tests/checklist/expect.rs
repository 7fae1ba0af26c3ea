//! Line 17: expectations.

use std::thread;

use crate::bed::{Bed, GET, LAST, MS, everybody, haproxy_and_drip, post_with};
use crate::support::Raw;

const EXPECTING: &str = "Expect: 100-continue\r\nContent-Length: 5\r\n";

#[test]
fn line_17_an_expected_100_continue_comes_and_then_the_answer() {
    for bed in everybody() {
        let mut client = bed.ask(post_with(EXPECTING, ""));
        // The proxy may tell the client to go on by itself, or ask the origin.
        let origin = bed.origin.accept_within(300 * MS);
        let serve = move |mut origin: Raw| {
            if origin.head().has("expect") {
                origin.send("HTTP/1.1 100 Continue\r\n\r\n");
            }
            assert_eq!(origin.exactly(5), b"hello");
            origin.send(LAST);
        };
        let asked = origin.map(|origin| thread::spawn(move || serve(origin)));
        let first = client.head();
        assert_eq!(first.status(), 100, "{}", bed.who);
        assert!(
            !first.has("content-length") && !first.has("transfer-encoding"),
            "{}",
            bed.who
        );
        client.send("hello");
        match asked {
            Some(asked) => asked.join().expect("the origin has it"),
            None => serve(bed.origin.accept()),
        }
        let told = client.head();
        assert_eq!(told.status(), 200, "{}: one 100 is enough", bed.who);
        assert_eq!(client.exactly(2), b"ok", "{}", bed.who);
        client.send(GET);
        let mut origin = bed.origin.accept();
        origin.head();
        origin.send(LAST);
        assert_eq!(
            client.answer().body,
            b"ok",
            "{}: the connection goes on",
            bed.who
        );
    }
}

#[test]
fn line_17_a_final_status_reaches_a_client_that_waits_for_100() {
    for bed in everybody() {
        let mut passed = bed.pass_head(
            post_with(EXPECTING, ""),
            "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno",
        );
        let told = passed.client.answer();
        assert_eq!(
            (told.status(), told.body.as_slice()),
            (403, b"no".as_slice()),
            "{}",
            bed.who
        );
    }
}

#[test]
fn line_17_a_client_that_sends_its_body_without_waiting_is_served() {
    for bed in everybody() {
        let seen = bed.seen_at_last(post_with(EXPECTING, "hello"));
        assert_eq!(seen.body, b"hello", "{}", bed.who);
    }
}

#[test]
fn line_17_a_request_that_its_limits_reject_gets_no_100() {
    let zone = "[zones.z]\nkey = \"$remote_addr\"\nrate = \"1r/h\"";
    let bed = Bed::limited_drip("", "", zone, "limits = [{ zone = \"z\" }]");
    bed.seen(GET);
    let mut client = bed.ask(post_with(EXPECTING, ""));
    assert_eq!(client.head().status(), 429, "the first that comes");
    assert!(bed.origin.accept_within(20 * MS).is_none());
}

#[test]
fn line_17_another_expectation_fails() {
    // nginx and haproxy take no notice of it.
    let bed = Bed::drip("", "");
    for expect in [
        "200-ok",
        "100-continue, 200-ok",
        "100-continued",
        "x=\"100-continue\"",
    ] {
        let status = bed.own_status(post_with(
            &format!("Expect: {expect}\r\nContent-Length: 0\r\n"),
            "",
        ));
        assert_eq!(status, 417, "{expect}");
    }
    let twice = "Expect: 100-continue\r\nExpect: 200-ok\r\nContent-Length: 0\r\n";
    assert_eq!(bed.own_status(post_with(twice, "")), 417);
    let seen = bed.seen_at_last(post_with(
        "Expect: 100-Continue\r\nContent-Length: 5\r\n",
        "hello",
    ));
    assert_eq!(seen.body, b"hello", "its case does not matter");
}

#[test]
fn line_17_a_client_of_http_1_0_gets_no_100() {
    // nginx sends it one.
    for bed in haproxy_and_drip() {
        let mut client = bed.ask(format!(
            "POST / HTTP/1.0\r\nHost: test\r\n{EXPECTING}\r\nhello"
        ));
        let mut origin = bed.origin.accept();
        assert_eq!(origin.request().body, b"hello", "{}", bed.who);
        origin.send(LAST);
        assert_eq!(client.head().status(), 200, "{}", bed.who);
    }
}
