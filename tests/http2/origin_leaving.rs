//! Tests of origins that end a connection or refuse a stream at each moment.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::http2::{Does, GET, POST, ask, check_fine, check_refused, drip};
use crate::support::frames::{
    DATA, END_STREAM, Frames, frame, go_away, head, ok, reset, window_update,
};
use crate::support::noise;
use crate::support::{FrameOrigin, Gateway, Raw, eventually, one_h2c_origin};

const NO_ERROR: u32 = 0;
const INTERNAL_ERROR: u32 = 2;
const REFUSED_STREAM: u32 = 7;
const ENHANCE_YOUR_CALM: u32 = 11;

fn close() -> io::Result<()> {
    Err(io::ErrorKind::ConnectionAborted.into())
}

#[test]
fn what_the_origin_has_not_looked_at_is_sent_again_whatever_its_method() {
    let refusals: [(&str, Does); 6] = [
        ("refused", |to, stream| {
            to.send(reset(stream, REFUSED_STREAM))
        }),
        ("leaving", |to, stream| {
            to.send(go_away(stream - 1, NO_ERROR))
        }),
        ("leaving, with an error", |to, stream| {
            to.send(go_away(stream - 1, ENHANCE_YOUR_CALM))
        }),
        ("leaving and closing", |to, stream| {
            to.send(go_away(stream - 1, NO_ERROR))?;
            close()
        }),
        ("leaving, with an error, and closing", |to, stream| {
            to.send(go_away(stream - 1, INTERNAL_ERROR))?;
            close()
        }),
        ("leaving in two steps", |to, stream| {
            to.send(go_away(0x7fff_ffff, NO_ERROR))?;
            to.send(go_away(stream - 1, NO_ERROR))
        }),
    ];
    for (name, refuse) in refusals {
        for used in [false, true] {
            let origin = FrameOrigin::start();
            let gateway = drip(&origin, "", "");
            if used {
                check_fine(&gateway, name);
            }
            origin.next(refuse);
            let without_body = "POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 0\r\n\r\n";
            let answer = ask(&gateway, without_body);
            assert_eq!(answer.status(), 200, "{name}, used: {used}: {answer:?}");
            let expected = 2 + usize::from(used);
            assert_eq!(origin.requests(), expected, "{name}, used: {used}");
            assert_eq!(origin.connections(), 2, "{name}, used: {used}");
            check_fine(&gateway, name);
            // A small body is kept until the origin has answered.
            let before = origin.requests();
            origin.next(refuse);
            origin.next(|to, stream| {
                assert_eq!(body(to, usize::MAX)?, b"abc");
                to.send(ok(stream))
            });
            assert_eq!(ask(&gateway, POST).status(), 200, "{name}, used: {used}");
            assert_eq!(origin.requests() - before, 2, "{name}, used: {used}");
            check_fine(&gateway, name);
        }
    }
}

/// Reads up to `most` bytes of the body of the request whose head was read.
fn body(from: &mut Frames, most: usize) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    while body.len() < most {
        let next = from.next()?;
        assert_eq!(next.kind, DATA);
        body.extend(&next.payload);
        if next.ends_stream() {
            break;
        }
    }
    Ok(body)
}

/// Lets the peer send this many more bytes on a stream, and on the connection.
fn open_window(to: &mut Frames, stream: u32, by: u32) -> io::Result<()> {
    to.send([window_update(stream, by), window_update(0, by)].concat())
}

