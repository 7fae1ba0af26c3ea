//! Checklist line 14: interim responses (1xx) are forwarded before the final response.
//!
//! An interim response never replaces the final one (RFC 9110, section 15.2).

use std::thread;

use super::bed::{GET, LAST, MS, Testbed, get_with, haproxy_and_drip, ok_with, post_with};
use super::upgrades::{SWITCHED, WEBSOCKET};
use crate::support::{Message, Raw, eventually, now};

const HINTS: &str = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n";

fn statuses(messages: &[Message]) -> Vec<u16> {
    messages.iter().map(Message::status).collect()
}

/// Returns a client that has sent `request`, and its origin, which has read the head.
fn begun(bed: &Testbed, request: &str) -> (Raw, Raw) {
    let client = bed.ask(request);
    let mut origin = bed.origin.accept();
    origin.head();
    (client, origin)
}

#[test]
fn line_14_interim_answers_come_before_the_final_one_and_never_instead_of_it() {
    // nginx takes them for the final response.
    for bed in haproxy_and_drip() {
        for (interim, statuses_received) in [
            (HINTS, &[103][..]),
            ("HTTP/1.1 102 Processing\r\n\r\n", &[102]),
            ("HTTP/1.1 199 \r\n\r\n", &[199]),
            (
                "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n",
                &[103, 102, 103],
            ),
        ] {
            let (mut client, mut origin) = begun(&bed, GET);
            for nth in ["first", "second"] {
                origin.send(interim);
                origin.send(ok_with(&format!("X-Nth: {nth}\r\n")));
                let (before, received) = client.answers();
                assert_eq!(statuses(&before), statuses_received);
                assert_eq!(received.status(), 200);
                assert_eq!(received.field("x-nth"), Some(nth), "{interim:?}");
                client.send(GET);
                if let Some(other) = bed.origin.accept_within(20 * MS) {
                    origin = other;
                }
                origin.head();
            }
            origin.send(LAST);
            let (before, received) = client.answers();
            assert_eq!(before, [], "another's");
            assert_eq!(received.body, b"ok");
        }
    }
}

#[test]
fn line_14_the_fields_of_an_interim_answer_pass_in_order_and_nothing_is_added() {
    for bed in haproxy_and_drip() {
        let (mut client, mut origin) = begun(&bed, GET);
        origin.send(
            "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\nX-A: caf\u{e9}\r\nLink: </b.css>, </c>\r\n\r\n",
        );
        origin.send(ok_with("Link: </d>\r\n"));
        let (before, received) = client.answers();
        let [hints] = before.as_slice() else {
            panic!("{before:?}")
        };
        assert_eq!(hints.line, "HTTP/1.1 103 Early Hints");
        assert_eq!(hints.all("link"), ["</a.css>", "</b.css>, </c>"]);
        assert_eq!(hints.field("x-a"), Some("caf\u{c3}\u{a9}"), "byte by byte");
        assert_eq!(hints.fields.len(), 3, "{hints:?}");
        assert_eq!(received.all("link"), ["</d>"]);
    }
}

#[test]
fn line_14_an_interim_answer_is_not_held_back_until_the_final_one() {
    for bed in haproxy_and_drip() {
        let (mut client, mut origin) = begun(&bed, GET);
        for _ in 0..3 {
            origin.send(HINTS);
            assert_eq!(client.head().status(), 103);
        }
        thread::sleep(100 * MS);
        origin.send(LAST);
        assert_eq!(client.answer().body, b"ok");
    }
}

#[test]
fn line_14_an_interim_answer_passes_while_the_body_is_still_sent() {
    for bed in haproxy_and_drip() {
        let (mut client, mut origin) = begun(&bed, &post_with("Content-Length: 10\r\n", "first"));
        assert_eq!(origin.exactly(5), b"first");
        origin.send("HTTP/1.1 102 Processing\r\n\r\n");
        assert_eq!(client.head().status(), 102);
        client.send("later");
        assert_eq!(origin.exactly(5), b"later");
        origin.send(LAST);
        assert_eq!(client.answer().body, b"ok");
    }
}

