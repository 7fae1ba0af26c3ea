//! Tests of HTTP/1.1 within TLS.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use crate::support::secure::{connect, gateway};
use crate::support::{Gateway, Origin, RawOrigin, SOON, now, one_origin, one_zone};

#[tokio::test(flavor = "multi_thread")]
async fn requests_go_on_with_their_scheme_and_the_connection_too() {
    let origin = Origin::answering(|exchange| {
        let scheme = exchange
            .field("x-forwarded-proto")
            .unwrap_or("none")
            .to_owned();
        let body = exchange.body()?;
        exchange.reply(&[scheme.as_bytes(), b" ", &body].concat())
    });
    let gateway = gateway("", &one_zone(&origin, "1000r/s", "burst = 9"));
    for protocols in [&["http/1.1"][..], &[]] {
        let (mut tls, _) = connect(&gateway, "a.test", protocols).await;
        for body in ["one", "two"] {
            let length = body.len();
            let request = format!(
                "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: {length}\r\n\r\n{body}"
            );
            tls.write_all(request.as_bytes()).await.expect("it reads");
            let expected = format!("\r\n\r\nhttps {body}");
            let mut come = Vec::new();
            while !come.ends_with(expected.as_bytes()) {
                assert_ne!(tls.read_buf(&mut come).await.expect("an answer"), 0);
            }
            assert!(come.starts_with(b"HTTP/1.1 200 OK\r\n"));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_client_that_closes_frees_its_slot() {
    let origin = Origin::start();
    let gateway = gateway("", &one_zone(&origin, "1r/m", "burst = 5"));
    let mut clients = Vec::new();
    for nth in 0..3 {
        let (mut tls, _) = connect(&gateway, "a.test", &[]).await;
        let request = b"GET /?key=a HTTP/1.1\r\nHost: a.test\r\n\r\n";
        tls.write_all(request).await.expect("it reads");
        if nth == 0 {
            // This is the request that does not wait, whichever worker is faster.
            until(&mut tls, "ok").await;
        }
        clients.push(tls);
    }
    gateway.wait_for_depth(2);
    // One client closes TLS properly, another just disconnects.
    clients
        .pop()
        .expect("a client")
        .shutdown()
        .await
        .expect("a farewell");
    gateway.wait_for_depth(1);
    clients.pop();
    gateway.wait_for_depth(0);
}

/// Starts a gateway with TLS and these fields of its origin. Returns a connection and the origin.
async fn bed(more: &str) -> (Gateway, TlsStream<TcpStream>, RawOrigin) {
    let origin = RawOrigin::start();
    let file = one_origin(origin.address, "", more);
    let gateway = gateway("workers = 1", &file);
    let (tls, _) = connect(&gateway, "a.test", &["http/1.1"]).await;
    (gateway, tls, origin)
}

/// Reads the bytes up to and including `mark`.
async fn until(tls: &mut TlsStream<TcpStream>, mark: &str) -> String {
    let mut come = Vec::new();
    while !come.ends_with(mark.as_bytes()) {
        let more = tokio::time::timeout(SOON, tls.read_buf(&mut come)).await;
        let more = more.unwrap_or_else(|_| panic!("no {mark:?} in {come:?}"));
        assert_ne!(more.expect("a connection"), 0, "{come:?}");
    }
    String::from_utf8(come).expect("text")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tunnel_passes_bytes_both_ways_and_ends_in_silence() {
    let (_gateway, mut tls, origins) = bed("tunnel_timeout = \"1s\"").await;
    let head =
        "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";
    tls.write_all(head.as_bytes()).await.expect("it reads");
    let mut origin = origins.accept();
    origin.head();
    origin.send(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\nfirst",
    );
    let received = until(&mut tls, "first").await;
    assert!(received.starts_with("HTTP/1.1 101 "), "{received}");
    let large = vec![b'x'; 300_000];
    tls.write_all(&large).await.expect("it reads");
    assert!(origin.exactly(large.len()) == large, "to the origin");
    origin.send("last");
    until(&mut tls, "last").await;
    let began = now();
    let mut rest = Vec::new();
    let end = tokio::time::timeout(SOON, tls.read_to_end(&mut rest)).await;
    // The kind of end does not matter.
    let _how = end.expect("an end in time");
    assert_eq!(rest, b"");
    assert_eq!(origin.end().0, b"");
    let took = began.elapsed();
    assert!((900..4000).contains(&took.as_millis()), "{took:?}");
}
