//! Tests of origins that send without end: memory and time stay bounded.

use std::io;
use std::time::Duration;

use crate::http2::{Does, GET, ask, check_fine, check_refused, drip};
use crate::support::frames::{
    self, CONTINUATION, DATA, Frames, HEADERS, PING, PUSH_PROMISE, block, field, frame, head, ok,
    reset, settings, window_update,
};
use crate::support::{FrameOrigin, Gateway, Raw, eventually, now, side_by_side};

const MB: u64 = 1 << 20;

/// Sends these bytes again and again until the peer closes, or for 30 s.
fn flood(to: &mut Frames, bytes: &[u8]) -> io::Result<()> {
    let many = bytes.repeat(1 + 16_384 / bytes.len());
    let since = now();
    while since.elapsed() < Duration::from_secs(30) {
        to.send(&many)?;
    }
    Ok(())
}

/// Fails unless a flood instead of a response is answered by one of `statuses`.
///
/// The gateway must serve other requests meanwhile, in little memory.
fn check_flood(
    name: &str,
    statuses: &[u16],
    script: impl Fn(&mut Frames, u32) -> io::Result<()> + Clone + Send + 'static,
) {
    let origin = FrameOrigin::start();
    let other = FrameOrigin::start();
    let gateway = Gateway::start(&format!(
        "workers = 1\n[origins.app]\nservers = [\"h2c://{}\"]\nresponse_timeout = \"1s\"\n\
         body_timeout = \"1s\"\n[origins.other]\nservers = [\"h2c://{}\"]\n\
         [[routes]]\npath = \"/\"\norigin = \"app\"\n[[routes]]\npath = \"/other\"\norigin = \"other\"\n",
        origin.address, other.address
    ));
    check_fine(&gateway, name);
    let before = gateway.peak_memory();
    for _ in 0..2 {
        origin.next(script.clone());
    }
    let mut client = Raw::connect(gateway.address());
    client.send(GET);
    for _ in 0..20 {
        let mut client = Raw::connect(gateway.address());
        client.send("GET /other HTTP/1.1\r\nHost: test\r\n\r\n");
        assert_eq!(client.answer().body, b"ok", "{name}");
    }
    let status = client.head_within(Duration::from_secs(15)).status();
    assert!(statuses.contains(&status), "{name}: {status}");
    origin.forget();
    drop(client);
    // A request on the connection with the flood may get a 504.
    eventually("an answer", || ask(&gateway, GET).status() == 200);
    check_fine(&gateway, name);
    let grown = gateway.peak_memory() - before;
    assert!(grown < 24 * MB, "{name}: {grown} bytes more");
}

#[test]
fn frames_without_end_in_place_of_a_head() {
    let floods: [(&str, &[u16], Does); 8] = [
        ("settings", &[502, 504], |to, _| {
            flood(to, &settings(&[(4, 65_535)]))
        }),
        ("pings", &[502, 504], |to, _| {
            flood(to, &frame(PING, 0, 0, [0; 8]))
        }),
        ("window updates", &[502, 504], |to, _| {
            flood(to, &window_update(0, 1))
        }),
        ("priorities", &[502, 504], |to, stream| {
            flood(to, &frame(2, 0, stream, [0, 0, 0, 0, 1]))
        }),
        ("unknown frames", &[502, 504], |to, stream| {
            flood(to, &frame(0xbe, 0, stream, [0; 8]))
        }),
        ("resets of unopened streams", &[502], |to, stream| {
            flood(to, &reset(stream + 2, 8))
        }),
        ("continuations", &[502], |to, stream| {
            to.send(frame(HEADERS, 0, stream, field(":status", "200")))?;
            flood(to, &frame(CONTINUATION, 0, stream, field("x", "y")))
        }),
        ("empty continuations", &[502], |to, stream| {
            to.send(frame(HEADERS, 0, stream, field(":status", "200")))?;
            flood(to, &frame(CONTINUATION, 0, stream, []))
        }),
    ];
    side_by_side(floods.chunks(4), |floods| {
        for (name, statuses, flood) in floods {
            check_flood(name, statuses, *flood);
        }
    });
}

