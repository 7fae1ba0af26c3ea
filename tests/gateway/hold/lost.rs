//! Tests of requests lost with a restarting server, without a byte of a response.

use std::net::{SocketAddr, TcpListener};
use std::thread;

use super::{echo_at, held, origin_at};
use crate::support::frames::{RST_STREAM, frame};
use crate::support::{Exchange, FrameOrigin, Gateway, Origin, Raw, close};

/// Accepts this many requests, each on its own connection, and closes each without a response.
///
/// Its port is closed before the last request is lost, so an immediate retry finds no server.
fn lose(listener: &TcpListener, requests: usize) -> Vec<String> {
    let lose = |nth| {
        let (stream, _) = listener.accept().expect("a connection");
        let mut connection = Raw::over(stream);
        let head = connection.head();
        if nth == requests {
            close(listener);
        }
        head.line
    };
    (1..=requests).map(lose).collect()
}

fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    (listener, address)
}

#[test]
fn a_get_that_was_lost_waits_for_the_server_and_is_sent_once_more() {
    let (listener, address) = listener();
    let gateway = Gateway::start(&held(&[address], "hold = \"30s\"", ""));
    let losing = thread::spawn(move || lose(&listener, 1));
    let mut client = gateway.ask("/1");
    assert_eq!(losing.join().expect("no panic"), ["GET /1 HTTP/1.1"]);
    gateway.wait_at_gate(1);
    let origin = origin_at(address);
    assert_eq!(client.answer().status, 200);
    assert_eq!(origin.arrivals().len(), 1);
    // The loss counts as a failure of the server.
    let broken = [("origin", "app"), ("outcome", "broken")];
    assert_eq!(gateway.count("drip_origin_requests_total", &broken), 1);
}

#[test]
fn what_was_lost_twice_is_a_502() {
    let (listener, address) = listener();
    let gateway = Gateway::start(&held(&[address], "hold = \"30s\"", ""));
    let losing = thread::spawn(move || lose(&listener, 2));
    assert_eq!(gateway.fetch("/1").status, 502);
    assert_eq!(losing.join().expect("no panic").len(), 2);
}

#[test]
fn a_post_or_a_body_or_a_begun_answer_is_never_sent_again_after_a_loss() {
    for request in [
        "POST / HTTP/1.1\r\nHost: test\r\n\r\n",
        "PATCH / HTTP/1.1\r\nHost: test\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: test\r\nContent-Length: 2\r\n\r\nhi",
        "PUT / HTTP/1.1\r\nHost: test\r\nContent-Length: 2\r\n\r\nhi",
    ] {
        let (listener, address) = listener();
        let gateway = Gateway::start(&held(&[address], "hold = \"30s\"", ""));
        let losing = thread::spawn(move || lose(&listener, 1));
        let mut client = gateway.connect();
        client.send(request);
        assert_eq!(client.answer().status, 502, "{request}");
        losing.join().expect("no panic");
    }
    let begun = Origin::answering(|exchange| {
        exchange.send(b"HTTP/1.1 2")?;
        Exchange::close()
    });
    let gateway = Gateway::start(&held(&[begun.address], "hold = \"30s\"", ""));
    assert_eq!(gateway.fetch("/").status, 502);
    assert_eq!(begun.arrivals().len(), 1);
}

#[test]
fn a_put_whose_body_is_buffered_waits_for_the_server_and_is_sent_once_more() {
    let (listener, address) = listener();
    let fields = "hold = \"30s\"\nrequest_buffer = \"64KB\"";
    let gateway = Gateway::start(&held(&[address], fields, ""));
    let losing = thread::spawn(move || lose(&listener, 1));
    let mut client = gateway.connect();
    client.send(b"PUT /1 HTTP/1.1\r\nHost: test\r\nContent-Length: 2\r\n\r\nhi");
    assert_eq!(losing.join().expect("no panic"), ["PUT /1 HTTP/1.1"]);
    gateway.wait_at_gate(1);
    let origin = echo_at(address);
    let answer = client.answer();
    assert_eq!((answer.status, &*answer.body), (200, &b"hi"[..]));
    assert_eq!(origin.arrivals().len(), 1);
}

#[test]
fn over_http2_a_connection_that_ends_is_a_loss_and_a_reset_stream_is_not() {
    let origin = FrameOrigin::start();
    let text = held(&[origin.address], "hold = \"30s\"", "");
    let gateway = Gateway::start(
        &text
            .replace("http://", "h2c://")
            .replace("workers = 4", "workers = 1"),
    );
    origin.next(|_, _| Err(std::io::ErrorKind::ConnectionReset.into()));
    assert_eq!(gateway.fetch("/1").status, 200);
    assert_eq!(origin.connections(), 2);
    origin.next(|to, stream| to.send(frame(RST_STREAM, 0, stream, 2_u32.to_be_bytes())));
    assert_eq!(gateway.fetch("/2").status, 502);
    assert_eq!((origin.connections(), origin.requests()), (2, 3));
}
