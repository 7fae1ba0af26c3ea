//! Tests of interim responses, trailers, expectations and early ends on HTTP/2 streams.
//!
//! The test writes every byte of the origin.

use std::future::poll_fn;
use std::time::Duration;

use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::{Reason, SendStream};
use hyper::{HeaderMap, Request, Response};

use crate::support::secure::{connect, gateway};
use crate::support::{Gateway, MS, Raw, RawOrigin, now, one_origin};

const CONTINUE: &str = "HTTP/1.1 100 Continue\r\n\r\n";
const HINTS: &str = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
/// A response that closes the connection, so the next request does not use it.
const OK_AND_CLOSE: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok";
const TRAILERS: &str = "Trailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\
     X-Sum: 1\r\nX-Other: 2\r\nContent-Length: 7\r\nSet-Cookie: a=b\r\nX-Sum: 3\r\n\r\n";

/// A gateway with TLS, a client's connection, and the origin.
struct Testbed {
    gateway: Gateway,
    origin: RawOrigin,
    client: SendRequest<Bytes>,
}

impl Testbed {
    /// Starts a gateway with these fields of the origin.
    async fn start(more: &str) -> Self {
        let origin = RawOrigin::start();
        let file = one_origin(origin.address, "", more);
        let gateway = gateway("workers = 1", &file);
        let (tls, _) = connect(&gateway, "a.test", &["h2"]).await;
        let (client, connection) = h2::client::handshake(tls).await.expect("HTTP/2");
        tokio::spawn(connection);
        Self {
            gateway,
            origin,
            client,
        }
    }

    /// Begins a request, whose body follows unless it `ends`.
    async fn ask(&self, request: Request<()>, ends: bool) -> (ResponseFuture, SendStream<Bytes>) {
        let mut client = self.client.clone().ready().await.expect("a stream");
        client.send_request(request, ends).expect("a request")
    }

    /// Sends a request without a body, which the origin has read.
    async fn get(&self) -> (ResponseFuture, Raw) {
        let (answer, _) = self.ask(get(), true).await;
        let mut origin = self.origin.accept();
        origin.head();
        (answer, origin)
    }

    /// Checks that the connection stays open.
    async fn check_goes_on(&self) {
        let (answer, _) = self.ask(get(), true).await;
        let mut origin = self.origin.accept();
        origin.head();
        origin.send(OK_AND_CLOSE);
        let (body, trailers) = whole(answer.await.expect("an answer")).await;
        assert_eq!((body.as_slice(), trailers), (&b"ok"[..], None));
    }
}

fn get() -> Request<()> {
    let request = Request::get("https://a.test/");
    request.body(()).expect("a request")
}

fn post(fields: &[(&str, &str)]) -> Request<()> {
    let mut request = Request::post("https://a.test/");
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    request.body(()).expect("a request")
}

/// Returns the next interim response; `None` if the final one is next.
async fn interim(answer: &mut ResponseFuture) -> Option<Response<()>> {
    let next = poll_fn(|cx| answer.poll_informational(cx));
    let next = tokio::time::timeout(Duration::from_secs(5), next).await;
    next.expect("an answer in time")
        .map(|next| next.expect("a stream"))
}

/// Fails if an interim response arrives soon.
async fn check_quiet(answer: &mut ResponseFuture, span: Duration) {
    let next = poll_fn(|cx| answer.poll_informational(cx));
    let next = tokio::time::timeout(span, next).await;
    assert!(next.is_err(), "nothing was to come: {next:?}");
}

/// Reads the body and the trailers.
async fn whole(answer: Response<h2::RecvStream>) -> (Vec<u8>, Option<HeaderMap>) {
    let (mut stream, mut body) = (answer.into_body(), Vec::new());
    while let Some(piece) = stream.data().await {
        let piece = piece.expect("a body");
        let room = stream.flow_control().release_capacity(piece.len());
        room.expect("a stream");
        body.extend_from_slice(&piece);
    }
    (body, stream.trailers().await.expect("a whole stream"))
}

