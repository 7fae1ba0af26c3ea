//! Tests of HTTP/2 requests that would mean something else in HTTP/1: none reaches an origin.
//!
//! `tests/counterparts/nginx` sends the same requests to nginx, which shows that the test is
//! correct.

mod cases;

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use cases::*;

use crate::support::frames::{self, DATA, END_STREAM, Frames, Outcome, frame, head, reset};
use crate::support::wire::Head;
use crate::support::{Gateway, Origin, eventually, one_origin};

const SMUGGLED: &str = "GET /smuggled HTTP/1.1\r\nHost: evil\r\n\r\n";

/// Requests at the origin: the head and the body of each.
type Seen = Arc<Mutex<Vec<(Head, Vec<u8>)>>>;

fn recording() -> (Origin, Seen) {
    let seen = Seen::default();
    let to_see = Arc::clone(&seen);
    let origin = Origin::answering(move |exchange| {
        let head = exchange.head.clone();
        let body = exchange.body()?;
        to_see.lock().expect("no panic").push((head, body));
        exchange.reply(b"ok")
    });
    (origin, seen)
}

fn check_all(cases: &[Case]) {
    let (origin, seen) = recording();
    let file = one_origin(origin.address, "workers = 1", "");
    let gateway = Gateway::start(&file);
    for case in cases {
        assert!(!serves(gateway.address(), case), "{}", case.name);
        assert_eq!(gateway.fetch("/next").status, 200, "{}", case.name);
        for (head, body) in seen.lock().expect("no panic").drain(..) {
            let text = format!("{head:?} {body:?}");
            let (line, name) = (&head.first_line, case.name);
            assert_eq!(line, "GET /next HTTP/1.1", "{name}: {text}");
        }
    }
}

/// Returns lengths that are invalid or differ from the body. nginx is not tested with them.
fn lengths() -> Vec<Case> {
    let smuggled = "helloGET /smuggled HTTP/1.1\r\nHost: evil\r\n\r\n";
    [
        ("shorter", "5", "hell"),
        ("nothing", "5", ""),
        ("longer", "5", smuggled),
        ("none told", "0", smuggled),
        ("a list", "5, 5", "hello"),
        ("a sign", "+5", "hello"),
        ("negative", "-5", "hello"),
        ("hexadecimal", "0x5", "hello"),
        ("empty", "", "hello"),
    ]
    .map(|(name, length, body)| with(name, &[("content-length", length)], body))
    .into()
}

#[test]
fn fields_that_http_1_would_read_otherwise_are_refused() {
    check_all(&fields());
}

#[test]
fn pseudo_fields_that_http_1_would_read_otherwise_are_refused() {
    check_all(&pseudo_fields());
}

#[test]
fn a_body_of_another_length_than_announced_is_never_complete() {
    check_all(&lengths());
}

#[test]
fn bytes_after_the_announced_end_spoil_no_other_request() {
    let (origin, seen) = recording();
    let gateway = Gateway::start(&one_origin(origin.address, "workers = 1", ""));
    let mut fields = post();
    fields.push((b"content-length".to_vec(), b"5".to_vec()));
    for rest in [frame(DATA, END_STREAM, 1, SMUGGLED), reset(1, 8)] {
        let mut client = Frames::connect(gateway.address());
        let begun = [head(1, 0, &fields), frame(DATA, 0, 1, "hello")];
        client.send(begun.concat()).expect("the gateway reads");
        // The origin has the complete body before the client sends more.
        eventually("the origin has it", || {
            !seen.lock().expect("no panic").is_empty()
        });
        // The response may have arrived and ended the stream.
        let _sent = client.send(rest);
        thread::sleep(Duration::from_millis(100));
        gateway.check_each(5, "/next", 200);
        let mut seen: Vec<_> = seen.lock().expect("no panic").drain(..).collect();
        assert_eq!(seen.remove(0).1, b"hello");
        let is_next = |(head, _): &(Head, _)| head.first_line == "GET /next HTTP/1.1";
        assert!(seen.iter().all(is_next), "{seen:?}");
    }
}

#[test]
fn what_looks_like_http_1_in_a_body_stays_a_body() {
    let (origin, seen) = recording();
    let gateway = Gateway::start(&one_origin(origin.address, "workers = 1", ""));
    let mut client = Frames::connect(gateway.address());
    let bodies = [
        SMUGGLED,
        "0\r\n\r\n",
        "0\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n",
        "5\r\nhello",
    ];
    let mut stream = 1;
    for body in bodies {
        for received in [true, false] {
            let mut fields = post();
            if received {
                fields.push((b"content-length".to_vec(), body.len().to_string().into()));
            }
            let bytes = [
                head(stream, 0, &fields),
                frame(DATA, END_STREAM, stream, body),
            ];
            client.send(bytes.concat()).expect("the gateway reads");
            assert_eq!(client.outcome(stream), Outcome::Status(200));
            assert_eq!(client.body(stream), Ok(b"ok".to_vec()));
            let (head, came) = seen.lock().expect("no panic").pop().expect("a request");
            assert_eq!(head.first_line, "POST /case HTTP/1.1");
            assert_eq!(came, body.as_bytes());
            stream += 2;
        }
    }
    assert!(seen.lock().expect("no panic").is_empty());
}

#[test]
fn a_get_whose_end_comes_in_an_empty_frame_has_no_body() {
    let (origin, seen) = recording();
    let gateway = Gateway::start(&one_origin(origin.address, "workers = 1", ""));
    let mut client = Frames::connect(gateway.address());
    let mut stream = 1;
    for method in ["GET", "HEAD", "DELETE"] {
        for (pause, pieces) in [(0, 1), (50, 1), (50, 2)] {
            let fields = frames::request(method, "/");
            client.send(head(stream, 0, &fields)).expect("it reads");
            thread::sleep(Duration::from_millis(pause));
            if pieces == 2 {
                client.send(frame(DATA, 0, stream, "")).expect("it reads");
            }
            let end = frame(DATA, END_STREAM, stream, "");
            client.send(end).expect("it reads");
            assert_eq!(client.outcome(stream), Outcome::Status(200), "{method}");
            let (head, body) = seen.lock().expect("no panic").pop().expect("a request");
            assert_eq!(body, b"");
            for name in ["transfer-encoding", "content-length"] {
                assert_eq!(head.field(name), None, "{method} after {pause} ms");
            }
            stream += 2;
        }
    }
}

#[test]
fn a_get_with_a_body_keeps_it_and_one_without_an_end_is_not_held_for_long() {
    let (origin, seen) = recording();
    let gateway = Gateway::start(&one_origin(origin.address, "workers = 1", ""));
    let mut client = Frames::connect(gateway.address());
    for (stream, pause) in [(1, 0), (3, 50), (5, 1500)] {
        let fields = frames::request("GET", "/");
        client.send(head(stream, 0, &fields)).expect("it reads");
        thread::sleep(Duration::from_millis(pause));
        if pause > 1000 {
            eventually("it has been forwarded", || origin.arrivals().len() == 3);
        }
        let end = frame(DATA, END_STREAM, stream, "hello");
        client.send(end).expect("it reads");
        assert_eq!(client.outcome(stream), Outcome::Status(200));
        let (head, body) = seen.lock().expect("no panic").pop().expect("a request");
        assert_eq!(body, b"hello");
        assert_eq!(head.field("transfer-encoding"), Some("chunked"));
    }
}
