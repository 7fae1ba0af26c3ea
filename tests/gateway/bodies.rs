//! Bodies pass intact, while they arrive.

use std::io::Write;
use std::sync::Mutex;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use crate::support::{
    Answer, Client, End, Exchange, Gateway, Origin, Raw, SOON, half_alone, one_zone,
};

const MB: usize = 1 << 20;

/// Bytes in which every swap, loss or repetition is visible.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x2545_f491_u32;
    let next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state.to_le_bytes()[0]
    };
    std::iter::repeat_with(next).take(length).collect()
}

/// `body` in chunks of sizes that fit no buffer.
fn chunked(body: &[u8]) -> Vec<u8> {
    let mut framed = Vec::with_capacity(body.len() + body.len() / 100);
    for piece in body.chunks(60_007) {
        framed.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        framed.extend_from_slice(piece);
        framed.extend_from_slice(b"\r\n");
    }
    framed.extend_from_slice(b"0\r\n\r\n");
    framed
}

fn gateway_to(origin: &Origin) -> Gateway {
    Gateway::start(&one_zone(origin, "1000r/s", "burst = 1000"))
}

/// Sends `head` and then `body` on a thread of its own, so that neither direction waits for the other.
fn send_all(client: &mut Client, head: &str, body: Vec<u8>) -> thread::JoinHandle<()> {
    client.send(head.as_bytes());
    let mut sender = client.sender();
    thread::spawn(move || sender.write_all(&body).expect("the gateway reads"))
}

fn echo(exchange: &mut Exchange) -> std::io::Result<()> {
    let body = exchange.body()?;
    if exchange.head.is_chunked() {
        exchange
            .send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-Came: chunked\r\n\r\n")?;
        exchange.send(&chunked(&body))
    } else {
        let length = body.len();
        exchange.send(
            format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nX-Came: whole\r\n\r\n")
                .as_bytes(),
        )?;
        exchange.send(&body)
    }
}

fn check_intact(answer: &Answer, body: &[u8]) {
    assert_eq!(answer.status, 200);
    assert_eq!(answer.body.len(), body.len());
    let odd = answer
        .body
        .iter()
        .zip(body)
        .position(|(one, other)| one != other);
    assert_eq!(odd, None, "the first byte that differs");
}

#[test]
fn ten_megabytes_with_a_length_pass_intact_both_ways() {
    let _alone = half_alone();
    let origin = Origin::answering(echo);
    let gateway = gateway_to(&origin);
    let body = noise(10 * MB);
    let mut client = Client::connect(gateway.address());
    let head = format!(
        "POST / HTTP/1.1\r\nHost: test\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let sending = send_all(&mut client, &head, body.clone());
    let answer = client.answer();
    sending.join().expect("all sent");
    assert_eq!(answer.field("x-came"), Some("whole"));
    assert_eq!(answer.head.length(), Some(body.len() as u64));
    check_intact(&answer, &body);
}

#[test]
fn ten_megabytes_in_chunks_pass_intact_both_ways() {
    let _alone = half_alone();
    let origin = Origin::answering(echo);
    let gateway = gateway_to(&origin);
    let body = noise(10 * MB);
    let mut client = Client::connect(gateway.address());
    let head = "POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n";
    let sending = send_all(&mut client, head, chunked(&body));
    let answer = client.answer();
    sending.join().expect("all sent");
    assert_eq!(answer.field("x-came"), Some("chunked"));
    assert!(answer.head.is_chunked() && answer.head.length().is_none());
    check_intact(&answer, &body);
}

#[test]
fn the_origin_gets_the_first_bytes_before_the_client_has_sent_the_last() {
    let (got, gets) = mpsc::channel();
    let got = Mutex::new(got);
    let origin = Origin::answering(move |exchange| {
        exchange.pass_body(|piece| {
            got.lock()
                .expect("no panic")
                .send(piece.to_vec())
                .expect("the test runs");
        })?;
        exchange.reply(b"ok")
    });
    let gateway = gateway_to(&origin);
    let first =
        |gets: &Receiver<Vec<u8>>| gets.recv_timeout(SOON).expect("the first bytes have come");

    let mut client = Client::connect(gateway.address());
    client.send(b"POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 10\r\n\r\nfirst");
    assert_eq!(first(&gets), b"first");
    client.send(b"later");
    assert_eq!(client.answer().status, 200);
    assert_eq!(first(&gets), b"later");

    client
        .send(b"POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n");
    assert_eq!(first(&gets), b"first");
    client.send(b"5\r\nlater\r\n0\r\n\r\n");
    assert_eq!(client.answer().status, 200);
    assert_eq!(first(&gets), b"later");
}

/// An origin that sends one half of its response, and the other half when told to.
fn origin_in_halves(one: &'static [u8], other: &'static [u8]) -> (Origin, Sender<()>) {
    let (go, told) = mpsc::channel();
    let told = Mutex::new(told);
    let origin = Origin::answering(move |exchange| {
        exchange.send(one)?;
        told.lock()
            .expect("no panic")
            .recv_timeout(SOON)
            .expect("the client has the first bytes");
        exchange.send(other)
    });
    (origin, go)
}

#[test]
fn the_client_gets_the_first_bytes_before_the_origin_has_sent_the_last() {
    let (origin, go) = origin_in_halves(
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfirst",
        b"later",
    );
    let gateway = gateway_to(&origin);
    let mut client = Client::ask(gateway.address(), "/");
    assert_eq!(client.head().length(), Some(10));
    let mut bytes = [0; 5];
    client.read_exact(&mut bytes);
    assert_eq!(&bytes, b"first");
    go.send(()).expect("the origin waits");
    client.read_exact(&mut bytes);
    assert_eq!(&bytes, b"later");
}

#[test]
fn the_client_gets_the_first_chunk_before_the_origin_has_sent_the_last() {
    let (origin, go) = origin_in_halves(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n",
        b"5\r\nlater\r\n0\r\n\r\n",
    );
    let gateway = gateway_to(&origin);
    let mut client = Client::ask(gateway.address(), "/");
    let head = client.head();
    assert!(head.is_chunked());
    let mut body = Vec::new();
    let mut told = false;
    let passed = client.pass_body(&head, |piece| {
        body.extend_from_slice(piece);
        if !told {
            assert_eq!(piece, b"first");
            told = true;
            go.send(()).expect("the origin waits");
        }
    });
    passed.expect("a clean end");
    assert_eq!(body, b"firstlater");
}

#[test]
fn whoever_sends_on_after_a_refusal_is_borne_with_also_behind_one_that_waited() {
    let origin = Origin::start();
    let zone = one_zone(&origin, "2r/s", "burst = 1");
    let gateway = Gateway::start(&format!("max_body_size = \"1KB\"\n{zone}"));
    let get = "GET /?key=a HTTP/1.1\r\nHost: test\r\n\r\n";
    let upload = "POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 10000000\r\n\r\n";
    let piece = [0; 10_000];
    let mut client = Raw::connect(gateway.address());
    client.send(get.repeat(2) + upload);
    // More than is kept while the second one waits.
    client.send(piece);
    let statuses = [(); 3].map(|()| client.answer().status());
    assert_eq!(statuses, [200, 200, 413]);
    for nth in 0..10 {
        thread::sleep(Duration::from_millis(100));
        let sent = client.try_send(piece);
        assert!(sent.is_ok(), "piece {nth} after the answer: {sent:?}");
    }
    client.shut_sending();
    assert_eq!(client.end(), (Vec::new(), End::Closed));
}
