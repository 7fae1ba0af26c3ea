//! Tests that a client's slow request or slow reading does not count as time of the origin.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::support::workers::{LEARNED, file, route};
use crate::support::{Gateway, MS, Origin, exchange, now, one_origin, quarter_alone, side_by_side};

const SECOND: Duration = Duration::from_secs(1);

/// Sends an upload, one byte every 200 ms until `is_over`, and then the last. Returns the status.
fn upload(gateway: &Gateway, is_over: &AtomicBool) -> u16 {
    let mut client = gateway.connect();
    client.send("POST /up HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    while !is_over.load(Ordering::Relaxed) {
        client.send(b"1\r\na\r\n");
        thread::sleep(200 * MS);
    }
    client.send(b"1\r\nb\r\n0\r\n\r\n");
    client.answer().status
}

/// Slow uploads do not make an origin count as slow.
///
/// Twenty clients that upload slowly hold their permits, and no other client gets fewer.
#[test]
fn an_origin_is_not_slow_because_uploads_are() {
    let _quarter = quarter_alone();
    let origin = Origin::answering(|exchange| {
        exchange.body()?;
        exchange.reply(b"ok")
    });
    let backoff = "max_in_flight = 40\n[origins.app.backoff]\nslow = \"2s\"\n\
        [log]\nformat = \"json\"\naccess = \"access.log\"";
    let gateway = Gateway::start(&one_origin(origin.address, "", backoff));
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let uploads = [(); 20].map(|()| scope.spawn(|| upload(&gateway, &is_over)));
        origin.wait_for(20);
        let began = now();
        // Several windows, in which most requests at the origin are uploads older than `slow`.
        while began.elapsed() < 7 * SECOND {
            assert_eq!(gateway.fetch("/").status, 200);
            thread::sleep(100 * MS);
        }
        let now = [("origin", "app"), ("of", "now")];
        assert_eq!(gateway.count("drip_origin_in_flight_limit", &now), 40);
        is_over.store(true, Ordering::Relaxed);
        for upload in uploads {
            assert_eq!(upload.join().expect("no panic"), 200);
        }
    });
    // They did not count after they were answered, either.
    thread::sleep(2 * SECOND);
    gateway.fetch("/");
    let slow = [("origin", "app"), ("reason", "slow")];
    assert_eq!(gateway.count("drip_origin_backoffs_total", &slow), 0);
    // The metric and the log also have the time of the origin.
    let lines = gateway.access_log(20);
    let uploads: Vec<_> = lines.iter().filter(|it| it["method"] == "POST").collect();
    assert_eq!(uploads.len(), 20);
    for line in uploads {
        let time = |name: &str| line[name].as_f64().expect("a time");
        let is_of_origin = time("duration_seconds") > 7.0 && time("origin_seconds") < 3.0;
        assert!(is_of_origin, "{line}");
    }
    let labels = [("origin", "app"), ("outcome", "answered")];
    let sum = gateway.value("drip_origin_response_seconds_sum", &labels);
    assert!(sum.is_some_and(|sum| sum < 60.0), "{sum:?}");
}

/// A client that pauses is ended by its own timeouts, not by the origin's `response_timeout`.
#[test]
fn a_client_that_pauses_is_no_origin_that_does_not_answer() {
    let origin = Origin::answering(|exchange| {
        exchange.body()?;
        exchange.reply(b"ok")
    });
    let limits = "response_timeout = \"300ms\"";
    let server = "body_timeout = \"2s\"";
    let gateway = Gateway::start(&one_origin(origin.address, server, limits));
    let pausing = |span| {
        let mut client = gateway.connect();
        client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello");
        thread::sleep(span);
        client.send(b"hello");
        client.answer().status
    };
    assert_eq!(pausing(SECOND), 200);
    // Not even several times in a row.
    let statuses = side_by_side(0..3, |_| pausing(3 * SECOND));
    assert_eq!(statuses, [408; 3]);
    let labels = [("origin", "app"), ("outcome", "timeout")];
    let measured = gateway.count("drip_origin_response_seconds_count", &labels);
    assert_eq!(measured, 0);
    assert_eq!(gateway.fetch("/").status, 200);
}

/// Time in which the client does not read the response is not work of the origin.
#[test]
fn a_response_that_is_taken_slowly_is_no_work() {
    const SIZE: usize = 32 * 1024 * 1024;
    let origin = Origin::answering(|exchange| exchange.reply(&vec![b'a'; SIZE]));
    let gateway = Gateway::start(&file(&origin, "1000r/s", &route("/page", LEARNED)));
    let mut client = gateway.ask("/page");
    let head = client.head();
    thread::sleep(4 * SECOND);
    let mut count = 0;
    let passed = client.pass_body(&head, |piece| count += piece.len());
    passed.expect("the whole body");
    assert_eq!(count, SIZE);
    let line = &gateway.access_log(1)[0];
    let cost = line["cost"].as_u64().expect("a cost");
    // If the four seconds counted for the origin, the cost would be the maximum: 200.
    assert!(cost < 200, "{line}");
}

/// A response to half of a request is charged the known cost.
///
/// The cost of the complete request stays unknown.
#[test]
fn an_answer_to_half_of_a_request_is_charged_what_was_known() {
    let origin = Origin::answering(|exchange| {
        // Like an origin that waits for the client in vain.
        thread::sleep(SECOND);
        exchange.send(b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")
    });
    let gateway = Gateway::start(&file(&origin, "1000r/s", &route("/page", LEARNED)));
    let half = b"POST /page HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello";
    assert_eq!(exchange(gateway.address(), half).status, 408);
    let line = &gateway.access_log(1)[0];
    assert_eq!(line["cost"], 1, "{line}");
    assert_eq!(line["origin_seconds"], 0.0, "{line}");
}
