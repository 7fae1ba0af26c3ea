//! Tests that bodies are forwarded intact, while they arrive.

use std::io::Write;
use std::sync::Mutex;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::support::scripted::Hold;
use crate::support::{End, Exchange, Gateway, Origin, Raw, SOON, half_alone, noise, one_zone};

const MB: usize = 1 << 20;

/// Returns `body` in chunks of sizes that fit no buffer.
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

/// Answers with the body as it arrived: in chunks, or with its length.
fn echo(exchange: &mut Exchange) -> std::io::Result<()> {
    let body = exchange.body()?;
    if !exchange.head.is_chunked() {
        return exchange.reply(&body);
    }
    exchange.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")?;
    exchange.send(chunked(&body))
}

#[test]
fn ten_megabytes_with_a_length_or_in_chunks_pass_intact_both_ways() {
    let _alone = half_alone();
    let origin = Origin::answering(echo);
    let gateway = gateway_to(&origin);
    let body = noise(10 * MB);
    let length = format!("Content-Length: {}", body.len());
    for (framing, sent) in [
        (&*length, body.clone()),
        ("Transfer-Encoding: chunked", chunked(&body)),
    ] {
        let mut client = gateway.connect();
        client.send(format!(
            "POST / HTTP/1.1\r\nHost: test\r\n{framing}\r\n\r\n"
        ));
        // On its own thread, so that neither direction waits for the other.
        let mut sender = client.sender();
        let sending = thread::spawn(move || sender.write_all(&sent));
        let answer = client.answer();
        sending.join().expect("no panic").expect("all sent");
        assert_eq!(answer.status, 200);
        let expected = (framing == length).then_some(body.len() as u64);
        assert_eq!(answer.head.length(), expected);
        assert!(answer.body == body, "{} bytes came back", answer.body.len());
    }
}

#[test]
fn the_origin_gets_the_first_bytes_before_the_client_has_sent_the_last() {
    let (got, gets) = mpsc::channel();
    let got = Mutex::new(got);
    let origin = Origin::answering(move |exchange| {
        exchange.pass_body(|piece| {
            let got = got.lock().expect("no panic");
            got.send(piece.to_vec()).expect("the test runs");
        })?;
        exchange.reply(b"ok")
    });
    let gateway = gateway_to(&origin);
    for [head, one, other] in [
        ["Content-Length: 10", "first", "later"],
        [
            "Transfer-Encoding: chunked",
            "5\r\nfirst\r\n",
            "5\r\nlater\r\n0\r\n\r\n",
        ],
    ] {
        let mut client = gateway.connect();
        client.send(format!(
            "POST / HTTP/1.1\r\nHost: test\r\n{head}\r\n\r\n{one}"
        ));
        assert_eq!(gets.recv_timeout(SOON).expect("they come"), b"first");
        client.send(other);
        assert_eq!(client.answer().status, 200);
        assert_eq!(gets.recv_timeout(SOON).expect("they come"), b"later");
    }
}

#[test]
fn the_client_gets_the_first_bytes_before_the_origin_has_sent_the_last() {
    for [head, one, other] in [
        ["Content-Length: 10", "first", "later"],
        [
            "Transfer-Encoding: chunked",
            "5\r\nfirst\r\n",
            "5\r\nlater\r\n0\r\n\r\n",
        ],
    ] {
        let hold = Hold::default();
        let of_origin = hold.clone();
        let origin = Origin::answering(move |exchange| {
            exchange.send(format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n{one}").as_bytes())?;
            of_origin.wait();
            exchange.send(other.as_bytes())
        });
        let gateway = gateway_to(&origin);
        let mut client = gateway.ask("/");
        let head = client.head();
        let mut body = Vec::new();
        let passed = client.pass_body(&head, |piece| {
            body.extend_from_slice(piece);
            // The origin sends no more until these bytes have arrived.
            if body == b"first" {
                hold.open();
            }
        });
        passed.expect("a clean end");
        assert_eq!(body, b"firstlater");
    }
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
    // More than is kept while the second request waits.
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
