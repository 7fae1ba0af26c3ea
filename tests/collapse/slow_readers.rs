//! Tests of clients that do not read shared responses: their memory is bounded.
//!
//! They keep nothing that is kept for others, and a client that loses its response can detect it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{ask, file_with, how};
use crate::support::frames::{Frames, INITIAL_WINDOW_SIZE, Outcome, get, settings, window_update};
use crate::support::{Gateway, Origin, eventually};

const MB: usize = 1 << 20;
const CHUNK: usize = 16 << 10;
/// Size of a response above `max_size` that no field announces.
const LARGE: usize = 96 * CHUNK;
const INTERNAL_ERROR: u32 = 2;

/// Starts an origin with pages of 100 KB at `/kept`, 900 KB at `/fits`, and larger ones elsewhere.
///
/// The larger ones are in chunks. Also returns the count of responses sent.
fn origin() -> (Origin, Arc<AtomicUsize>) {
    let sent = Arc::<AtomicUsize>::default();
    let counted = Arc::clone(&sent);
    let origin = Origin::answering(move |exchange| {
        if exchange.target().starts_with("/kept") {
            return exchange.reply(&vec![b'k'; 100 << 10]);
        }
        if exchange.target().starts_with("/fits") {
            exchange.reply(&vec![b'f'; 900 << 10])?;
        } else {
            exchange.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")?;
            let size = format!("{CHUNK:x}\r\n");
            let chunk = [size.as_bytes(), &[b'c'; CHUNK], b"\r\n"].concat();
            for _ in 0..LARGE / CHUNK {
                exchange.send(&chunk)?;
            }
            exchange.send(b"0\r\n\r\n")?;
        }
        counted.fetch_add(1, Ordering::SeqCst);
        Ok(())
    });
    (origin, sent)
}

fn start(origin: &Origin, memory: &str, collapse: &str) -> Gateway {
    let file = file_with(origin.address, "", "", collapse);
    let server = format!("workers = 2\nshared_answers = \"{memory}\"\n");
    Gateway::start(&format!("{server}{file}"))
}

/// Connects an HTTP/2 client that gives no window for bodies.
fn taking_nothing(gateway: &Gateway) -> Frames {
    let mut client = Frames::connect(gateway.address());
    let none = settings(&[(INITIAL_WINDOW_SIZE, 0)]);
    client.send(none).expect("the gateway reads");
    client
}

/// Sends a request, and waits until the origin has sent its response.
fn take_nothing(client: &mut Frames, path: &str, nth: u32, sent: &AtomicUsize) {
    let before = sent.load(Ordering::SeqCst);
    let request = get(2 * nth + 1, &format!("{path}?{nth}"));
    client.send(request).expect("the gateway reads");
    eventually("the origin has sent it", || {
        sent.load(Ordering::SeqCst) > before
    });
}

/// Returns the body of a stream once the client reads it, or how it was broken off.
fn take(client: &mut Frames, nth: u32) -> Result<Vec<u8>, Outcome> {
    for stream in [0, 2 * nth + 1] {
        let more = window_update(stream, 1 << 24);
        client.send(more).expect("the gateway reads");
    }
    client.body(2 * nth + 1)
}

fn count(gateway: &Gateway, name: &str) -> usize {
    let count = gateway.count(name, &[]);
    usize::try_from(count).expect("a count")
}

#[test]
fn one_connection_that_takes_nothing_holds_its_part_alone_and_others_have_what_is_kept() {
    const STREAMS: u32 = 90;
    for path in ["/large", "/fits"] {
        let (origin, sent) = origin();
        let gateway = start(&origin, "8MB", "keep = \"1h\"");
        let kept: Vec<_> = (0..5).map(|nth| format!("/kept?{nth}")).collect();
        let fetch_kept = || {
            let fetched = kept
                .iter()
                .map(|it| ask(gateway.address(), it, "").answer());
            let hows = fetched.map(|answer| how(&answer).to_owned());
            hows.collect::<Vec<_>>()
        };
        assert_eq!(fetch_kept(), ["leader"; 5]);
        let before = gateway.peak_memory();
        let mut client = taking_nothing(&gateway);
        for nth in 0..STREAMS {
            take_nothing(&mut client, path, nth, &sent);
            assert_eq!(fetch_kept(), ["kept"; 5], "{path}: {nth}");
            let held = count(&gateway, "drip_shared_answers_bytes");
            assert!(held <= 8 * MB, "{path}: {held}");
        }
        // Without sharing, each of these streams may have 64 KB, too.
        let grown = gateway.peak_memory() - before;
        let most = (8 * MB + STREAMS as usize * (64 << 10) + 20 * MB) as u64;
        assert!(grown < most, "{path}: {grown} bytes more");
        assert!(count(&gateway, "drip_shared_evictions_total") > 0);
        // The request that has waited longest has lost its response, and the last one has not.
        assert_eq!(take(&mut client, 0), Err(Outcome::Reset(INTERNAL_ERROR)));
        let last = take(&mut client, STREAMS - 1).expect("a whole body");
        assert!(last.len() == LARGE || last.len() == 900 << 10);
        drop(client);
        if path == "/large" {
            eventually("nothing is held", || {
                count(&gateway, "drip_shared_answers_bytes") < MB
            });
        }
    }
}
