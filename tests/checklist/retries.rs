//! Checklist line 21: requests that are retried, and requests that are not retryable.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex};
use std::thread;

use super::bed::{GET, MS, OK, Testbed, ask, everybody, forwarding, post_with, with_drip};
use crate::peers;
use crate::support::{Exchange, Gateway, Origin, Raw};

/// Number of requests at an origin, by target.
type Times = Arc<Mutex<HashMap<String, usize>>>;

/// Starts an origin that counts requests and reads their bodies.
fn counting(answer: fn(&mut Exchange) -> io::Result<()>) -> (Origin, Times) {
    let seen = Times::default();
    let counted = Arc::clone(&seen);
    let origin = Origin::answering(move |exchange| {
        let target = exchange.target().to_owned();
        *counted.lock().expect("no panic").entry(target).or_default() += 1;
        exchange.body()?;
        answer(exchange)
    });
    (origin, seen)
}

/// Starts an origin that closes each connection when its second request arrives.
fn breaks_its_second_request() -> (Origin, Times) {
    counting(|exchange| match exchange.nth {
        1 => exchange.reply(b"ok"),
        _ => Exchange::close(),
    })
}

fn request(method: &str, target: &str, body: &str) -> String {
    let length = body.len();
    let framing = if length == 0 {
        String::new()
    } else {
        format!("Content-Length: {length}\r\n")
    };
    format!("{method} {target} HTTP/1.1\r\nHost: test\r\n{framing}\r\n{body}")
}

#[test]
fn line_21_what_is_idempotent_and_has_no_body_is_sent_once_more() {
    // haproxy retries only if it is configured to.
    let (origin, seen) = breaks_its_second_request();
    let nginx = peers::nginx(origin.address, "");
    let drip = Gateway::start(&forwarding(&[origin.address], ""));
    for (who, to) in with_drip([&nginx], &drip) {
        let mut client = Raw::connect(to);
        for method in ["GET", "HEAD", "GET", "DELETE", "OPTIONS", "GET"] {
            client.send(request(method, "/", ""));
            assert_eq!(client.answer_to(method).status(), 200, "{who}: {method}");
        }
        let times = seen.lock().expect("no panic").remove("/");
        let are_resent = times > Some(6);
        assert!(are_resent, "{who}: some of six were sent again: {times:?}");
    }
}

#[test]
fn line_21_a_post_or_a_body_is_never_sent_twice() {
    let (origin, seen) = breaks_its_second_request();
    let nginx = peers::nginx(origin.address, "");
    let drip = Gateway::start(&forwarding(&[origin.address], ""));
    // haproxy closes the client's connection, so that the client may retry.
    for (who, to) in with_drip([&nginx], &drip) {
        let mut client = Raw::connect(to);
        for (nth, (method, body)) in [
            ("POST", "hello"),
            ("POST", ""),
            ("PUT", "hello"),
            ("PATCH", "x"),
            ("LOCK", ""),
        ]
        .into_iter()
        .enumerate()
        {
            if who == "nginx" && method == "PUT" {
                // nginx retries idempotent requests with their bodies, which it keeps.
                continue;
            }
            client.send(request("GET", "/", ""));
            let warm = client.answer().status();
            assert_eq!(warm, 200, "{who}");
            let target = format!("/{who}/{nth}");
            client.send(request(method, &target, body));
            let status = client.answer().status();
            assert!(status == 502 || status == 200, "{who}: {method}: {status}");
            let times = seen.lock().expect("no panic").get(&target).copied();
            assert_eq!(times, Some(1), "{who}: {method} {body:?}");
        }
    }
}

#[test]
fn line_21_no_request_is_sent_more_than_twice() {
    let origin = Origin::answering(|_| Exchange::close());
    let nginx = peers::nginx(origin.address, "");
    let haproxy = peers::haproxy(origin.address, "");
    let drip = Gateway::start(&forwarding(&[origin.address], ""));
    for (who, to) in with_drip([&nginx, &haproxy], &drip) {
        for (method, body, most) in [
            ("GET", "", 2),
            ("DELETE", "", 2),
            ("POST", "", 1),
            ("POST", "hello", 1),
        ] {
            let before = origin.arrivals().len();
            assert_eq!(ask(to, &request(method, "/", body)).status(), 502, "{who}");
            let times = origin.arrivals().len() - before;
            assert!(times <= most, "{who}: {method} came {times} times");
        }
    }
}

#[test]
fn line_21_an_origin_that_closes_after_each_answer_costs_no_client_a_5xx() {
    let (origin, seen) = counting(|exchange| {
        exchange.reply(b"ok")?;
        Exchange::close()
    });
    let nginx = peers::nginx(origin.address, "");
    let drip = Gateway::start(&forwarding(&[origin.address], ""));
    // haproxy does not retry a request that was lost with an idle connection.
    for (who, to) in with_drip([&nginx], &drip) {
        let mut client = Raw::connect(to);
        for nth in 0..200 {
            client.send(GET);
            assert_eq!(client.answer().status(), 200, "{who}: request {nth}");
        }
        for nth in 0..50 {
            let target = format!("/{who}/{nth}");
            client.send(request("POST", &target, "hello"));
            let status = client.answer().status();
            let times = seen.lock().expect("no panic").remove(&target).unwrap_or(0);
            // If the origin closed at the same time, it is unknown whether it received the request.
            let is_sent_or_failed = times == 1 && status == 200 || times == 0 && status == 502;
            assert!(is_sent_or_failed, "{who}: {nth}: {status}, {times} times");
        }
    }
}

#[test]
fn line_21_a_connection_that_the_origin_closed_while_it_was_idle_costs_no_post_a_5xx() {
    for bed in everybody() {
        let mut client = bed.client();
        for nth in 0..20 {
            client.send(request("POST", "/", &"x".repeat(nth + 1)));
            let mut origin = bed.origin.accept();
            assert_eq!(origin.request().body.len(), nth + 1);
            origin.send(OK);
            assert_eq!(client.answer().status(), 200, "{nth}");
            origin.close();
            // The proxy has this long to detect it.
            thread::sleep(20 * MS);
        }
        let seen = bed.seen(post_with("Content-Length: 9\r\n", "last post"));
        assert_eq!(seen.body.len(), 9);
    }
}

#[test]
fn line_21_what_had_an_interim_answer_is_not_sent_again() {
    let bed = Testbed::drip("", "");
    let mut client = bed.ask(GET);
    let mut origin = bed.origin.accept();
    origin.head();
    origin.send(OK);
    assert_eq!(client.answer().status(), 200);
    client.send(request("GET", "/again", ""));
    assert_eq!(origin.head().target(), "/again", "on the kept connection");
    origin.send("HTTP/1.1 103 Early Hints\r\n\r\n");
    assert_eq!(client.head().status(), 103);
    drop(origin);
    assert_eq!(client.answer().status(), 502);
    let again = bed.origin.accept_within(100 * MS);
    assert!(again.is_none(), "its origin had begun to answer");
}
