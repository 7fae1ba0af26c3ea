//! Tests of origins whose responses are slow or never end, with requests that wait for them.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::{ask, file_with, how, wait_until_passed};
use crate::support::{Exchange, Gateway, MS, Origin, eventually, fetch, now};

fn gateway(origin: SocketAddr, of_origin: &str, collapse: &str) -> Gateway {
    Gateway::start(&file_with(origin, of_origin, "", collapse))
}

/// Sends bytes every 20 ms, until the peer closes.
fn without_end(exchange: &mut Exchange) -> io::Result<()> {
    loop {
        exchange.send(b"5\r\nhello\r\n")?;
        thread::sleep(20 * MS);
    }
}

#[test]
fn what_followed_is_timed_from_its_own_departure() {
    let origin = Origin::answering(|exchange| {
        let is_slow = exchange.target() == "/slow";
        thread::sleep(if is_slow { 600 } else { 100 } * MS);
        exchange.send(b"HTTP/1.1 200 OK\r\nCache-Control: private\r\nContent-Length: 2\r\n\r\nok")
    });
    let gateway = gateway(origin.address, "response_timeout = \"1s\"", "");
    let at = gateway.address();
    // Reused connections: their time began with the previous request.
    let warm: Vec<_> = (0..8)
        .map(|nth| ask(at, &format!("/warm/{nth}"), ""))
        .collect();
    for mut client in warm {
        assert_eq!(client.answer().status, 200);
    }
    let slow: Vec<_> = (0..6).map(|_| ask(at, "/slow", "")).collect();
    for mut client in slow {
        // Up to 3.6 s since its arrival, and 0.6 s since it was sent to the origin.
        assert_eq!(client.answer().status, 200);
    }
}

#[test]
fn an_endless_failing_answer_holds_neither_its_leader_nor_a_permit() {
    let fails = Arc::<AtomicBool>::default();
    let of_origin = Arc::clone(&fails);
    let origin = Origin::answering(move |exchange| {
        if !of_origin.load(Ordering::SeqCst) {
            return exchange.reply(b"good");
        }
        let head = b"HTTP/1.1 500 Internal Server Error\r\nTransfer-Encoding: chunked\r\n\r\n";
        exchange.send(head)?;
        without_end(exchange)
    });
    let gateway = gateway(origin.address, "max_in_flight = 2", "stale = \"10m\"");
    let at = gateway.address();
    assert_eq!(fetch(at, "/page").text(), "good");
    fails.store(true, Ordering::SeqCst);
    for _ in 0..3 {
        let answer = fetch(at, "/page");
        assert_eq!((answer.text().as_str(), how(&answer)), ("good", "stale"));
        thread::sleep(1100 * MS);
    }
    assert!(gateway.shared("refresh") > 0, "a refresh was sent");
    gateway.wait_in_flight(0);
}

/// The wait behind another request counts as part of `hold`.
///
/// The origin gives the leader a response that must not be shared, and then becomes unreachable.
#[test]
fn the_time_behind_another_one_is_a_part_of_hold() {
    const ALONE: &[u8] =
        b"HTTP/1.1 200 OK\r\nCache-Control: private\r\nConnection: close\r\n\r\nok";
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("its address");
    let origin = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        drop(listener);
        let mut head = [0; 1024];
        assert!(stream.read(&mut head).expect("a request") > 0);
        thread::sleep(1500 * MS);
        stream.write_all(ALONE).expect("it is read");
    });
    let fields = "hold = \"2s\"\nrate = \"100r/s\"\nqueue = 100\nqueue_timeout = \"1s\"";
    let gateway = gateway(address, fields, "");
    let mut leader = ask(gateway.address(), "/page", "");
    wait_until_passed(&gateway, 1);
    let began = now();
    let mut follower = ask(gateway.address(), "/page", "");
    assert_eq!(leader.answer().status, 200);
    assert_eq!(follower.answer().status, 502);
    let took = began.elapsed();
    origin.join().expect("no panic");
    // 1.5 s behind the leader, and half a second on its own.
    let allowed = 1900 * MS..3200 * MS;
    assert!(allowed.contains(&took), "{took:?} in all");
}

#[test]
fn what_never_left_is_not_counted_as_sent_and_a_refresh_is_no_request() {
    let fails = Arc::<AtomicBool>::default();
    let of_origin = Arc::clone(&fails);
    let origin = Origin::answering(move |exchange| {
        if exchange.target() == "/busy" {
            thread::sleep(1500 * MS);
        }
        if of_origin.load(Ordering::SeqCst) {
            return exchange.send(b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n");
        }
        exchange.reply(b"ok")
    });
    let fields = "max_in_flight = 1\nqueue = 1\nmax_queue = 1";
    let gateway = gateway(origin.address, fields, "keep = \"1ms\"\nstale = \"1m\"");
    let at = gateway.address();
    let mut busy = ask(at, "/busy", "");
    wait_until_passed(&gateway, 1);
    let mut waits = ask(at, "/waits", "");
    wait_until_passed(&gateway, 2);
    for nth in 0..5 {
        assert_eq!(fetch(at, &format!("/refused/{nth}")).status, 503);
    }
    assert_eq!((busy.answer().status, waits.answer().status), (200, 200));
    assert_eq!(gateway.shared("leader"), 2);
    fails.store(true, Ordering::SeqCst);
    let before = gateway.count("drip_requests_total", &[]);
    let asked = 3;
    for _ in 0..asked {
        let answer = ask(at, "/waits", "").answer();
        assert_eq!(how(&answer), "stale", "{answer:?}");
        thread::sleep(1100 * MS);
    }
    assert!(gateway.shared("refresh") > 0);
    eventually("each is counted once", || {
        gateway.count("drip_requests_total", &[]) - before == asked
    });
}
