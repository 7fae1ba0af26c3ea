//! Tests of HTTP/2, chosen by ALPN.

use std::convert::Infallible;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming};
use hyper::client::conn::http2::SendRequest;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustix::net::{Shutdown, shutdown};
use rustix::process::Signal;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::client::TlsStream;

use crate::support::secure::{connect, gateway};
use crate::support::{Gateway, Origin, check_pace, now, one_zone};

/// Pieces of a body. The last one is sent with the end.
#[derive(Default)]
struct Pieces(Vec<Bytes>);

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.pop().map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }
}

type Ended = JoinHandle<hyper::Result<()>>;

async fn open(gateway: &Gateway) -> (SendRequest<Pieces>, Ended) {
    let (tls, _) = connect(gateway, "a.test", &["h2", "http/1.1"]).await;
    assert_eq!(tls.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    greet(tls).await
}

async fn greet(tls: TlsStream<TcpStream>) -> (SendRequest<Pieces>, Ended) {
    let (sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(tls))
            .await
            .expect("HTTP/2");
    (sender, tokio::spawn(connection))
}

fn get(target: &str) -> Request<Pieces> {
    let request = Request::get(format!("https://a.test{target}"));
    request.body(Pieces::default()).expect("a request")
}

async fn text(response: Response<Incoming>) -> Vec<u8> {
    let (mut body, mut whole) = (response.into_body(), Vec::new());
    while let Some(frame) = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        whole.extend(frame.expect("a body").into_data().unwrap_or_default());
    }
    whole
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_reaches_the_origin_as_one_of_http_1_1() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let to_see = Arc::clone(&seen);
    let origin = Origin::answering(move |exchange| {
        let body = exchange.body()?;
        let line = exchange.head.first_line.clone();
        let fields = exchange.head.fields.clone();
        to_see.lock().expect("no panic").push((line, fields, body));
        exchange.send(b"HTTP/1.1 201 Made\r\nConnection: keep-alive\r\nKeep-Alive: timeout=5\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nyes\r\n0\r\n\r\n")
    });
    let gateway = gateway("", &one_zone(&origin, "1000r/s", "burst = 9"));
    let (mut sender, _ended) = open(&gateway).await;
    let request = Request::post("https://a.test/a%2Fb?x=1")
        .header("cookie", "c=1")
        .header("cookie", "d=2")
        .header("x-own", "mine")
        .body(Pieces(vec!["second".into(), "first ".into()]))
        .expect("a request");
    let response = sender.send_request(request).await.expect("an answer");
    assert_eq!(response.status(), 201);
    let cookies: Vec<_> = response.headers().get_all("set-cookie").iter().collect();
    assert_eq!(cookies, ["a=1", "b=2"]);
    let hop = ["connection", "keep-alive", "transfer-encoding"];
    let headers = response.headers();
    let is_absent = |name: &&str| !headers.contains_key(*name);
    assert!(hop.iter().all(is_absent), "{headers:?}");
    assert_eq!(text(response).await, b"yes");

    let (line, mut fields, body) = seen.lock().expect("no panic").remove(0);
    assert_eq!(line, "POST /a%2Fb?x=1 HTTP/1.1");
    assert_eq!(body, b"first second");
    fields.sort();
    let fields: Vec<_> = fields
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    assert_eq!(
        fields,
        [
            ("cookie", "c=1; d=2"),
            ("host", "a.test"),
            ("transfer-encoding", "chunked"),
            ("x-forwarded-for", "127.0.0.1"),
            ("x-forwarded-host", "a.test"),
            ("x-forwarded-proto", "https"),
            ("x-own", "mine"),
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_of_one_connection_wait_in_their_queues_side_by_side() {
    let origin = Origin::start();
    let file = one_zone(&origin, "10r/s", "burst = 5");
    let gateway = gateway("hold_streams = false", &file);
    let (sender, _ended) = open(&gateway).await;
    // The connection to the origin is open, so that the first of those measured arrives at once.
    let first = sender.clone().send_request(get("/?key=first")).await;
    assert_eq!(first.expect("an answer").status(), 200);
    let asked: Vec<_> = (0..8)
        .map(|_| {
            let mut sender = sender.clone();
            tokio::spawn(async move {
                sender
                    .send_request(get("/?key=slow"))
                    .await
                    .expect("an answer")
            })
        })
        .collect();
    gateway.wait_for_depth(5);
    // A request of another key overtakes the waiting ones.
    let other = sender.clone().send_request(get("/?key=other")).await;
    assert_eq!(other.expect("an answer").status(), 200);
    assert!(asked.iter().any(|asked| !asked.is_finished()));
    let mut statuses = Vec::new();
    for asked in asked {
        let response = asked.await.expect("no panic");
        if response.status() == 429 {
            assert!(response.headers().contains_key("retry-after"));
        }
        statuses.push(response.status().as_u16());
    }
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 200, 200, 200, 200, 200, 429, 429]);
    check_pace(&origin.moments("slow"), Duration::from_millis(100)).expect("their pace");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_cancelled_while_it_waits_frees_its_slot() {
    let origin = Origin::start();
    let gateway = gateway("", &one_zone(&origin, "1r/m", "burst = 5"));
    let (tls, _) = connect(&gateway, "a.test", &["h2"]).await;
    let socket = tls
        .get_ref()
        .0
        .as_fd()
        .try_clone_to_owned()
        .expect("a handle");
    let (sender, _ended) = greet(tls).await;
    let ask = || {
        let mut sender = sender.clone();
        tokio::spawn(async move { sender.send_request(get("/?key=a")).await })
    };
    let answer = ask().await.expect("no panic").expect("an answer");
    assert_eq!(answer.status(), 200);
    let waiting = [ask(), ask(), ask()];
    gateway.wait_for_depth(3);
    waiting[1].abort();
    gateway.wait_for_depth(2);
    // If the connection closes, all requests that wait on it are cancelled.
    shutdown(&socket, Shutdown::Both).expect("an open connection");
    gateway.wait_for_depth(0);
    assert_eq!(gateway.requests("/", "499"), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_connection_ends_after_keep_alive_and_one_in_use_does_not() {
    let origin = Origin::start();
    let server = "keep_alive = \"1s\"";
    let gateway = gateway(server, &one_zone(&origin, "1r/s", "burst = 5"));
    let (mut sender, ended) = open(&gateway).await;
    let answer = sender.send_request(get("/?key=a")).await;
    assert_eq!(answer.expect("an answer").status(), 200);
    let waits: Vec<_> = (0..2)
        .map(|_| sender.send_request(get("/?key=a")))
        .collect();
    let since = now();
    for wait in waits {
        assert_eq!(wait.await.expect("an answer").status(), 200);
    }
    let took = since.elapsed();
    assert!(took > Duration::from_millis(1500), "{took:?}");
    assert!(!ended.is_finished());
    let since = now();
    tokio::time::timeout(Duration::from_secs(5), ended)
        .await
        .expect("the connection ends")
        .expect("no panic")
        .expect("in peace");
    let took = since.elapsed();
    assert!(took > Duration::from_millis(900), "{took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_lets_the_requests_of_a_connection_finish_and_takes_no_more() {
    let origin = Origin::start();
    let mut gateway = gateway("", &one_zone(&origin, "2r/s", "burst = 5"));
    let (mut sender, ended) = open(&gateway).await;
    let asked: Vec<_> = (0..3)
        .map(|_| sender.send_request(get("/?key=a")))
        .collect();
    gateway.wait_for_depth(2);
    gateway.signal(Signal::TERM);
    for asked in asked {
        assert_eq!(asked.await.expect("an answer").status(), 200);
    }
    assert!(sender.send_request(get("/?key=b")).await.is_err());
    ended.await.expect("no panic").expect("in peace");
    assert_eq!(gateway.wait(Duration::from_secs(5)).code(), Some(0));
}
