//! Tests of `request_buffer`: a client that sends its body slowly holds no permit.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::support::frames::{self, DATA, END_STREAM, Frames, Outcome, frame, head};
use crate::support::{
    Exchange, Gateway, MS, Origin, Raw, eventually, exchange, noise, one_origin, one_zone,
    quarter_alone,
};

const KB: usize = 1 << 10;
const MB: usize = 1 << 20;

/// Returns the head of a POST with this many bytes.
fn post(length: usize) -> String {
    format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n")
}

/// Protocol and framing with which a client sends its body.
#[derive(Clone, Copy)]
enum By {
    Length,
    Chunks,
    Http2,
}

/// Sends 20 KB/s of `body` until `is_over`, and then the rest. Returns the body of the response.
fn upload(gateway: &Gateway, by: By, target: &str, body: &[u8], is_over: &AtomicBool) -> Vec<u8> {
    let framing = match by {
        By::Chunks => "Transfer-Encoding: chunked".to_owned(),
        By::Length | By::Http2 => format!("Content-Length: {}", body.len()),
    };
    let mut http1 = gateway.connect();
    let mut http2 = Frames::connect(gateway.address());
    let expect = "the gateway reads";
    if let By::Http2 = by {
        let fields = frames::request("POST", target);
        http2.send(head(1, 0, &fields)).expect(expect);
    } else {
        http1.send(format!(
            "POST {target} HTTP/1.1\r\nHost: a\r\n{framing}\r\n\r\n"
        ));
    }
    for piece in body.chunks(2 * KB) {
        match by {
            By::Length => http1.send(piece),
            By::Chunks => {
                let size = format!("{:x}\r\n", piece.len());
                http1.send([size.as_bytes(), piece, b"\r\n"].concat());
            }
            By::Http2 => http2.send(frame(DATA, 0, 1, piece)).expect(expect),
        }
        if !is_over.load(Ordering::Relaxed) {
            thread::sleep(100 * MS);
        }
    }
    if let By::Http2 = by {
        http2.send(frame(DATA, END_STREAM, 1, b"")).expect(expect);
        assert_eq!(http2.outcome(1), Outcome::Status(200));
        return http2.body(1).expect("a whole body");
    }
    if let By::Chunks = by {
        http1.send(b"0\r\n\r\n");
    }
    let answer = http1.answer();
    assert_eq!(answer.status, 200);
    answer.body
}

/// Checks that ten uploads do not delay other requests, with this file.
fn check_uploads(origin: &Origin, file: &str) {
    let gateway = Gateway::start(file);
    // Uploads over HTTP/2 fit into a client's initial window.
    let body = noise(60 * KB);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let kinds = [By::Length, By::Chunks, By::Http2].into_iter().cycle();
        let uploads: Vec<_> = kinds
            .take(10)
            .map(|by| {
                let (gateway, body, is_over) = (&gateway, &body, &is_over);
                scope.spawn(move || upload(gateway, by, "/up?key=a", body, is_over))
            })
            .collect();
        eventually("all are received", || gateway.buffered() >= 10 * 16 * KB);
        for nth in 0..20 {
            assert_eq!(gateway.fetch("/?key=a").status, 200, "{nth}");
        }
        assert_eq!(origin.moments("/up").len(), 0);
        is_over.store(true, Ordering::Relaxed);
        for upload in uploads {
            assert!(upload.join().expect("no panic") == body);
        }
    });
    assert_eq!(origin.moments("/up").len(), 10);
    eventually("nothing is held", || gateway.buffered() == 0);
}

#[test]
fn uploads_of_20_kb_a_second_hold_no_permit_of_the_origin() {
    let _quarter = quarter_alone();
    let origin = Origin::echo();
    let gate = "max_in_flight = 2\nqueue_timeout = \"10s\"\nrequest_buffer = \"1MB\"\n";
    check_uploads(&origin, &one_origin(origin.address, "", gate));
}

#[test]
fn uploads_of_20_kb_a_second_hold_no_permit_of_their_key() {
    let _quarter = quarter_alone();
    let origin = Origin::echo();
    let file = one_zone(&origin, "none", "burst = 20, in_flight = 2");
    let buffered = file.replacen(
        "[origins.app]\n",
        "[origins.app]\nrequest_buffer = \"1MB\"\n",
        1,
    );
    check_uploads(&origin, &buffered);
}

