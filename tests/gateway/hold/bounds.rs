//! Tests of how long, and how many, requests wait for an unreachable origin.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use super::{LATE, MS, ask_all, held, origin_at};
use crate::support::{
    Gateway, assert_contains, close, eventually, fetch, free_address, now, statuses,
};

#[test]
fn an_outage_longer_than_hold_is_a_502_after_hold_and_never_before() {
    let address = free_address();
    let hold = 700 * MS;
    let fields = "rate = \"100r/s\"\nhold = \"700ms\"";
    let gateway = Gateway::start(&held(&[address], fields, ""));
    thread::scope(|scope| {
        for nth in 0..30 {
            thread::sleep(30 * MS);
            let to = gateway.address();
            scope.spawn(move || {
                let began = now();
                assert_eq!(fetch(to, &format!("/{nth}")).status, 502);
                let took = began.elapsed();
                assert!(took >= hold && took < hold + LATE, "{took:?}");
            });
        }
    });
    gateway.wait_at_gate(0);
    assert_eq!(gateway.gate_rejections("outage"), 30);
    let blocked = gateway.value("drip_origin_blocked_seconds_total", &[("by", "outage")]);
    assert!(blocked > Some(1.0), "{blocked:?}");
    assert_eq!(gateway.in_flight(), 0);
    // The origin returns after all.
    let _origin = origin_at(address);
    assert_eq!(gateway.fetch("/").status, 200);
}

#[test]
fn a_server_that_takes_no_connection_in_time_is_a_504_after_hold() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = silent.local_addr().expect("an address");
    let fields = "connect_timeout = \"200ms\"\nhold = \"700ms\"";
    let gateway = Gateway::start(&over_tls(address, fields));
    let began = now();
    let mut clients = ask_all(&gateway, &["/1", "/2"]);
    assert_eq!(clients[0].answer().status, 504);
    // The request's own attempt comes before the hold.
    let took = began.elapsed();
    assert!(took >= 900 * MS && took < 900 * MS + LATE, "{took:?}");
    assert_eq!(clients[1].answer().status, 504);
}

#[test]
fn in_an_outage_a_reload_keeps_waiters_drops_disconnected_ones_and_is_logged() {
    let address = free_address();
    let text = |rate: &str| {
        let fields = format!("rate = \"{rate}\"\nhold = \"30s\"");
        held(&[address], &fields, "")
    };
    let gateway = Gateway::start(&text("20r/s"));
    let mut clients = ask_all(&gateway, &["/1", "/2", "/3", "/4"]);
    let line = gateway.wait_for_line("the origin cannot be reached: its requests wait");
    assert_contains!(line, "app", "refused");
    // The first had left the gate before, the third had not.
    drop(clients.remove(2));
    drop(clients.remove(0));
    gateway.wait_at_gate(2);
    gateway.site.write(&text("50r/s"));
    gateway.wait_for_line("the changed file is in force");
    clients.push(gateway.ask("/5"));
    gateway.wait_at_gate(3);
    let origin = origin_at(address);
    assert_eq!(statuses(&mut clients), [200; 3]);
    gateway.wait_at_gate(0);
    gateway.wait_in_flight(0);
    let targets: Vec<String> = origin.arrivals().into_iter().map(|it| it.target).collect();
    assert_eq!(targets, ["/2", "/4", "/5"]);
    let line = gateway.wait_for_line("the origin can be reached again");
    assert_contains!(line, "waiting=3");
}

#[test]
fn bounds_of_the_queue_and_of_the_route_hold_in_an_outage() {
    let fields = "hold = \"2s\"\nmax_queue = 2";
    let route = "max_wait = \"400ms\"\nreject_status = 429\n\n\
                 [[routes]]\npath = \"/long/\"\norigin = \"app\"";
    let gateway = Gateway::start(&held(&[free_address()], fields, route));
    let began = now();
    let mut short = gateway.ask("/short");
    gateway.wait_at_gate(1);
    let mut long = gateway.ask("/long/");
    gateway.wait_at_gate(2);
    let over = gateway.fetch("/long/over");
    assert!(over.status == 503 && over.number("retry-after") >= 1);
    assert_eq!(short.answer().status, 429);
    let took = began.elapsed();
    assert!(took >= 400 * MS && took < 400 * MS + LATE, "{took:?}");
    assert_eq!(long.answer().status, 502);
    assert!(began.elapsed() >= 2000 * MS);
}

