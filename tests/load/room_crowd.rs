//! A test of a crowd before a room with few sessions.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::process::Process;
use crate::support::visitor::{SECRET, Visitor, full_shop, number, shop, visitors};
use crate::support::{Client, Gateway, Origin, alone, eventually, now};

/// Observations of all visitors.
#[derive(Default)]
struct Seen {
    /// Highest number that was admitted.
    highest: AtomicU64,
    entered: AtomicI64,
    polls: AtomicU64,
    is_over: AtomicBool,
}

/// A visitor of the crowd, which keeps no connection.
#[derive(Default)]
struct Waiting {
    ticket: String,
    number: u64,
}

/// A connection that some visitors share, one after the other.
struct SharedConnection<'s> {
    client: Client,
    seen: &'s Seen,
    /// Time of the next poll of each visitor, and its index.
    due: BinaryHeap<Reverse<(Instant, usize)>>,
    waiting: Vec<Waiting>,
}

impl<'s> SharedConnection<'s> {
    fn new(to: SocketAddr, seen: &'s Seen) -> Self {
        Self {
            client: Client::connect(to),
            seen,
            due: BinaryHeap::new(),
            waiting: Vec::new(),
        }
    }

    /// Sends the first request of each of `count` visitors, and polls until all are inside.
    ///
    /// Visitors poll as the room says.
    fn pass(mut self, count: u16) {
        for index in 0..usize::from(count) {
            let mut visitor = Waiting::default();
            if let Some(after) = self.ask(&mut visitor) {
                self.due.push(Reverse((now() + after, index)));
            }
            self.waiting.push(visitor);
        }
        while let Some(Reverse((at, index))) = self.due.pop() {
            thread::sleep(at.saturating_duration_since(now()));
            let mut visitor = std::mem::take(&mut self.waiting[index]);
            if let Some(after) = self.ask(&mut visitor) {
                self.due.push(Reverse((now() + after, index)));
            }
            self.waiting[index] = visitor;
        }
    }

    /// Polls once. Returns the time until the next poll; `None` if the visitor is inside.
    fn ask(&mut self, visitor: &mut Waiting) -> Option<Duration> {
        let field = match &*visitor.ticket {
            "" => String::new(),
            ticket => format!("Drip-Ticket: {ticket}\r\n"),
        };
        let highest = self.seen.highest.load(Ordering::SeqCst);
        let answer = self.exchange(&field);
        self.seen.polls.fetch_add(1, Ordering::Relaxed);
        if let Some(session) = answer.field("drip-session") {
            let number = number(session);
            assert_eq!(answer.status, 200);
            assert!([0, number].contains(&visitor.number), "it drew again");
            self.seen.highest.fetch_max(number, Ordering::SeqCst);
            self.seen.entered.fetch_add(1, Ordering::SeqCst);
            // The visitor continues at once.
            let again = self.exchange(&format!("Drip-Session: {session}\r\n"));
            assert_eq!((again.status, again.field("drip-session")), (200, None));
            return None;
        }
        assert_eq!(answer.status, 429, "{answer:?}");
        let ticket = answer
            .field("drip-ticket")
            .expect("a ticket, because the client obeys Retry-After");
        let number = number(ticket);
        let is_same = [0, number].contains(&visitor.number);
        assert!(is_same, "it drew again, though it asked in time");
        // A later visitor was inside before it polled.
        let is_behind = visitor.number == 0 || number > highest;
        assert!(is_behind, "{number} waits, and {highest} is inside");
        ticket.clone_into(&mut visitor.ticket);
        visitor.number = number;
        Some(Duration::from_secs(answer.number("retry-after")))
    }

    fn exchange(&mut self, fields: &str) -> crate::support::Answer {
        let request = format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        self.client.send(request.as_bytes());
        self.client.answer()
    }
}

#[test]
#[ignore = "minutes: tests/run.sh long"]
fn twenty_thousand_visitors_enter_in_order_and_never_exceed_sessions() {
    const VISITORS: u16 = 20_000;
    const DOORS: u16 = 40;
    const SESSIONS: i64 = 500;
    let _alone = alone();
    let origin = Origin::start();
    let room = format!("{SECRET}sessions = {SESSIONS}\nidle = \"2s\"\nclaim = \"10s\"");
    let gateway = Gateway::start(&shop(origin.address, &room));
    let at = gateway.address();
    let (seen, began) = (Seen::default(), now());
    let most = thread::scope(|scope| {
        let watching = scope.spawn(|| {
            let mut most = 0;
            while !seen.is_over.load(Ordering::SeqCst) {
                let metrics = gateway.metrics();
                let count = |state| metrics.count("drip_room_visitors", &[("where", state)]);
                let taken = count("inside") + count("called");
                assert!(taken <= SESSIONS, "{taken} sessions are open");
                most = most.max(taken);
                thread::sleep(Duration::from_millis(100));
            }
            most
        });
        let doors: Vec<_> = (0..DOORS)
            .map(|_| scope.spawn(|| SharedConnection::new(at, &seen).pass(VISITORS / DOORS)))
            .collect();
        let passed: Vec<_> = doors
            .into_iter()
            .map(thread::ScopedJoinHandle::join)
            .collect();
        seen.is_over.store(true, Ordering::SeqCst);
        for door in passed {
            door.expect("no visitor was treated wrongly");
        }
        watching
            .join()
            .expect("never more sessions than configured")
    });
    println!(
        "{:?}, {} requests, at most {most} inside",
        began.elapsed(),
        seen.polls.into_inner()
    );
    assert_eq!(seen.entered.into_inner(), i64::from(VISITORS));
    assert_eq!(most, SESSIONS, "all sessions were used");
    let metrics = gateway.metrics();
    let events = |event| metrics.count("drip_room_visitors_total", &[("event", event)]);
    let without = events("walked_in");
    let counts = [events("came"), events("drew")].map(|it| it + without);
    assert_eq!((events("lost"), counts), (0, [i64::from(VISITORS); 2]));
    eventually("all have left", || visitors(&gateway, "inside") == 0);
}

#[test]
#[ignore = "minutes: tests/run.sh long"]
fn a_million_visitors_who_wait_cost_less_than_ten_megabytes() {
    const CONNECTIONS: u16 = 8;
    const AT_ONCE: u16 = 250;
    const EACH: u16 = 500;
    let _alone = alone();
    let origin = Origin::start();
    let gateway = Gateway::start(&full_shop(origin.address, ""));
    let at = gateway.address();
    Visitor::walk_in(at);
    let process = Process::of(gateway.id());
    let before = process.memory();
    let began = now();
    thread::scope(|scope| {
        for _ in 0..CONNECTIONS {
            scope.spawn(move || {
                let mut client = Client::connect(at);
                let mut sender: TcpStream = client.sender();
                let requests = "GET / HTTP/1.1\r\nHost: a\r\n\r\n".repeat(AT_ONCE.into());
                for _ in 0..EACH {
                    sender.write_all(requests.as_bytes()).expect("it reads");
                    for _ in 0..AT_ONCE {
                        assert_eq!(client.answer().status, 429);
                    }
                }
            });
        }
    });
    let grown = process.memory().saturating_sub(before);
    let waiting: i64 = [CONNECTIONS, AT_ONCE, EACH].map(i64::from).iter().product();
    println!(
        "{waiting} wait after {:?}: {grown} bytes more",
        began.elapsed()
    );
    assert_eq!(visitors(&gateway, "waiting"), waiting);
    assert!(grown < 10 << 20, "{grown} bytes");
}
