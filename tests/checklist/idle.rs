//! Checklist line 21: an idle connection with unrequested bytes carries no further request.
//!
//! The bytes would be taken for the response to the next request, perhaps of another client.

use std::thread;

use super::bed::{GET, MS, OK, OriginSide, Testbed, each, everybody, ok_with, post_with};
use crate::support::Raw;

/// Unrequested bytes: a response, its beginning, a farewell of some servers, an odd line end.
const UNASKED: [&str; 5] = [
    "HTTP/1.1 200 OK\r\nX-Unasked: 1\r\nContent-Length: 4\r\n\r\nevil",
    "HTTP/1.1 2",
    "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    "x",
    "\r\n",
];

/// Checks that the next request uses another connection and gets its own response.
fn check_next(bed: &Testbed, client: &mut Raw, mut before: OriginSide, request: &str, case: &str) {
    client.send(request);
    let mut origin = bed.origin.accept();
    assert_eq!(origin.request().target(), "/", "{case}");
    origin.send(ok_with("X-Next: 1\r\nConnection: close\r\n"));
    let received = client.answer();
    assert_eq!(received.field("x-next"), Some("1"), "{case}");
    assert_eq!(received.body, b"ok", "{case}");
    let (seen, _) = before.end();
    assert_eq!(seen, b"", "{case}: the old one carries nothing");
}

#[test]
fn line_21_a_connection_on_which_bytes_came_unasked_is_not_used_again() {
    for bed in everybody() {
        for unasked in UNASKED {
            for request in [GET.to_owned(), post_with("Content-Length: 5\r\n", "hello")] {
                let mut passed = bed.pass(GET, OK);
                assert_eq!(passed.client.answer().body, b"ok");
                passed.origin.send(unasked);
                thread::sleep(20 * MS);
                let case = format!("{unasked:?} before {request:?}");
                check_next(&bed, &mut passed.client, passed.origin, &request, &case);
            }
        }
    }
}

#[test]
fn line_21_nor_where_they_come_right_behind_the_answer() {
    for bed in each([|| Testbed::nginx(""), || Testbed::drip("", "")]) {
        for answer in [
            OK,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        ] {
            for unasked in UNASKED {
                let mut passed = bed.pass(GET, format!("{answer}{unasked}"));
                assert_eq!(passed.client.answer().body, b"ok");
                let case = format!("{unasked:?} behind {answer:?}");
                check_next(&bed, &mut passed.client, passed.origin, GET, &case);
            }
        }
    }
}

#[test]
fn line_21_nor_where_an_answer_without_a_body_brings_one() {
    let bed = Testbed::drip("", "");
    for (method, answer) in [
        ("HEAD", "200 OK\r\nContent-Length: 4"),
        ("GET", "204 No Content"),
        ("GET", "304 Not Modified\r\nContent-Length: 4"),
    ] {
        let request = format!("{method} / HTTP/1.1\r\nHost: test\r\n\r\n");
        let mut passed = bed.pass(request, format!("HTTP/1.1 {answer}\r\n\r\nevil"));
        let received = passed.client.answer_to(method);
        let has_status = answer.starts_with(&received.status().to_string());
        assert!(has_status, "{received:?}");
        check_next(&bed, &mut passed.client, passed.origin, GET, answer);
    }
}

#[test]
fn line_21_other_clients_get_nothing_of_them_either() {
    let bed = Testbed::drip("", "");
    for unasked in UNASKED {
        // Several idle connections, each with unrequested bytes.
        let mut passed: Vec<_> = (0..3).map(|_| bed.ask(GET)).collect();
        let mut origins: Vec<_> = passed.iter().map(|_| bed.origin.accept()).collect();
        for origin in &mut origins {
            origin.head();
        }
        for origin in &mut origins {
            origin.send(OK);
        }
        for client in &mut passed {
            assert_eq!(client.answer().body, b"ok");
        }
        for origin in &mut origins {
            origin.send(unasked);
        }
        thread::sleep(20 * MS);
        bed.check_unseen();
        for mut origin in origins {
            assert_eq!(origin.end().0, b"", "{unasked:?}");
        }
    }
}