#[test]
fn a_stop_answers_who_waits_for_the_origin() {
    let address = free_address();
    let text = held(&[address], "rate = \"100r/s\"\nhold = \"1m\"", "");
    let text = "shutdown_timeout = \"500ms\"\n".to_owned() + &text;
    let mut gateway = Gateway::start(&text);
    let mut clients = ask_all(&gateway, &["/1", "/2", "/3"]);
    gateway.signal(Signal::TERM);
    assert_eq!(statuses(&mut clients), [503; 3]);
    assert!(gateway.wait(Duration::from_secs(20)).success());
}

/// Accepts connections and closes them before TLS is set up. Counts each attempt.
fn closing() -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let taken = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&taken);
    // The thread ends with the process.
    thread::spawn(move || {
        for connection in listener.incoming() {
            drop(connection);
            counted.fetch_add(1, SeqCst);
        }
    });
    (address, taken)
}

fn over_tls(server: SocketAddr, fields: &str) -> String {
    held(&[server], fields, "").replace("http://", "https://")
}

#[test]
fn however_many_wait_the_origin_is_tried_a_few_times_a_second() {
    let (address, taken) = closing();
    let gateway = Gateway::start(&over_tls(address, "hold = \"1m\""));
    let mut clients = ask_all(&gateway, &["/0"]);
    let (began, before) = (now(), taken.load(SeqCst));
    let ask = |nth| gateway.ask(&format!("/{nth}"));
    clients.extend((1..500).map(ask));
    gateway.wait_at_gate(500);
    let tries = || taken.load(SeqCst) - before;
    eventually("it is tried again and again", || tries() >= 6);
    // The shortest pause is 80 ms.
    let (tries, most) = (tries() as u128, 1 + began.elapsed().as_millis() / 80);
    assert!(tries <= most, "{tries} tries, of {most}");
    // No request gives up, but alerts can see that the origin is down.
    let labels = [("origin", "app"), ("outcome", "unreachable")];
    assert!(gateway.count("drip_origin_requests_total", &labels) >= 6);
}

#[test]
fn no_more_than_max_queue_wait_again() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let gateway = Gateway::start(&over_tls(address, "hold = \"1s\"\nmax_queue = 3"));
    // All requests have left the gate when the first detects the outage.
    let ask = |nth| gateway.ask(&format!("/{nth}"));
    let mut asking: Vec<_> = (0..8).map(ask).collect();
    let taken: Vec<_> = asking.iter().map(|_| listener.accept()).collect();
    close(&listener);
    drop(taken);
    let mut answers = statuses(&mut asking);
    answers.sort_unstable();
    assert_eq!(answers, [502, 502, 502, 503, 503, 503, 503, 503]);
    let counts = ["max_queue", "outage"].map(|reason| gateway.gate_rejections(reason));
    assert_eq!(counts, [5, 3]);
    assert_eq!(gateway.in_flight(), 0);
}

#[test]
fn an_outage_ends_when_hold_leaves_the_file() {
    let before = held(&[free_address()], "rate = \"100r/s\"\nhold = \"1m\"", "");
    let gateway = Gateway::start(&before);
    let mut waiting = ask_all(&gateway, &["/1", "/2"]);
    gateway.site.write(&before.replace("hold = \"1m\"", ""));
    assert_eq!(statuses(&mut waiting), [502; 2]);
    let (began, answer) = (now(), gateway.fetch("/3"));
    assert_eq!(answer.status, 502);
    assert!(began.elapsed() < LATE);
}
