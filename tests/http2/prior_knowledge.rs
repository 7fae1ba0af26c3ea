//! Tests of clients with prior knowledge of HTTP/2 on a plain address, and of odd prefaces.
//!
//! `tests/counterparts/curl` has curl and nghttp.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use crate::support::frames::{self, END_STREAM, Frames, Outcome, PREFACE, head, settings};
use crate::support::secure;
use crate::support::{Gateway, Origin, Raw, one_origin, side_by_side};

fn drip(origin: &Origin, server: &str) -> Gateway {
    Gateway::start(&file(origin, server))
}

fn file(origin: &Origin, server: &str) -> String {
    one_origin(origin.address, &format!("workers = 1\n{server}"), "")
}

fn get() -> Vec<u8> {
    let fields = frames::request("GET", "/");
    [settings(&[(1, 0)]), head(1, END_STREAM, &fields)].concat()
}

#[test]
fn a_preface_may_come_in_pieces() {
    let origin = Origin::start();
    let gateway = drip(&origin, "");
    let whole = [PREFACE, &get()].concat();
    for cut in [1, 2, 3, 14, 18, 23, 24, 25, 33, 40, whole.len()] {
        let tcp = std::net::TcpStream::connect(gateway.address()).expect("a connection");
        tcp.set_nodelay(true).expect("no delay");
        tcp.set_read_timeout(Some(crate::support::SOON))
            .expect("a timeout");
        let mut client = Frames::over(tcp);
        client.send(&whole[..cut]).expect("it reads");
        thread::sleep(Duration::from_millis(20));
        client.send(&whole[cut..]).expect("it reads");
        assert_eq!(client.outcome(1), Outcome::Status(200), "cut at {cut}");
    }
    let tcp = std::net::TcpStream::connect(gateway.address()).expect("a connection");
    tcp.set_nodelay(true).expect("no delay");
    let mut client = Frames::over(tcp);
    for byte in &whole {
        client.send([*byte]).expect("it reads");
        thread::sleep(Duration::from_micros(200));
    }
    assert_eq!(client.outcome(1), Outcome::Status(200));
}

/// Returns the response to these bytes if nothing follows.
fn received(to: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut client = Raw::connect(to);
    client.send(bytes);
    // As over TLS, a connection that began gets some time to end.
    client.end_within(crate::support::PATIENCE).0
}

#[test]
fn a_preface_that_ends_early_or_goes_on_with_rubbish_serves_nothing() {
    let origin = Origin::start();
    let gateway = drip(&origin, "header_timeout = \"500ms\"");
    let address = gateway.address();
    side_by_side([1, 3, 14, 16, 23], |length| {
        let came = received(address, &PREFACE[..length]);
        assert!(came.starts_with(b"HTTP/1.1 408 "), "{length}: {came:?}");
    });
    // Another line than the preface is an HTTP/1 request with an unknown version.
    for other in [
        "PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n",
        "PRI * HTTP/2.0\r\nHost: a\r\n\r\n",
        "PRI / HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "pri * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "GET / HTTP/2.0\r\nHost: a\r\n\r\n",
        "\r\nPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        let came = received(address, other.as_bytes());
        assert!(came.starts_with(b"HTTP/1.1 400 "), "{other:?}: {came:?}");
    }
    let all = [
        &b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"[..],
        &[0xff; 100],
        &[0; 100],
        b"",
    ];
    side_by_side(all, |rubbish| {
        let came = received(address, &[PREFACE, rubbish].concat());
        let is_answered = came.windows(5).any(|at| at == b"HTTP/");
        assert!(!is_answered, "{rubbish:?}: {came:?}");
    });
    assert_eq!(origin.arrivals().len(), 0);
    assert_eq!(crate::support::fetch(address, "/").status, 200);
}

#[test]
fn a_preface_is_only_the_first_thing_on_a_plain_connection() {
    let origin = Origin::start();
    let gateway = drip(&origin, "");
    let second = [b"GET /one HTTP/1.1\r\nHost: a\r\n\r\n", PREFACE, &get()].concat();
    let mut client = Raw::connect(gateway.address());
    client.send(&second);
    assert_eq!(client.answer().status(), 200);
    assert_eq!(client.answer().status(), 400);
    let (rest, _) = client.end();
    assert_eq!(rest, b"");
    assert_eq!(origin.arrivals().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn over_tls_only_alpn_chooses_http_2() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let origin = Origin::start();
    let gateway = secure::gateway("", &file(&origin, "").replace("workers = 1\n", ""));
    for protocols in [&[][..], &["http/1.1"]] {
        let (mut tls, _) = secure::connect(&gateway, "a.test", protocols).await;
        tls.write_all(&[PREFACE, &get()].concat())
            .await
            .expect("it reads");
        let mut came = Vec::new();
        // The way in which it ends does not matter.
        let _end = tls.read_to_end(&mut came).await;
        assert!(came.starts_with(b"HTTP/1.1 400 "), "{came:?}");
    }
    assert_eq!(origin.arrivals().len(), 0);
}
