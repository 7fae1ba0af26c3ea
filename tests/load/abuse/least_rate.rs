//! Tests of `min_body_rate`: bodies that move byte by byte, in both directions.
//!
//! Also tests what it does not end.

use std::io::Write;
use std::thread;
use std::time::Duration;

use crate::load::abuse::crowd::{One, watch};
use crate::load::abuse::open_gateway;
use crate::support::frames::{
    self, DATA, END_HEADERS, END_STREAM, Frames, INITIAL_WINDOW_SIZE, Outcome, RST_STREAM, frame,
    head, settings, window_update,
};
use crate::support::others::Others;
use crate::support::{Client, Exchange, Gateway, Origin, eventually, now, one_zone, quarter_alone};

/// Settings: single bytes are too slow, and large pieces count for more than one span.
const FLOOR: &str = "body_timeout = \"1s\"\nmin_body_rate = \"1KB/1s\"";
const A_BYTE: Duration = Duration::from_millis(100);
const PIECE: usize = 4096;
const PIECES: usize = 10;
const EVERY: Duration = Duration::from_millis(250);
/// No client is cut off before the span is over.
const EARLIEST: Duration = Duration::from_millis(900);

#[test]
fn bodies_that_come_by_the_byte_are_cut_off_with_408_and_those_at_the_rate_are_not() {
    let _alone = quarter_alone();
    let origin = Origin::counting();
    let gateway = open_gateway(&origin, FLOOR);
    let others = Others::start(&gateway);
    let steady = thread::spawn({
        let to = gateway.address();
        move || {
            let mut client = Client::connect(to);
            let length = PIECE * PIECES;
            let head =
                format!("POST /?key=a HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n");
            client.send(head.as_bytes());
            for _ in 0..PIECES {
                thread::sleep(EVERY);
                client.send([b'x'; PIECE]);
            }
            client.answer()
        }
    });
    let began = now();
    let mut crowd: Vec<_> = (0..100)
        .map(|nth| {
            let framing = if nth % 2 == 0 {
                "Content-Length: 100000"
            } else {
                "Transfer-Encoding: chunked"
            };
            let head = format!("POST /?key=slow HTTP/1.1\r\nHost: a\r\n{framing}\r\n\r\n");
            let mut one = One::connect(gateway.address(), nth);
            assert_eq!(one.send(head.as_bytes()), head.len());
            one
        })
        .collect();
    eventually("all are cut off", || {
        for (nth, one) in crowd.iter_mut().enumerate() {
            if one.ended.is_none() {
                one.send(if nth % 2 == 0 { b"x" } else { b"1\r\nx\r\n" });
            }
        }
        watch(&mut crowd, A_BYTE) == 0
    });
    for (nth, one) in crowd.iter().enumerate() {
        assert_eq!(one.status(), Some(408), "connection {nth}");
        let took = one.ended.expect("it ended") - began;
        assert!(took > EARLIEST, "connection {nth}: {took:?}");
    }
    let answer = steady.join().expect("no panic");
    let length = (PIECE * PIECES).to_string();
    assert_eq!((answer.status, answer.text()), (200, length));
    others.check();
}

fn asking(stream: u32, flags: u8, method: &str, path: &str) -> Vec<u8> {
    let fields = frames::request(method, path);
    head(stream, END_HEADERS | flags, &fields)
}

#[test]
fn over_http_2_only_the_stream_that_comes_by_the_byte_is_cut_off() {
    let origin = Origin::counting();
    let gateway = open_gateway(&origin, FLOOR);
    let mut client = Frames::connect(gateway.address());
    let began = now();
    client.send(asking(1, 0, "POST", "/")).expect("it reads");
    client.send(asking(3, 0, "POST", "/")).expect("it reads");
    let mut sent = 0;
    while began.elapsed() < EARLIEST * 5 / 2 {
        client.send(frame(DATA, 0, 1, b"x")).expect("it reads");
        client
            .send(frame(DATA, 0, 3, [b'x'; 500]))
            .expect("it reads");
        sent += 500;
        thread::sleep(A_BYTE);
    }
    client
        .send(frame(DATA, END_STREAM, 3, []))
        .expect("it reads");
    assert_eq!(client.outcome(1), Outcome::Status(408));
    assert_eq!(client.outcome(3), Outcome::Status(200));
    assert_eq!(client.body(3), Ok(sent.to_string().into_bytes()));
}

