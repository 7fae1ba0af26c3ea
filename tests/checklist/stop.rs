//! Checklist line 24: stopping. Only drip is tested, because the behaviour is its own.

use std::net::TcpStream;
use std::time::Duration;

use rustix::process::Signal;

use super::bed::{GET, LAST, MS, Testbed, post_with};
use crate::support::{End, eventually, now};

const LIMIT: Duration = Duration::from_secs(3);
/// Time for clients to read the last responses.
const PARTING: Duration = Duration::from_millis(1500);

fn stopping(server: &str) -> Testbed {
    Testbed::drip(
        &format!("shutdown_timeout = \"{}s\"\n{server}", LIMIT.as_secs()),
        "",
    )
}

/// Stops the gateway, and waits until it accepts no more connections.
fn stop(bed: &mut Testbed) {
    bed.gateway().signal(Signal::TERM);
    let address = bed.address;
    eventually("new connections are refused", || {
        TcpStream::connect(address).is_err()
    });
}

#[test]
fn line_24_what_is_in_flight_is_finished_and_then_it_ends() {
    let mut bed = stopping("");
    let mut idle = bed.client();
    let mut get = bed.ask(GET);
    let mut one = bed.origin.accept();
    one.head();
    let mut post = bed.ask(post_with("Content-Length: 10\r\n", "first"));
    let mut other = bed.origin.accept();
    other.head();
    let mut amid = bed.ask(GET);
    let mut third = bed.origin.accept();
    third.head();
    third.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfirst");
    amid.wait_for("first");
    stop(&mut bed);
    let began = now();
    // The worker knows of the stop once it closes idle connections.
    idle.end();
    one.send(LAST);
    let received = get.answer();
    assert_eq!(received.body, b"ok");
    assert_eq!(received.field("connection"), Some("close"));
    assert_eq!(get.end(), (Vec::new(), End::Closed));
    post.send("later");
    assert_eq!(other.exactly(10), b"firstlater");
    other.send(LAST);
    assert_eq!(post.answer().body, b"ok");
    third.send("later");
    assert_eq!(amid.answer().body, b"firstlater");
    assert_eq!(bed.gateway().wait(LIMIT).code(), Some(0));
    let took = began.elapsed();
    assert!(took + 500 * MS < LIMIT, "it had nothing to wait for");
}

#[test]
fn line_24_what_is_idle_is_closed_at_once() {
    let mut bed = stopping("");
    let mut passed = bed.pass(GET, LAST);
    assert_eq!(passed.client.answer().status(), 200);
    let mut unused = bed.client();
    stop(&mut bed);
    assert_eq!(passed.client.end(), (Vec::new(), End::Closed));
    assert_eq!(unused.end().0, b"");
    assert_eq!(bed.gateway().wait(LIMIT / 2).code(), Some(0));
}

#[test]
fn line_24_it_ends_before_its_deadline_whatever_origins_and_clients_do() {
    let mut bed = stopping("");
    let _slow_head = bed.ask("GET / HTTP/1.1\r\nHo");
    let _slow_body = bed.ask(post_with("Content-Length: 10\r\n", "first"));
    let mut origin = bed.origin.accept();
    origin.head();
    let mut silent = bed.ask(GET);
    let mut one = bed.origin.accept();
    one.head();
    let mut amid = bed.ask(GET);
    let mut other = bed.origin.accept();
    other.head();
    other.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfirst");
    amid.wait_for("first");
    let began = now();
    stop(&mut bed);
    bed.gateway().wait(LIMIT + PARTING);
    let took = began.elapsed();
    assert!(took + 1000 * MS > LIMIT, "they had their time: {took:?}");
    // 503 and the end, or only the end.
    let (received, _) = silent.end();
    assert!(received.is_empty() || received.starts_with(b"HTTP/1.1 503 "));
    assert!(amid.try_answer_to("GET", LIMIT).is_err(), "no clean end");
}