fn pairs(fields: &HeaderMap) -> Vec<(&str, &str)> {
    let pair = fields
        .iter()
        .map(|(name, value)| (name.as_str(), value.to_str().expect("text")));
    pair.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn interim_answers_arrive_before_the_final_one_and_are_not_held_back() {
    let bed = Testbed::start("").await;
    let (mut answer, mut origin) = bed.get().await;
    for (sent, status) in [
        (HINTS, 103),
        ("HTTP/1.1 102 Processing\r\n\r\n", 102),
        (HINTS, 103),
    ] {
        origin.send(sent);
        let received = interim(&mut answer).await.expect("an interim answer");
        assert_eq!(received.status(), status);
        let link: &[_] = &[("link", "</a.css>; rel=preload")];
        let expected = if status == 103 { link } else { &[] };
        assert_eq!(pairs(received.headers()), expected, "{status}");
    }
    origin.send(OK);
    assert!(interim(&mut answer).await.is_none());
    let received = answer.await.expect("an answer");
    assert_eq!(received.status(), 200);
    assert_eq!(whole(received).await.0, b"ok");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_100_arrives_only_where_it_is_expected_and_once() {
    let bed = Testbed::start("").await;
    let (mut answer, mut origin) = bed.get().await;
    origin.send(format!("{CONTINUE}{HINTS}{OK_AND_CLOSE}"));
    let received = interim(&mut answer).await.expect("an interim answer");
    assert_eq!(received.status(), 103, "no client expects a 100");
    assert!(interim(&mut answer).await.is_none());
    answer.await.expect("an answer");

    let request = post(&[("expect", "100-continue"), ("content-length", "5")]);
    let (mut answer, mut body) = bed.ask(request, false).await;
    let mut origin = bed.origin.accept();
    assert_eq!(origin.head().field("expect"), Some("100-continue"));
    check_quiet(&mut answer, 100 * MS).await;
    origin.send(CONTINUE.repeat(2));
    let received = interim(&mut answer).await.expect("an interim answer");
    assert_eq!(received.status(), 100);
    assert!(received.headers().is_empty(), "{received:?}");
    check_quiet(&mut answer, 20 * MS).await;
    body.send_data("hello".into(), true).expect("a stream");
    assert_eq!(origin.exactly(5), b"hello");
    origin.send(OK);
    assert!(interim(&mut answer).await.is_none());
    assert_eq!(whole(answer.await.expect("an answer")).await.0, b"ok");
}

#[tokio::test(flavor = "multi_thread")]
async fn trailers_of_an_answer_arrive_but_for_those_that_frame_or_route() {
    let bed = Testbed::start("").await;
    let (answer, mut origin) = bed.get().await;
    origin.send(format!("HTTP/1.1 200 OK\r\n{TRAILERS}"));
    let received = answer.await.expect("an answer");
    assert_eq!(received.headers()["trailer"], "X-Sum");
    assert!(!received.headers().contains_key("transfer-encoding"));
    let (body, trailers) = whole(received).await;
    assert_eq!(body, b"hello");
    let trailers = trailers.expect("trailers");
    let expected = [("x-sum", "1"), ("x-sum", "3"), ("x-other", "2")];
    assert_eq!(pairs(&trailers), expected);
    // The next response on the same connection to the origin has none.
    let (answer, _) = bed.ask(get(), true).await;
    origin.head();
    origin.send(OK);
    let (body, trailers) = whole(answer.await.expect("an answer")).await;
    assert_eq!((body.as_slice(), trailers), (&b"ok"[..], None));
}

#[tokio::test(flavor = "multi_thread")]
async fn trailers_of_a_request_reach_the_origin_but_for_those_that_frame_or_route() {
    let bed = Testbed::start("").await;
    let (answer, mut body) = bed.ask(post(&[("trailer", "x-sum")]), false).await;
    body.send_data("hello".into(), false).expect("a stream");
    let mut trailers = HeaderMap::new();
    for (name, value) in [
        ("x-sum", "1"),
        ("content-length", "7"),
        ("host", "other"),
        ("authorization", "Basic eDp5"),
        ("cookie", "a=b"),
        ("x-forwarded-for", "6.6.6.6"),
        ("x-real-ip", "6.6.6.6"),
        ("x-last", "2"),
    ] {
        trailers.insert(name, value.parse().expect("a value"));
    }
    body.send_trailers(trailers).expect("a stream");
    let mut origin = bed.origin.accept();
    let seen = origin.request();
    assert_eq!(seen.body, b"hello");
    let named: Vec<_> = seen
        .trailers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    assert_eq!(named, [("x-sum", "1"), ("x-last", "2")]);
    assert_eq!(seen.field("trailer"), Some("x-sum"));
    assert_eq!(seen.field("host"), Some("a.test"));
    assert_eq!(seen.field("x-forwarded-for"), Some("127.0.0.1"));
    origin.send(OK);
    assert_eq!(whole(answer.await.expect("an answer")).await.0, b"ok");
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_trailers_of_an_answer_break_the_stream_alone() {
    let bed = Testbed::start("").await;
    let (answer, mut origin) = bed.get().await;
    origin.send(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-Sum : 1\r\n\r\n",
    );
    let mut stream = answer.await.expect("an answer").into_body();
    let broken = loop {
        match stream.data().await {
            Some(Ok(_)) => {}
            Some(Err(error)) => break error,
            None => break stream.trailers().await.expect_err("no clean end"),
        }
    };
    assert!(broken.is_reset(), "{broken:?}");
    bed.check_goes_on().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn as_many_fields_pass_as_in_http_1() {
    let bed = Testbed::start("").await;
    let fields: Vec<_> = (0..250)
        .map(|nth| (format!("x-{nth}"), nth.to_string()))
        .collect();
    let fields: Vec<_> = fields
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    let (answer, _) = bed.ask(post(&fields), true).await;
    let mut origin = bed.origin.accept();
    let seen = origin.head();
    for (name, value) in fields {
        assert_eq!(seen.field(name), Some(value));
    }
    origin.send(OK);
    assert_eq!(answer.await.expect("an answer").status(), 200);
    let log = bed.gateway.log();
    assert!(!log.contains("ERROR"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reset_stream_with_a_stuck_upload_frees_its_permit() {
    let bed = Testbed::start("max_in_flight = 1\nqueue_timeout = \"30s\"").await;
    let (first, mut body) = bed.ask(post(&[]), false).await;
    // As much as the stream's window takes: more than the sockets behind it.
    let piece = Bytes::from(vec![b'x'; 64 << 10]);
    loop {
        body.reserve_capacity(piece.len());
        let room = poll_fn(|cx| body.poll_capacity(cx));
        match tokio::time::timeout(100 * MS, room).await {
            Ok(room) => {
                let room = room.expect("a stream").expect("room");
                let sent = body.send_data(piece.slice(..room.min(piece.len())), false);
                sent.expect("a stream");
            }
            Err(_stuck) => break,
        }
    }
    let mut origin = bed.origin.accept();
    origin.head();
    let (next, _) = bed.ask(get(), true).await;
    let waits = bed.origin.accept_within(50 * MS);
    assert!(waits.is_none(), "the upload has the only permit");
    let began = now();
    body.send_reset(Reason::CANCEL);
    drop(first);
    let mut freed = bed.origin.accept();
    let took = began.elapsed();
    assert!(took < Duration::from_secs(1), "{took:?}");
    freed.head();
    freed.send(OK);
    assert_eq!(whole(next.await.expect("an answer")).await.0, b"ok");
}
