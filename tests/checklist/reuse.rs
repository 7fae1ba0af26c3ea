//! Reuse of connections to the origin: limits of idle time, age and number of requests.
//!
//! The origin may also announce its own idle timeout.

use std::thread;
use std::time::Duration;

use super::bed::{GET, MS, OK, Testbed, ok_with, post_with};
use crate::support::frames::{Frames, GOAWAY, HEADERS, get};
use crate::support::{Raw, now};

/// A client, and the origin connection that carried its requests so far.
struct Pair {
    bed: Testbed,
    client: Raw,
    origin: Option<Raw>,
}

impl Pair {
    fn new(fields: &str) -> Self {
        let bed = Testbed::drip("", fields);
        let client = bed.client();
        Self {
            bed,
            client,
            origin: None,
        }
    }

    /// Sends a request and answers it. Returns whether it came on the same connection as before.
    fn passes_on_the_same(&mut self, request: &str, answer: &str) -> bool {
        self.client.send(request);
        let other = match self.origin {
            Some(_) => self.bed.origin.accept_within(100 * MS),
            None => Some(self.bed.origin.accept()),
        };
        let is_same = other.is_none();
        if !is_same {
            self.origin = other;
        }
        let origin = self.origin.as_mut().expect("a connection");
        origin.request();
        origin.send(answer);
        assert_eq!(self.client.answer().body, b"ok");
        is_same
    }
}

#[test]
fn line_21_an_idle_connection_is_used_for_keep_alive_timeout_and_closed_then() {
    let mut pair = Pair::new("keep_alive_timeout = \"600ms\"");
    assert!(!pair.passes_on_the_same(GET, OK));
    for _ in 0..2 {
        thread::sleep(250 * MS);
        assert!(pair.passes_on_the_same(GET, OK));
    }
    let mut old = pair.origin.take().expect("a connection");
    thread::sleep(650 * MS);
    assert!(!pair.passes_on_the_same(&post_with("Content-Length: 1\r\n", "x"), OK));
    old.end();
    // The connection is closed even if no request arrives.
    let begun = now();
    pair.origin.expect("a connection").end();
    assert!(begun.elapsed() >= 400 * MS, "{:?}", begun.elapsed());
}

#[test]
fn line_21_a_connection_ends_a_second_before_its_origin_says_that_it_does() {
    let slow = |answer: &str, pause: Duration| {
        let mut pair = Pair::new("");
        assert!(!pair.passes_on_the_same(GET, answer));
        thread::sleep(pause);
        pair.passes_on_the_same(&post_with("Content-Length: 1\r\n", "x"), OK)
    };
    thread::scope(|scope| {
        for (field, pause, expected) in [
            ("Keep-Alive: timeout=0\r\n", 0, false),
            ("Keep-Alive: timeout=1\r\n", 0, false),
            ("Keep-Alive: timeout=2, max=100\r\n", 300, true),
            ("Keep-Alive: timeout=2, max=100\r\n", 1020, false),
            ("keep-alive: max=5,Timeout=2\r\n", 1020, false),
            ("Keep-Alive: timeout=3\r\n", 1020, true),
            ("Keep-Alive: timeout=soon\r\n", 300, true),
            ("Keep-Alive: \r\n", 300, true),
        ] {
            scope.spawn(move || {
                let is_same = slow(&ok_with(field), pause * MS);
                assert_eq!(is_same, expected, "{field:?} after {pause} ms");
            });
        }
    });
}

#[test]
fn line_21_a_busy_connection_ends_at_its_age() {
    let mut pair = Pair::new("keep_alive_time = \"800ms\"");
    assert!(!pair.passes_on_the_same(GET, OK));
    let begun = now();
    while pair.passes_on_the_same(GET, OK) {
        assert!(begun.elapsed() < 1200 * MS, "{:?}", begun.elapsed());
    }
    assert!(begun.elapsed() > 500 * MS, "{:?}", begun.elapsed());
    assert!(pair.passes_on_the_same(GET, OK), "the next one is used");
}

#[test]
fn line_21_a_connection_carries_keep_alive_requests_requests() {
    let mut pair = Pair::new("keep_alive_requests = 3");
    for nth in 0..9 {
        assert_eq!(pair.passes_on_the_same(GET, OK), nth % 3 != 0, "{nth}");
    }
    let mut pair = Pair::new("keep_alive_requests = 1");
    for _ in 0..3 {
        assert!(!pair.passes_on_the_same(GET, OK));
    }
}

#[test]
fn line_21_a_login_lasts_beyond_the_age_and_the_requests_of_other_connections() {
    let mut pair = Pair::new("keep_alive_requests = 2\nkeep_alive_time = \"300ms\"");
    let login = "GET / HTTP/1.1\r\nHost: test\r\nAuthorization: NTLM abc\r\n\r\n";
    assert!(!pair.passes_on_the_same(login, OK));
    for _ in 0..5 {
        assert!(pair.passes_on_the_same(GET, OK));
    }
}

/// Returns whether a client's connection ends with the response to this request.
fn is_last(bed: &Testbed, client: &mut Raw, origin: &mut Option<Raw>) -> bool {
    client.send(GET);
    let other = match origin {
        Some(_) => bed.origin.accept_within(50 * MS),
        None => Some(bed.origin.accept()),
    };
    *origin = other.or_else(|| origin.take());
    let at = origin.as_mut().expect("a connection");
    at.request();
    at.send(OK);
    let answer = client.answer();
    assert_eq!(answer.body, b"ok");
    answer.field("connection") == Some("close")
}

#[test]
fn a_connection_of_a_client_ends_after_so_many_requests_and_at_its_age() {
    let bed = Testbed::drip("keep_alive_requests = 3", "");
    let mut origin = None;
    for _ in 0..2 {
        let mut client = bed.client();
        let last: Vec<_> = (0..3)
            .map(|_| is_last(&bed, &mut client, &mut origin))
            .collect();
        assert_eq!(last, [false, false, true]);
        client.end();
    }
    let bed = Testbed::drip("keep_alive_time = \"500ms\"", "");
    let (mut client, mut origin) = (bed.client(), None);
    let begun = now();
    while !is_last(&bed, &mut client, &mut origin) {
        assert!(begun.elapsed() < 1000 * MS, "{:?}", begun.elapsed());
    }
    assert!(begun.elapsed() > 400 * MS, "{:?}", begun.elapsed());
    client.end();
}

#[test]
fn an_http_2_client_gets_go_away_after_max_requests() {
    let bed = Testbed::drip("keep_alive_requests = 2", "");
    let mut client = Frames::connect(bed.address);
    let mut origin = None;
    for nth in 0..2 {
        client.send(get(1 + 2 * nth, "/")).expect("it reads");
        if origin.is_none() {
            origin = Some(bed.origin.accept());
        }
        let at = origin.as_mut().expect("a connection");
        at.request();
        at.send(OK);
    }
    let mut kinds = Vec::new();
    while let Ok(frame) = client.next() {
        kinds.push(frame.kind);
    }
    let heads: Vec<_> = kinds.iter().filter(|kind| **kind == HEADERS).collect();
    assert_eq!(heads.len(), 2, "{kinds:?}");
    assert!(kinds.contains(&GOAWAY), "{kinds:?}");
}
