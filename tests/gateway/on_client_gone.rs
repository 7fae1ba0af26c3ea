//! Tests of `on_client_gone = "finish"`: a permit is kept until the origin has answered.
//!
//! The client disconnects before.

use std::sync::mpsc;
use std::thread;

use crate::support::frames::{Frames, HEADERS, get, ok, reset};
use crate::support::{
    Counting, Exchange, FrameOrigin, Gateway, MS, Origin, Raw, eventually, now, one_h2c_origin,
    one_origin,
};

const MB: usize = 1 << 20;
const FINISH: &str = "max_in_flight = 1\nqueue_timeout = \"20s\"\non_client_gone = \"finish\"\n";

/// Starts an origin that works for a second on `/slow`, whatever the client does.
fn working() -> Counting {
    let millis = |target: &str| if target.starts_with("/slow") { 1000 } else { 0 };
    Counting::taking(move |target| millis(target) * MS)
}

/// Tries each way in which a client can disconnect from a request that is at the origin.
fn leave(gateway: &Gateway, origin: &Origin) {
    let seen = || origin.moments("/slow").len();
    let mut count = seen();
    let mut has_come = || {
        count += 1;
        eventually("it is at the origin", || seen() == count);
    };
    let client = gateway.ask("/slow");
    has_come();
    drop(client);
    let mut client = Raw::connect(gateway.address());
    client.send("POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
    has_come();
    client.reset();
    // Only the stream, and the whole connection.
    let mut client = Frames::connect(gateway.address());
    client.send(get(1, "/slow")).expect("the gateway reads");
    has_come();
    client.send(reset(1, 8)).expect("the gateway reads");
    client.send(get(3, "/slow")).expect("the gateway reads");
    has_come();
    drop(client);
}

#[test]
fn the_next_request_reaches_the_origin_after_the_answer_to_one_whose_client_left() {
    let app = working();
    let origin = &app.origin;
    let gateway = Gateway::start(&one_origin(origin.address, "workers = 1", FINISH));
    leave(&gateway, origin);
    assert_eq!(gateway.fetch("/last").status, 200);
    assert_eq!(app.most(), 1);
    let (slow, last) = (origin.moments("/slow"), origin.moments("/last"));
    assert_eq!((slow.len(), last.len()), (4, 1));
    for pair in [&slow[..], &last[..]].concat().windows(2) {
        let gap = pair[1] - pair[0];
        assert!(gap >= 990 * MS, "{gap:?}");
    }
    // The connection to the origin was not closed.
    assert!(origin.arrivals().iter().all(|it| it.connection == 0));
    gateway.wait_in_flight(0);
}

#[test]
fn an_answer_that_has_begun_is_read_to_its_end() {
    let origin = Origin::answering(|exchange| {
        if exchange.target() == "/" {
            return exchange.reply(b"ok");
        }
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", 40 * MB);
        exchange.send(&head)?;
        for _ in 0..40 {
            exchange.send(vec![b'x'; MB])?;
        }
        Ok(())
    });
    let gateway = Gateway::start(&one_origin(origin.address, "workers = 1", FINISH));
    let mut client = gateway.ask("/large");
    assert_eq!(client.head().length(), Some(40 * MB as u64));
    drop(client);
    assert_eq!(gateway.fetch("/").status, 200);
    // The response was read to its end, so the connection serves the next request.
    assert!(origin.arrivals().iter().all(|it| it.connection == 0));
}

#[test]
fn a_stream_to_an_origin_over_http_2_is_not_reset() {
    let origin = FrameOrigin::start();
    let (sender, seen) = mpsc::channel();
    origin.next(move |to, stream| {
        thread::sleep(700 * MS);
        to.send(ok(stream))?;
        let next = to.next()?;
        sender.send(next.kind).expect("a test that waits");
        to.send(ok(next.stream))
    });
    let gateway = Gateway::start(&one_h2c_origin(origin.address, "workers = 1", FINISH));
    let client = gateway.ask("/slow");
    eventually("it is at the origin", || origin.requests() == 1);
    thread::sleep(100 * MS);
    drop(client);
    assert_eq!(gateway.fetch("/").status, 200);
    // Nothing arrived before the next request.
    assert_eq!(seen.recv(), Ok(HEADERS));
}

#[test]
fn an_upload_and_an_event_stream_end_with_their_client() {
    let origin = Origin::answering(|exchange: &mut Exchange| {
        if exchange.target() == "/events" {
            exchange.send(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n",
            )?;
            loop {
                exchange.send(b"9\r\ndata: 1\n\n\r\n")?;
                thread::sleep(20 * MS);
            }
        }
        exchange.body()?;
        exchange.reply(b"ok")
    });
    let gateway = Gateway::start(&one_origin(origin.address, "workers = 1", FINISH));
    let mut client = Raw::connect(gateway.address());
    client.send("GET /events HTTP/1.1\r\nHost: a\r\n\r\n");
    client.wait_for("data: 1");
    drop(client);
    assert_eq!(gateway.fetch("/").status, 200);
    let mut client = Raw::connect(gateway.address());
    client.send("POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhel");
    eventually("it is at the origin", || origin.moments("/up").len() == 1);
    drop(client);
    assert_eq!(gateway.fetch("/").status, 200);
}

#[test]
fn an_origin_that_never_answers_holds_the_permit_for_no_longer_than_its_timeouts() {
    let origin = Origin::answering(|exchange| {
        match exchange.target() {
            "/" => return exchange.reply(b"ok"),
            "/body" => exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhel")?,
            _ => {}
        }
        thread::sleep(20_000 * MS);
        Exchange::close()
    });
    let fields = format!("{FINISH}body_timeout = \"500ms\"\nresponse_timeout = \"10m\"\n");
    // The timeout of a route overrides that of its origin.
    let file = one_origin(origin.address, "", &fields) + "response_timeout = \"500ms\"\n";
    let log = "[log]\nformat = \"json\"\naccess = \"access.log\"\n";
    let gateway = Gateway::start(&format!("{file}{log}"));
    for target in ["/head", "/body"] {
        // Measured from before the gateway sends it: the origin may notice it late.
        let asked = now();
        let client = gateway.ask(target);
        eventually("it is at the origin", || !origin.moments(target).is_empty());
        thread::sleep(100 * MS);
        drop(client);
        assert_eq!(gateway.fetch("/").status, 200);
        let gap = origin.arrivals().last().expect("an arrival").at - asked;
        assert!(gap >= 500 * MS && gap < 10_000 * MS, "{target}: {gap:?}");
    }
    // The log has the time until the client disconnected.
    let lines = gateway.access_log(4);
    let of = |target: &str| {
        let line = lines.iter().find(|line| line["target"] == target);
        line.expect("a line")["status"].clone()
    };
    assert_eq!((of("/head"), of("/body")), (499.into(), 200.into()));
}
