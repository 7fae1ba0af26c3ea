//! Tests of collapsed requests at an origin with a gate.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use super::{Hold, ask, file, how, wait_until_passed};
use crate::support::{Client, Exchange, Gateway, HoldingOrigin, Origin, half_alone};

/// Returns the file, with these fields of the origin.
fn gated(origin: SocketAddr, fields: &str, collapse: &str) -> String {
    let file = file(origin, collapse);
    file.replacen("\nservers", &format!("\n{fields}\nservers"), 1)
}

/// Sends requests one after the other, each once the gateway has received the previous one.
///
/// Each has its number in the field `X-Nth`. `before`: number of earlier requests.
fn ask_in_order(gateway: &Gateway, target: &str, before: i64, count: i64) -> Vec<Client> {
    let asked = (0..count).map(|nth| {
        let client = ask(gateway.address(), target, &format!("X-Nth: {nth}\r\n"));
        wait_until_passed(gateway, before + nth + 1);
        client
    });
    asked.collect()
}

/// Returns the number of a request; 0 without a number.
fn nth(exchange: &Exchange) -> usize {
    let field = exchange.field("x-nth").unwrap_or("0");
    field.parse().expect("a number")
}

#[test]
fn followers_take_no_room_in_the_queue_of_the_gate() {
    let origin = HoldingOrigin::start();
    let fields = "max_in_flight = 1\nqueue = 1\nmax_queue = 1\nqueue_timeout = \"1m\"";
    let gateway = Gateway::start(&gated(origin.origin.address, fields, ""));
    let mut other = ask(gateway.address(), "/other", "");
    origin.origin.wait_for(1);
    let asked = ask_in_order(&gateway, "/page", 1, 50);
    let refused = ask(gateway.address(), "/third", "").answer();
    assert_eq!(refused.status, 503, "only one request may wait");
    origin.release("/other");
    origin.release("/page");
    assert_eq!(other.answer().status, 200);
    for mut client in asked {
        assert_eq!(client.answer().status, 200);
    }
    assert_eq!(origin.targets(), ["/other", "/page"]);
}

#[test]
fn after_a_private_answer_all_go_on_side_by_side_in_the_order_in_which_they_came() {
    const COUNT: i64 = 10;
    let _half = half_alone();
    let order = Arc::<Mutex<Vec<usize>>>::default();
    let (leader, rest) = (Hold::default(), Hold::default());
    let (seen, of_leader, of_rest) = (Arc::clone(&order), leader.clone(), rest.clone());
    let origin = Origin::answering(move |exchange| {
        let nth = nth(exchange);
        seen.lock().expect("no panic").push(nth);
        // All other requests are at the origin before any gets its response: the second one leads
        // too.
        if nth < 2 { &of_leader } else { &of_rest }.wait();
        let body = format!("{nth:02}");
        let head = "HTTP/1.1 200 OK\r\nCache-Control: Private\r\nContent-Length: 2\r\n\r\n";
        exchange.send(format!("{head}{body}").as_bytes())
    });
    // A slow pace, so that the order at the origin is that of the gate on a busy machine, too.
    let fields = "rate = \"2r/s\"\nqueue = 20\nqueue_timeout = \"20s\"";
    let gateway = Gateway::start(&gated(origin.address, fields, ""));
    let clients = ask_in_order(&gateway, "/page", 0, COUNT);
    origin.wait_for(1);
    leader.open();
    origin.wait_for(clients.len());
    rest.open();
    for (nth, mut client) in clients.into_iter().enumerate() {
        let answer = client.answer();
        assert_eq!(answer.text(), format!("{nth:02}"), "each has its own");
        assert_eq!(how(&answer), "");
    }
    let order = order.lock().expect("no panic");
    assert!(order.is_sorted(), "{order:?}");
}

/// Starts an origin that fails the first request for `/page` when released. It answers all others.
fn failing(fail: fn(&mut Exchange) -> io::Result<()>) -> (Origin, Hold) {
    let (hold, has_failed) = (Hold::default(), AtomicBool::new(false));
    let of_origin = hold.clone();
    let origin = Origin::answering(move |exchange| {
        let is_page = exchange.target() == "/page";
        if is_page {
            of_origin.wait();
        }
        if is_page && !has_failed.swap(true, Ordering::SeqCst) {
            fail(exchange)
        } else {
            exchange.reply(b"ok")
        }
    });
    (origin, hold)
}