#[test]
fn a_body_that_the_origin_has_not_looked_at_is_sent_again_whole() {
    let origin = FrameOrigin::start();
    let gateway = drip(&origin, "", "");
    for length in [1, 10_000, 65_000, 100_000] {
        let sent = noise(length);
        let expected = sent.clone();
        // Without a window update, the origin gets 65535 bytes.
        origin.next(move |to, stream| {
            body(to, length.min(65_535))?;
            to.send(window_update(0, 65_535))?;
            to.send(reset(stream, REFUSED_STREAM))
        });
        origin.next(move |to, stream| {
            // Closing with unread bytes resets the connection without a `GOAWAY`.
            body(to, length.min(60_000))?;
            to.send(go_away(stream - 1, NO_ERROR))
        });
        origin.next(move |to, stream| {
            open_window(to, stream, 200_000)?;
            assert!(body(to, usize::MAX)? == expected, "{length}");
            to.send(ok(stream))
        });
        let before = origin.requests();
        let mut client = Raw::connect(gateway.address());
        client.send(format!(
            "POST / HTTP/1.1\r\nHost: test\r\nContent-Length: {length}\r\n\r\n"
        ));
        client.send(&sent);
        assert_eq!(client.answer().body, b"ok", "{length}");
        assert_eq!(origin.requests() - before, 3, "{length}");
    }
}

#[test]
fn a_body_that_is_still_coming_is_sent_again_from_its_start() {
    let origin = FrameOrigin::start();
    let gateway = drip(&origin, "", "");
    let begun = Arc::<AtomicBool>::default();
    let has_begun = Arc::clone(&begun);
    origin.next(|to, stream| {
        assert_eq!(body(to, 3)?, b"abc");
        to.send(reset(stream, REFUSED_STREAM))
    });
    origin.next(move |to, stream| {
        // The bytes that the client has sent are forwarded before the rest arrives.
        assert_eq!(body(to, 3)?, b"abc");
        has_begun.store(true, Ordering::SeqCst);
        assert_eq!(body(to, usize::MAX)?, b"def");
        to.send(ok(stream))
    });
    let mut client = Raw::connect(gateway.address());
    client.send("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 6\r\n\r\nabc");
    eventually("it is sent again", || begun.load(Ordering::SeqCst));
    client.send("def");
    assert_eq!(client.answer().body, b"ok");
    assert_eq!(origin.requests(), 2);
}

#[test]
fn a_large_body_that_was_begun_is_not_sent_again() {
    let origin = FrameOrigin::start();
    let gateway = drip(&origin, "", "");
    check_fine(&gateway, "first");
    origin.next(|to, stream| {
        open_window(to, stream, 200_000)?;
        body(to, 100_000)?;
        to.send(reset(stream, REFUSED_STREAM))
    });
    let mut client = Raw::connect(gateway.address());
    client.send("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 100000\r\n\r\n");
    client.send(noise(100_000));
    assert_eq!(client.answer().status(), 502);
    assert_eq!(origin.requests(), 2);
    check_fine(&gateway, "afterwards");
}

#[test]
fn what_is_always_refused_is_not_sent_for_ever() {
    let origin = FrameOrigin::start();
    let gateway = drip(&origin, "", "keep_alive = 4");
    check_fine(&gateway, "first");
    for _ in 0..50 {
        for _ in 0..5 {
            origin.next(|to, stream| to.send(reset(stream, REFUSED_STREAM)));
        }
        let before = origin.requests();
        assert_eq!(ask(&gateway, GET).status(), 502);
        origin.forget();
        let sent = origin.requests() - before;
        assert!(sent <= 3, "sent {sent} times");
    }
    check_fine(&gateway, "at last");
    // Connections that are not needed are closed.
    eventually("few are open", || origin.open() <= 4);
}

#[test]
fn a_stream_that_the_origin_resets_is_not_sent_again_and_its_connection_is_kept() {
    let origin = FrameOrigin::start();
    let gateway = drip(&origin, "", "");
    check_fine(&gateway, "first");
    let named = [NO_ERROR, INTERNAL_ERROR, ENHANCE_YOUR_CALM];
    for code in named.into_iter().chain([1, 8, 0xffff_ffff]) {
        for request in [GET, POST] {
            origin.next(move |to, stream| to.send(reset(stream, code)));
            let before = origin.requests();
            assert_eq!(ask(&gateway, request).status(), 502, "{code}");
            assert_eq!(origin.requests() - before, 1, "{code}");
        }
    }
    check_fine(&gateway, "at last");
    assert_eq!(origin.connections(), 1);
}