#[test]
fn line_14_what_belongs_to_one_hop_or_frames_a_message_stays_out_of_interim_answers() {
    // haproxy forwards the same fields as of any response.
    let bed = Testbed::drip("", "");
    let (mut client, mut origin) = begun(&bed, GET);
    origin.send(
        "HTTP/1.1 103 Early Hints\r\nConnection: keep-alive, X-One\r\nX-One: 1\r\nKeep-Alive: timeout=5\r\n\
         Proxy-Connection: close\r\nTE: trailers\r\nTrailer: X-Sum\r\nUpgrade: h2c\r\nContent-Length: 5\r\n\
         Link: </a>\r\n\r\n",
    );
    origin.send("HTTP/1.1 103 Early Hints\r\nTransfer-Encoding: chunked\r\nLink: </b>\r\n\r\n");
    origin.send(LAST);
    let (before, received) = client.answers();
    assert_eq!(statuses(&before), [103, 103]);
    for hints in before {
        assert_eq!(hints.names(), ["link"], "{hints:?}");
    }
    assert_eq!(received.body, b"ok");
}

#[test]
fn line_14_a_100_that_the_client_does_not_expect_is_dropped_and_others_pass() {
    // haproxy passes it on.
    let bed = Testbed::drip("", "");
    for request in [GET.to_owned(), post_with("Content-Length: 5\r\n", "hello")] {
        let (mut client, mut origin) = begun(&bed, &request);
        origin.send(format!("HTTP/1.1 100 Continue\r\n\r\n{HINTS}{LAST}"));
        let (before, received) = client.answers();
        assert_eq!(statuses(&before), [103], "{request:?}");
        assert_eq!(received.body, b"ok");
    }
}

#[test]
fn line_14_a_client_of_http_1_0_sees_the_final_answer_alone() {
    let bed = Testbed::drip("", "");
    for interim in [
        HINTS,
        "HTTP/1.1 102 Processing\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\n",
    ] {
        let (mut client, mut origin) = begun(&bed, "GET / HTTP/1.0\r\nHost: test\r\n\r\n");
        origin.send(interim);
        client.stays_quiet(20 * MS);
        origin.send(LAST);
        let (before, received) = client.answers();
        assert_eq!(before, [], "{interim:?}");
        assert_eq!(received.body, b"ok");
    }
}

#[test]
fn line_14_an_interim_answer_may_come_before_a_101() {
    for bed in haproxy_and_drip() {
        let (mut client, mut origin) = begun(&bed, &get_with(WEBSOCKET));
        origin.send(HINTS);
        assert_eq!(client.head().status(), 103);
        origin.send(format!("{SWITCHED}first"));
        assert_eq!(client.head().status(), 101);
        assert_eq!(client.exactly(5), b"first");
        client.send("back");
        assert_eq!(origin.exactly(4), b"back");
    }
}

#[test]
fn line_14_interim_answers_give_the_origin_no_more_time() {
    let bed = Testbed::drip("", "response_timeout = \"500ms\"");
    let (mut client, mut origin) = begun(&bed, GET);
    let began = now();
    // The peer may close first.
    while origin.try_send(HINTS).is_ok() && began.elapsed() < 3000 * MS {
        thread::sleep(50 * MS);
    }
    let (before, received) = client.answers();
    let count = before.len();
    assert_eq!(received.status(), 504, "after {count} interim ones");
    assert!(before.len() > 3, "{before:?}");
    let took = began.elapsed();
    assert!((400..2500).contains(&took.as_millis()), "{took:?}");
}

#[test]
fn line_14_a_broken_interim_answer_is_a_502() {
    let bed = Testbed::drip("", "");
    for broken in [
        "HTTP/1.1 103 Early Hints\r\nno colon\r\n\r\n",
        "HTTP/1.1 103 Early Hints\r\nX A: 1\r\n\r\n",
        "HTTP/1.1 103 Early Hints\r\n",
    ] {
        let (mut client, mut origin) = begun(&bed, &post_with("Content-Length: 0\r\n", ""));
        origin.send(HINTS);
        assert_eq!(client.head().status(), 103, "{broken:?}");
        origin.send(broken);
        drop(origin);
        let (before, received) = client.answers();
        assert_eq!(before, [], "{broken:?}");
        assert_eq!(received.status(), 502, "{broken:?}");
    }
}

#[test]
fn line_14_an_interim_answer_counts_as_no_request() {
    let mut bed = Testbed::drip("", "");
    let (mut client, mut origin) = begun(&bed, GET);
    origin.send(format!("{HINTS}{HINTS}{LAST}"));
    assert_eq!(client.answer().status(), 200);
    let gateway = bed.gateway();
    eventually("the request is counted", || {
        let metrics = gateway.metrics();
        let count = |code| metrics.count("drip_requests_total", &[("code", code)]);
        assert_eq!(count("103"), 0, "{metrics:?}");
        count("200") == 1
    });
}