fn unavailable(exchange: &mut Exchange) -> io::Result<()> {
    exchange.send(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nbusy")
}

/// Sends half of a response, and ends the connection.
fn broken(exchange: &mut Exchange) -> io::Result<()> {
    exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf of it")?;
    thread::sleep(Duration::from_millis(50));
    Exchange::close()
}

#[test]
fn the_next_one_leads_in_the_line_of_a_leader_that_fails() {
    let (origin, hold) = failing(unavailable);
    let gateway = Gateway::start(&gated(
        origin.address,
        "max_in_flight = 1\nqueue = 1000",
        "",
    ));
    let mut pages = ask_in_order(&gateway, "/page", 0, 5);
    origin.wait_for(1);
    // The requests wait at the gate before the leader fails, and come behind the next leader
    // anyway.
    let mut others = ask_in_order(&gateway, "/x", 5, 1);
    others.extend(ask_in_order(&gateway, "/y", 6, 1));
    hold.open();
    let statuses: Vec<u16> = pages.iter_mut().map(|it| it.answer().status).collect();
    assert_eq!(statuses, [503, 200, 200, 200, 200]);
    for mut other in others {
        assert_eq!(other.answer().status, 200);
    }
    let targets: Vec<String> = origin.arrivals().into_iter().map(|it| it.target).collect();
    assert_eq!(targets, ["/page", "/page", "/x", "/y"]);
}

#[test]
fn a_broken_answer_is_broken_for_the_leader_alone() {
    let (origin, hold) = failing(broken);
    let gateway = Gateway::start(&file(origin.address, ""));
    let mut pages = ask_in_order(&gateway, "/page", 0, 5);
    origin.wait_for(1);
    hold.open();
    let leader = pages.remove(0).try_answer();
    assert!(leader.is_err(), "{leader:?}");
    for mut follower in pages {
        let answer = follower.answer();
        assert_eq!((answer.status, answer.text().as_str()), (200, "ok"));
    }
    assert_eq!(origin.arrivals().len(), 2);
}

#[test]
fn an_answer_that_is_too_large_is_whole_for_the_leader_and_shared_with_nobody() {
    const SIZE: usize = 3_000_000;
    let letter = |part: usize| b'a' + u8::try_from(part % 26).expect("a letter");
    let hold = Hold::default();
    let of_origin = hold.clone();
    // No field says how large the response is.
    let origin = Origin::answering(move |exchange| {
        of_origin.wait();
        exchange.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")?;
        for part in 0..SIZE / 10_000 {
            let chunk = [&b"2710\r\n"[..], &[letter(part); 10_000], b"\r\n"];
            exchange.send(chunk.concat())?;
        }
        exchange.send(b"0\r\n\r\n")
    });
    let gateway = Gateway::start(&file(origin.address, ""));
    let clients = ask_in_order(&gateway, "/page", 0, 4);
    origin.wait_for(1);
    hold.open();
    for mut client in clients {
        let answer = client.answer();
        assert_eq!(answer.body.len(), SIZE);
        let mut parts = answer.body.chunks(10_000).enumerate();
        let is_right = |(nth, part): (usize, &[u8])| part == [letter(nth); 10_000];
        assert!(parts.all(is_right), "the bytes are in order");
    }
    assert_eq!(origin.arrivals().len(), 4);
}

#[test]
fn a_leader_that_disconnects_at_the_gate_keeps_its_position_for_its_followers() {
    let origin = HoldingOrigin::start();
    let gateway = Gateway::start(&gated(
        origin.origin.address,
        "max_in_flight = 1\nqueue = 1000",
        "",
    ));
    let mut busy = ask(gateway.address(), "/busy", "");
    origin.origin.wait_for(1);
    let mut pages = ask_in_order(&gateway, "/page", 1, 3);
    let mut other = ask_in_order(&gateway, "/other", 4, 1);
    drop(pages.remove(0));
    // The gateway has noticed the disconnect.
    thread::sleep(Duration::from_millis(300));
    for target in ["/busy", "/page", "/other"] {
        origin.release(target);
    }
    assert_eq!(busy.answer().status, 200);
    for mut page in pages {
        assert_eq!(page.answer().status, 200);
    }
    assert_eq!(other[0].answer().status, 200);
    assert_eq!(origin.targets(), ["/busy", "/page", "/other"]);
}

#[test]
fn when_all_have_left_the_request_is_given_up() {
    let origin = HoldingOrigin::start();
    let gateway = Gateway::start(&gated(origin.origin.address, "max_in_flight = 1", ""));
    let pages = ask_in_order(&gateway, "/page", 0, 3);
    origin.origin.wait_for(1);
    for page in pages {
        drop(page);
        thread::sleep(Duration::from_millis(50));
    }
    // Its permit is free although the origin still works on the request.
    let mut other = ask(gateway.address(), "/other", "");
    origin.release("/other");
    assert_eq!(other.answer().status, 200);
    origin.release("/page");
}

#[test]
fn a_slow_leader_holds_nobody() {
    const SIZE: usize = 20_000_000;
    let _half = half_alone();
    let hold = Hold::default();
    let of_origin = hold.clone();
    let origin = Origin::answering(move |exchange| {
        of_origin.wait();
        exchange.reply(&vec![b'x'; SIZE])
    });
    let gateway = Gateway::start(&file(origin.address, "max_size = \"30MB\""));
    let mut pages = ask_in_order(&gateway, "/page", 0, 3);
    origin.wait_for(1);
    hold.open();
    // The client reads nothing until the others have the complete response.
    let mut slow = pages.remove(0);
    for mut page in pages {
        assert_eq!(page.answer().body.len(), SIZE);
    }
    assert_eq!(slow.answer().body.len(), SIZE);
    assert_eq!(origin.arrivals().len(), 1);
}
