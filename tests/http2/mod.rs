//! Tests of HTTP/2 in raw frames: peers that break its rules, and HTTP/2 beside HTTP/1.

mod calls;
mod downgrade;
mod origin_bodies;
mod origin_floods;
mod origin_heads;
mod origin_leaving;
mod origin_limits;
mod origin_silence;
mod prior_knowledge;
mod recording;
mod slow_readers;
mod upgrade;
mod websocket;

use std::io;

use crate::support::frames::Frames;
use crate::support::{FrameOrigin, Gateway, Message, Raw};

/// Action of an origin for a request on a stream.
type Does = fn(&mut Frames, u32) -> io::Result<()>;

/// Starts drip with one worker, and further fields of `[server]` and of the origin.
fn drip(origin: &FrameOrigin, server: &str, more: &str) -> Gateway {
    let servers = format!("servers = [\"h2c://{}\"]", origin.address);
    Gateway::start(&format!(
        "workers = 1\n{server}\n[origins.app]\n{servers}\n{more}\n\
         [[routes]]\npath = \"/\"\norigin = \"app\"\n"
    ))
}

const GET: &str = "GET / HTTP/1.1\r\nHost: test\r\n\r\n";
/// A request that is not retryable if its connection breaks.
const POST: &str = "POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 3\r\n\r\nabc";

/// Returns the response to a request on a new connection.
fn ask(gateway: &Gateway, request: &str) -> Message {
    let mut client = Raw::connect(gateway.address());
    client.send(request);
    client.answer()
}

/// Fails unless a request is answered normally.
fn check_fine(gateway: &Gateway, name: &str) {
    assert_eq!(ask(gateway, GET).body, b"ok", "{name}");
}

/// Fails unless a request gets a 502 and the next one is answered.
///
/// Tests a retryable request and one that is not. `script`: action of the origin.
fn check_refused(
    gateway: &Gateway,
    origin: &FrameOrigin,
    name: &str,
    script: impl Fn(&mut Frames, u32) -> io::Result<()> + Clone + Send + 'static,
) {
    for request in [POST, GET] {
        // A GET may be sent twice, once on a new connection.
        let before = origin.requests();
        origin.next(script.clone());
        if request == GET {
            origin.next(script.clone());
        }
        let mut client = Raw::connect(gateway.address());
        client.send(request);
        let answer = client.answer();
        assert_eq!(answer.status(), 502, "{name}: {answer:?}");
        assert_eq!(answer.body, b"Bad Gateway\n", "{name}");
        origin.forget();
        // The client's connection stays usable.
        client.send(GET);
        assert_eq!(client.answer().body, b"ok", "{name}");
        let asked = origin.requests() - before;
        assert!(asked <= 3, "{name}: sent {asked} times");
    }
}