#[test]
fn a_connection_that_ends_before_the_head_is_a_502_or_a_second_try() {
    let ends: [(&str, Does); 4] = [
        ("closed", |_, _| close()),
        ("an error that took it in", |to, stream| {
            to.send(go_away(stream, INTERNAL_ERROR))?;
            close()
        }),
        ("leaving, but it took it in, and closed", |to, stream| {
            to.send(go_away(stream, NO_ERROR))?;
            close()
        }),
        ("closed in the middle of a frame", |to, stream| {
            to.send(&ok(stream)[..12])?;
            close()
        }),
    ];
    let origin = FrameOrigin::start();
    let gateway = drip(&origin, "", "");
    for (name, end) in ends {
        check_refused(&gateway, &origin, name, end);
        // The origin may have acted on a POST. A GET may be retried.
        check_fine(&gateway, name);
        origin.next(end);
        let before = origin.requests();
        assert_eq!(ask(&gateway, POST).status(), 502, "{name}");
        assert_eq!(origin.requests() - before, 1, "{name}");
        check_fine(&gateway, name);
        origin.next(end);
        assert_eq!(ask(&gateway, GET).status(), 200, "{name}");
    }
}

#[test]
fn who_leaves_may_finish_what_it_took_in() {
    let origin = FrameOrigin::start();
    let gateway = drip(&origin, "", "");
    for code in [NO_ERROR, ENHANCE_YOUR_CALM] {
        // Before the head, and between the head and the body.
        origin.next(move |to, stream| {
            to.send(go_away(stream, code))?;
            to.send(ok(stream))
        });
        assert_eq!(ask(&gateway, POST).body, b"ok");
        let before = origin.connections();
        origin.next(move |to, stream| {
            to.send(head(stream, 0, &[(":status", "200")]))?;
            to.send(go_away(stream, code))?;
            to.send(frame(DATA, 0, stream, "he"))?;
            to.send(frame(DATA, END_STREAM, stream, "llo"))
        });
        assert_eq!(ask(&gateway, POST).body, b"hello");
        check_fine(&gateway, "on a new connection");
        assert_eq!(origin.connections() - before, 2);
    }
}

#[test]
fn a_body_that_its_connection_cuts_short_is_cut_short_for_the_client() {
    let origin = FrameOrigin::start();
    let gateway = drip(&origin, "", "");
    let ends: [Does; 3] = [
        |_, _| close(),
        |to, stream| to.send(go_away(stream - 1, NO_ERROR)),
        |to, stream| {
            to.send(go_away(stream, INTERNAL_ERROR))?;
            close()
        },
    ];
    for end in ends {
        origin.next(move |to, stream| {
            to.send(head(stream, 0, &[(":status", "200")]))?;
            to.send(frame(DATA, 0, stream, "hel"))?;
            end(to, stream)
        });
        let mut client = Raw::connect(gateway.address());
        client.send(GET);
        let (came, _) = client.end();
        let came = String::from_utf8_lossy(&came).into_owned();
        assert!(came.starts_with("HTTP/1.1 200 "), "{came:?}");
        assert!(!came.ends_with("0\r\n\r\n"), "{came:?}");
        check_fine(&gateway, "afterwards");
    }
}

#[test]
fn who_speaks_no_http_2_is_a_502() {
    let firsts: [&[u8]; 5] = [
        b"",
        b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n",
        b"\x15\x03\x01\x00\x02\x02\x16",
        b"\0\0\0\0\0\0\0\0\0",
    ];
    for first in firsts {
        let name = String::from_utf8_lossy(first).into_owned();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        std::thread::spawn(move || {
            for tcp in listener.incoming().map_while(Result::ok) {
                let mut tcp = Frames::over(tcp);
                // The gateway may have closed it already.
                let _sent = tcp.send(first);
                if first.is_empty() {
                    continue;
                }
                std::thread::spawn(move || while tcp.next().is_ok() {});
            }
        });
        let gateway = Gateway::start(&one_h2c_origin(address, "workers = 1", ""));
        for request in [GET, POST, GET] {
            assert_eq!(ask(&gateway, request).status(), 502, "{name:?}");
        }
    }
}
