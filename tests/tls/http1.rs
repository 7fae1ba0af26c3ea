//! HTTP/1.1 within TLS.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::secure::{connect, gateway};
use crate::support::{Origin, one_zone};

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
async fn a_waiting_client_that_closes_gives_its_place_back() {
    let origin = Origin::start();
    let gateway = gateway("", &one_zone(&origin, "1r/m", "burst = 5"));
    let mut clients = Vec::new();
    for _ in 0..3 {
        let (mut tls, _) = connect(&gateway, "a.test", &[]).await;
        let request = b"GET /?key=a HTTP/1.1\r\nHost: a.test\r\n\r\n";
        tls.write_all(request).await.expect("it reads");
        clients.push(tls);
    }
    gateway.wait_for_depth(2);
    // One says that it goes, another is just gone.
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
