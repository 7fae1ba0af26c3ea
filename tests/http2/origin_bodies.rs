//! Tests of origin bodies that contradict their heads, and of trailers, over HTTP/2.
//!
//! Checks what an HTTP/1 client receives.

use std::time::Duration;

use crate::http2::{GET, check_fine, check_refused, drip};
use crate::support::frames::{DATA, END_STREAM, frame, head, ok, reset};
use crate::support::{FrameOrigin, Raw, SOON};

/// Frames that an origin sends after a head, each with its flags and its bytes.
type Pieces = &'static [(u8, &'static str)];

/// Returns the response to a GET, if the client can take it for a complete one.
fn received(
    fields: &'static [(&'static str, &'static str)],
    pieces: Pieces,
    after: fn(u32) -> Vec<u8>,
) -> Option<Vec<u8>> {
    let origin = FrameOrigin::start();
    let gateway = drip(&origin, "", "");
    origin.next(move |to, stream| {
        let mut fields: Vec<_> = fields.to_vec();
        fields.insert(0, (":status", "200"));
        let mut bytes = head(stream, 0, &fields);
        for (flags, piece) in pieces {
            bytes.extend(frame(DATA, *flags, stream, piece));
        }
        bytes.extend(after(stream));
        to.send(bytes)
    });
    let mut client = Raw::connect(gateway.address());
    client.send(GET);
    let answer = client.try_answer_to("GET", SOON).ok();
    if answer.is_none() {
        let (rest, _) = client.end();
        let rest = String::from_utf8_lossy(&rest).into_owned();
        assert!(!rest.ends_with("0\r\n\r\n"), "{rest:?}");
    }
    check_fine(&gateway, "afterwards");
    answer
        .filter(|answer| answer.status() == 200)
        .map(|answer| answer.body)
}

fn nothing(_stream: u32) -> Vec<u8> {
    Vec::new()
}

#[test]
fn a_body_of_another_length_than_announced_is_incomplete() {
    let length = &[("content-length", "5")];
    let whole = |pieces| received(length, pieces, nothing);
    let hello = Some(&b"hello"[..]);
    assert_eq!(whole(&[(END_STREAM, "hello")]).as_deref(), hello);
    assert_eq!(whole(&[(0, "hel"), (END_STREAM, "lo")]).as_deref(), hello);
    assert_eq!(whole(&[(0, "hello"), (END_STREAM, "")]).as_deref(), hello);
    assert_eq!(whole(&[(END_STREAM, "hell")]), None);
    assert_eq!(whole(&[(0, "hell"), (END_STREAM, "")]), None);
    assert_eq!(whole(&[(END_STREAM, "hello, and more")]), None);
    let empty = received(&[("content-length", "0")], &[(END_STREAM, "x")], nothing);
    let no_byte = Some(&b""[..]);
    assert_eq!(empty.as_deref(), no_byte, "no byte reaches the client");
}

#[test]
fn bytes_beyond_the_announced_length_reach_no_client() {
    // The client gets as many bytes as the head announces, and then nothing like a response.
    let origin = FrameOrigin::start();
    let gateway = drip(&origin, "", "");
    for first in ["", "hello"] {
        origin.next(move |to, stream| {
            let fields = [(":status", "200"), ("content-length", "5")];
            to.send(head(stream, 0, &fields))?;
            to.send(frame(DATA, 0, stream, first))?;
            to.send(frame(
                DATA,
                END_STREAM,
                stream,
                "helloHTTP/1.1 200 OK\r\n\r\n",
            ))
        });
        let mut client = Raw::connect(gateway.address());
        client.send(GET);
        client.send("GET /next HTTP/1.1\r\nHost: test\r\n\r\n");
        let (came, _) = client.end();
        let came = String::from_utf8_lossy(&came).into_owned();
        assert_eq!(came.matches("HTTP/1.1").count(), 1, "{came:?}");
    }
    check_fine(&gateway, "afterwards");
}

#[test]
fn a_body_without_a_length_ends_where_its_stream_does() {
    let whole = |pieces, after| received(&[], pieces, after);
    let hello = Some(&b"hello"[..]);
    let in_two = whole(&[(0, "hel"), (END_STREAM, "lo")], nothing);
    assert_eq!(in_two.as_deref(), hello);
    let with_empty_ones = whole(&[(0, "hello"), (0, ""), (END_STREAM, "")], nothing);
    assert_eq!(with_empty_ones.as_deref(), hello);
    // The peer may announce that it needs no more of the request.
    let reset_later = whole(&[(END_STREAM, "hello")], |stream| reset(stream, 0));
    assert_eq!(reset_later.as_deref(), hello);
    // Broken off by the origin, with each code.
    for after in [
        (|stream| reset(stream, 0)) as fn(u32) -> Vec<u8>,
        |stream| reset(stream, 2),
        |stream| reset(stream, 7),
        |stream| reset(stream, 8),
    ] {
        assert_eq!(whole(&[(0, "hello")], after), None);
    }
    // A second head that does not end the stream is not a trailer (RFC 9113, section 8.1).
    let second = |stream| {
        let second = [
            head(stream, 0, &[(":status", "200")]),
            frame(DATA, END_STREAM, stream, "x"),
        ];
        second.concat()
    };
    assert_eq!(whole(&[(0, "hello")], second), None);
    // The end of a chunked body has no meaning in HTTP/2.
    let chunk = whole(&[(END_STREAM, "0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n")], nothing);
    let last = Some(&b"0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"[..]);
    assert_eq!(chunk.as_deref(), last);
}