#[test]
fn interim_responses_without_end() {
    check_flood("103", &[103, 502, 504], |to, stream| {
        let hint = head(stream, 0, &[(":status", "103"), ("link", "</a>")]);
        flood(to, &hint)
    });
    check_flood("100", &[502, 504], |to, stream| {
        flood(to, &head(stream, 0, &[(":status", "100")]))
    });
}

#[test]
fn interim_responses_that_a_client_does_not_read() {
    let origin = FrameOrigin::start();
    let gateway = drip(&origin, "", "response_timeout = \"3s\"");
    check_fine(&gateway, "first");
    let before = gateway.peak_memory();
    origin.next(|to, stream| {
        let large = "x".repeat(2_000);
        let hint = head(stream, 0, &[(":status", "103"), ("link", &large)]);
        flood(to, &hint)
    });
    let mut client = Raw::connect(gateway.address());
    client.send(GET);
    std::thread::sleep(Duration::from_secs(4));
    let grown = gateway.peak_memory() - before;
    assert!(grown < 24 * MB, "{grown} bytes more");
    drop(client);
    check_fine(&gateway, "afterwards");
}

#[test]
fn empty_pieces_of_a_body_without_end() {
    check_flood("empty pieces", &[200], |to, stream| {
        to.send(head(stream, 0, &[(":status", "200")]))?;
        flood(to, &frame(DATA, 0, stream, []))
    });
    check_flood("pieces of a byte", &[200], |to, stream| {
        to.send(head(stream, 0, &[(":status", "200")]))?;
        // The flood ignores the window.
        flood(to, &frame(DATA, 0, stream, "x"))
    });
    check_flood("padding only", &[200], |to, stream| {
        to.send(head(stream, 0, &[(":status", "200")]))?;
        flood(to, &frame(DATA, 8, stream, [0]))
    });
}

#[test]
fn what_breaks_flow_control_or_pushes_is_a_502() {
    let origin = FrameOrigin::start();
    let gateway = drip(&origin, "", "");
    let cases: [(&str, Does); 9] = [
        ("a push", |to, stream| {
            let fields = frames::request("GET", "/");
            let promised = [2_u32.to_be_bytes().to_vec(), block(&fields)].concat();
            to.send(frame(PUSH_PROMISE, 4, stream, promised))?;
            to.send(head(2, 0, &[(":status", "200")]))
        }),
        ("too large a window", |to, _| {
            to.send(window_update(0, 0x7fff_ffff))
        }),
        ("a window of nothing more", |to, _| {
            to.send(window_update(0, 0))
        }),
        ("too large a frame", |to, stream| {
            to.send(frame(DATA, 0, stream, vec![0; 20_000]))
        }),
        ("settings that are none", |to, _| {
            to.send(settings(&[(4, 0x8000_0000)]))
        }),
        ("settings of a stream", |to, stream| {
            to.send(frame(4, 0, stream, []))
        }),
        ("a short ping", |to, _| to.send(frame(PING, 0, 0, [0; 7]))),
        ("a stream of the server's own", |to, _| {
            to.send(head(4, 0, &[(":status", "200")]))
        }),
        ("a short reset", |to, stream| {
            to.send(frame(3, 0, stream, [0; 3]))
        }),
    ];
    for (name, does) in cases {
        check_refused(&gateway, &origin, name, does);
    }
    // Bytes in flight when the client disconnected are no error.
    for _ in 0..3 {
        origin.next(|to, stream| {
            std::thread::sleep(Duration::from_millis(300));
            to.send(ok(stream))
        });
        let mut client = Raw::connect(gateway.address());
        client.send(GET);
        std::thread::sleep(Duration::from_millis(100));
        client.reset();
    }
    check_fine(&gateway, "afterwards");
}