/// Reads frames of a response, letting `count` bytes through at a time.
///
/// Returns the number of bytes, and how the response ended if it is not complete.
fn read_by(client: &mut Frames, count: u32, most: usize) -> (usize, Option<Outcome>) {
    let mut got = 0;
    while got < most {
        client.send(window_update(1, count)).expect("it reads");
        loop {
            let next = client.next().expect("a frame");
            if next.stream != 1 {
                continue;
            }
            match next.kind {
                DATA => {
                    got += next.payload.len();
                    break;
                }
                RST_STREAM => return (got, Some(Outcome::Reset(2))),
                _ => {}
            }
        }
        thread::sleep(A_BYTE);
    }
    (got, None)
}

/// Connects an HTTP/2 client that has requested 64 KB, and gives no window yet.
fn reader(gateway: &Gateway) -> Frames {
    let mut client = Frames::connect(gateway.address());
    let closed = settings(&[(INITIAL_WINDOW_SIZE, 0)]);
    client.send(closed).expect("it reads");
    client
        .send(asking(1, END_STREAM, "GET", "/"))
        .expect("it reads");
    client
}

/// A client that reads by the byte is cut off, and one that reads slowly at the rate is not.
///
/// At the rate, a piece of 16 KB takes longer than `body_timeout`, and bytes move all the time.
#[test]
fn who_reads_by_the_byte_is_cut_off_and_who_reads_slowly_at_the_rate_is_not() {
    let origin = Origin::answering(|exchange| exchange.reply(&vec![b'x'; 128 << 10]));
    let gateway = open_gateway(&origin, FLOOR);
    let (got, outcome) = read_by(&mut reader(&gateway), 1, 4096);
    assert!(matches!(outcome, Some(Outcome::Reset(_))), "{got} bytes");
    assert_eq!(read_by(&mut reader(&gateway), 300, 9_000), (9_000, None));
}

/// A minimum rate that no byte by byte traffic reaches.
const STRICT: &str = "body_timeout = \"100ms\"\nmin_body_rate = \"1MB/100ms\"";

#[test]
fn the_time_in_which_the_origin_takes_nothing_or_the_limit_lets_it_wait_is_not_the_clients() {
    let origin = Origin::answering(|exchange| {
        if exchange.target() == "/?key=slow" {
            // The kernel's buffers fill, and the client has to wait.
            thread::sleep(Duration::from_secs(2));
        }
        let length = exchange.body()?.len();
        exchange.reply(length.to_string().as_bytes())
    });
    let zone = one_zone(&origin, "30r/m", "burst = 1");
    let floor = "body_timeout = \"1s\"\nmin_body_rate = \"300KB/1s\"";
    let gateway = Gateway::start(&format!("{floor}\n{zone}"));
    assert_eq!(gateway.fetch("/?key=waits").status, 200);
    for key in ["slow", "waits"] {
        let mut client = gateway.connect();
        let mut sender = client.sender();
        let head =
            format!("POST /?key={key} HTTP/1.1\r\nHost: a\r\nContent-Length: 30000000\r\n\r\n");
        let sending = thread::spawn(move || {
            sender.write_all(head.as_bytes())?;
            sender.write_all(&vec![b'x'; 30_000_000])
        });
        let answer = client.answer();
        assert_eq!((answer.status, answer.text().as_str()), (200, "30000000"));
        sending.join().expect("no panic").expect("all is taken");
    }
}

#[test]
fn an_origin_that_has_little_to_say_is_not_the_clients_fault() {
    let origin = Origin::answering(|exchange| {
        exchange.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")?;
        for _ in 0..10 {
            exchange.send(b"data: x\n\n")?;
            thread::sleep(EVERY);
        }
        Exchange::close()
    });
    let gateway = open_gateway(&origin, STRICT);
    let answer = gateway.ask("/?key=a").answer();
    assert_eq!(answer.text(), "data: x\n\n".repeat(10));
    let mut client = Frames::connect(gateway.address());
    client
        .send(asking(1, END_STREAM, "GET", "/"))
        .expect("it reads");
    assert_eq!(client.outcome(1), Outcome::Status(200));
    assert_eq!(client.body(1), Ok(b"data: x\n\n".repeat(10)));
}