#[test]
fn a_client_that_waits_for_100_gets_it_before_the_origin_is_asked() {
    // An origin that would send 100 Continue once more.
    let origin = Origin::answering(|exchange| {
        if exchange.field("expect").is_some() {
            exchange.send(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        let body = exchange.body()?;
        exchange.reply(&body)
    });
    let file = one_origin(origin.address, "", "request_buffer = \"1MB\"\n");
    let gateway = Gateway::start(&file);
    let mut client = Raw::connect(gateway.address());
    for _ in 0..2 {
        client.send(
            "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n",
        );
        assert_eq!(client.head().status(), 100);
        let seen = origin.arrivals().len();
        thread::sleep(100 * MS);
        assert_eq!(origin.arrivals().len(), seen);
        client.send("hello");
        let answer = client.answer();
        assert_eq!((answer.status(), &*answer.body), (200, &b"hello"[..]));
    }
    assert_eq!(origin.arrivals().len(), 2);
}

#[test]
fn a_body_that_is_longer_leaves_when_the_buffer_is_full_and_the_rest_follows() {
    let origin = Origin::echo();
    let file = one_origin(origin.address, "", "request_buffer = \"64KB\"\n");
    let gateway = Gateway::start(&file);
    let body = noise(3 * MB);
    let mut client = gateway.connect();
    client.send(post(body.len()));
    client.send(&body[..63 * KB]);
    thread::sleep(200 * MS);
    assert_eq!(origin.arrivals().len(), 0);
    client.send(&body[63 * KB..100 * KB]);
    // The client has not sent the rest.
    origin.wait_for(1);
    client.send(&body[100 * KB..]);
    let answer = client.answer();
    assert!(answer.status == 200 && answer.body == body);
    // The connection serves the next request.
    assert_eq!(client.fetch("/").status, 200);
    assert_eq!(gateway.buffered(), 0);
}

#[test]
fn all_bodies_together_stay_within_buffers_and_every_request_is_whole() {
    let origin = Origin::echo();
    let server = "buffers = \"1MB\"";
    let file = one_origin(origin.address, server, "request_buffer = \"256KB\"\n");
    let gateway = Gateway::start(&file);
    let body = noise(256 * KB);
    let mut clients = [(); 30].map(|()| gateway.connect());
    for client in &mut clients {
        client.send(post(body.len()));
        client.send(&body[..200 * KB]);
        assert!(gateway.buffered() <= MB);
    }
    // Four fit. Uploads without memory for all of their bodies have been forwarded, and hold
    // nothing.
    eventually("four are held", || gateway.buffered() > MB * 3 / 4);
    eventually("they are at the origin", || origin.arrivals().len() > 20);
    for client in &mut clients {
        client.send(&body[200 * KB..]);
        assert!(gateway.buffered() <= MB);
    }
    for client in &mut clients {
        let answer = client.answer();
        assert!(answer.status == 200 && answer.body == body);
    }
    eventually("nothing is held", || gateway.buffered() == 0);
    assert!(gateway.count("drip_body_buffer_refusals_total", &[]) > 20);
}

#[test]
fn a_body_that_is_too_large_too_slow_or_malformed_never_reaches_the_origin() {
    let origin = Origin::echo();
    let server = "max_body_size = \"100KB\"\nbody_timeout = \"300ms\"";
    let file = one_origin(origin.address, server, "request_buffer = \"1MB\"\n");
    let gateway = Gateway::start(&file);
    let chunk = format!("{:x}\r\n{}\r\n", 60 * KB, "x".repeat(60 * KB));
    let bodies = [
        (413, chunk.repeat(2)),
        (408, "5\r\nhel".to_owned()),
        (400, "5\r\nhello\r\nno chunk\r\n".to_owned()),
    ];
    for (status, body) in bodies {
        let mut client = Raw::connect(gateway.address());
        let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
        client.send(format!("{head}{body}"));
        assert_eq!(client.answer().status(), status);
    }
    let mut client = Raw::connect(gateway.address());
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhello");
    client.close();
    eventually("nothing is held", || gateway.buffered() == 0);
    assert_eq!(origin.arrivals().len(), 0);
}

#[test]
fn an_idempotent_request_is_sent_again_if_all_of_its_body_is_buffered() {
    // Breaks its second request after the body.
    let origin = Origin::answering(|exchange| {
        let body = exchange.body()?;
        if exchange.nth > 1 {
            Exchange::close()
        } else {
            exchange.reply(&body)
        }
    });
    let file = one_origin(origin.address, "workers = 1", "request_buffer = \"64KB\"\n");
    let gateway = Gateway::start(&file);
    for (method, length, status) in [
        ("PUT", 2, 200),
        ("DELETE", 60 * KB, 200),
        ("POST", 2, 502),
        ("PUT", 200 * KB, 502),
    ] {
        // Leaves an idle connection.
        assert_eq!(gateway.fetch("/").status, 200);
        let before = origin.arrivals().len();
        let body = noise(length);
        let head = format!("{method} / HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n");
        let answer = exchange(gateway.address(), [head.as_bytes(), &body].concat());
        assert_eq!(answer.status, status, "{method} of {length} bytes");
        let times = 1 + usize::from(status == 200);
        assert_eq!(origin.arrivals().len(), before + times, "{method}");
        assert!(status != 200 || answer.body == body, "{method}");
        eventually("nothing is held", || gateway.buffered() == 0);
    }
}