/// Returns the trailers that an HTTP/1 client gets; `None` if the response is broken off.
fn trailers(fields: &'static [(&'static [u8], &'static [u8])]) -> Option<Vec<(String, String)>> {
    let origin = FrameOrigin::start();
    let gateway = drip(&origin, "", "");
    origin.next(move |to, stream| {
        to.send(head(stream, 0, &[(":status", "200")]))?;
        to.send(frame(DATA, 0, stream, "hello"))?;
        to.send(head(stream, END_STREAM, fields))
    });
    let mut client = Raw::connect(gateway.address());
    client.send("GET / HTTP/1.1\r\nHost: test\r\nTE: trailers\r\nConnection: TE\r\n\r\n");
    let answer = client.try_answer_to("GET", SOON).ok();
    if let Some(answer) = &answer {
        assert_eq!(answer.body, b"hello");
    }
    check_fine(&gateway, "afterwards");
    answer.map(|answer| answer.trailers)
}

#[test]
fn trailers_pass_without_what_changes_the_message() {
    let own = vec![("x-sum".to_owned(), "1".to_owned())];
    assert_eq!(trailers(&[(b"x-sum", b"1")]), Some(own.clone()));
    let framing: &[(&[u8], &[u8])] = &[
        (b"x-sum", b"1"),
        (b"content-length", b"3"),
        (b"trailer", b"x"),
        (b"host", b"evil"),
        (b"set-cookie", b"evil=1"),
    ];
    assert_eq!(trailers(framing), Some(own.clone()));
    let broken: [&[(&[u8], &[u8])]; 5] = [
        &[(b"x-sum", b"1\r\nevil: 1")],
        &[(b"x-sum", b"1"), (b"transfer-encoding", b"chunked")],
        &[(b"connection", b"close")],
        &[(b"X-Sum", b"1")],
        &[(b"x-sum: 1\r\n\r\nHTTP/1.1 200 OK", b"1")],
    ];
    for fields in broken {
        assert_eq!(trailers(fields), None, "{fields:?}");
    }
    // Pseudo fields are not trailers: none of them is forwarded.
    let pseudo = trailers(&[(b":status", b"500"), (b"x-sum", b"1")]);
    assert!(pseudo.is_none_or(|trailers| trailers == own));
}

#[test]
fn a_response_that_has_no_body_has_none() {
    let origin = FrameOrigin::start();
    let gateway = drip(&origin, "", "");
    for status in ["204", "304"] {
        origin.next(move |to, stream| {
            let fields = [(":status", status), ("x", "y")];
            let body = frame(DATA, END_STREAM, stream, "HTTP/1.1 200 OK\r\n\r\n");
            to.send([head(stream, 0, &fields), body].concat())
        });
        let mut client = Raw::connect(gateway.address());
        client.send(GET);
        assert_eq!(client.answer().status().to_string(), status);
        client.stays_quiet(Duration::from_millis(100));
        client.send(GET);
        assert_eq!(client.answer().body, b"ok");
    }
    origin.next(|to, stream| to.send(ok(stream)));
    let mut client = Raw::connect(gateway.address());
    client.send("HEAD / HTTP/1.1\r\nHost: test\r\n\r\n");
    // Its body is an error of the origin, before or after the head.
    let answer = client.answer_to("HEAD");
    assert!([200, 502].contains(&answer.status()), "{answer:?}");
    check_fine(&gateway, "afterwards");
}

#[test]
fn a_response_before_the_whole_request_is_passed() {
    let origin = FrameOrigin::start();
    let gateway = drip(&origin, "", "");
    origin.next(|to, stream| {
        let fields = [(":status", "413"), ("content-length", "5")];
        let body = frame(DATA, END_STREAM, stream, "large");
        to.send([head(stream, 0, &fields), body, reset(stream, 0)].concat())
    });
    let mut client = Raw::connect(gateway.address());
    client.send("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 1000000\r\n\r\nabc");
    let answer = client.answer();
    assert_eq!((answer.status(), &*answer.body), (413, &b"large"[..]));
    check_fine(&gateway, "afterwards");
    check_refused(&gateway, &origin, "a reset", |to, stream| {
        to.send(reset(stream, 2))
    });
}
