//! Tests of `response_buffer`: a client that reads slowly holds no permit and no connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::support::frames::{Frames, window_update, without_window};
use crate::support::stream_origin::{StreamOrigin, content};
use crate::support::{
    Exchange, Gateway, MS, Origin, Raw, eventually, noise, one_h2c_origin, one_origin,
    quarter_alone,
};

const KB: usize = 1 << 10;
const MB: usize = 1 << 20;

/// Starts an origin whose `/large` has `size` bytes of noise, in chunks if the target says so.
fn origin(size: usize) -> (Origin, Arc<Vec<u8>>) {
    let content = Arc::new(noise(size));
    let sent = Arc::clone(&content);
    let origin = Origin::answering(move |exchange| {
        if !exchange.target().starts_with("/large") {
            return exchange.reply(b"ok");
        }
        if !exchange.target().contains("chunks") {
            return exchange.reply(&sent);
        }
        exchange.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")?;
        // Chunks of all sizes, many of them small.
        let mut rest = &sent[..];
        for nth in 1.. {
            if rest.is_empty() {
                break;
            }
            let (chunk, after) = rest.split_at(rest.len().min(nth * 7 % 9001 + 1));
            let size = format!("{:x}\r\n", chunk.len());
            exchange.send([size.as_bytes(), chunk, b"\r\n"].concat())?;
            rest = after;
        }
        exchange.send(b"0\r\n\r\n")
    });
    (origin, content)
}

/// Opens the windows of all streams, and reads them.
fn read_all(client: &mut Frames, streams: u32, content: &[u8]) {
    for stream in (0..streams).map(|nth| 2 * nth + 1) {
        for window in [0, stream] {
            let more = window_update(window, 1 << 24);
            client.send(more).expect("the gateway reads");
        }
        assert!(client.body(stream).expect("a whole body") == content);
    }
}

/// Reads 20 KB/s until `is_over`, and then the rest. Returns the body.
fn read_slowly(gateway: &Gateway, target: &str, is_over: &AtomicBool) -> Vec<u8> {
    let mut client = gateway.ask(target);
    let head = client.head();
    let mut body = Vec::new();
    client
        .pass_body(&head, |piece| {
            for part in piece.chunks(2 * KB) {
                body.extend_from_slice(part);
                if !is_over.load(Ordering::Relaxed) {
                    thread::sleep(100 * MS);
                }
            }
        })
        .expect("a whole body");
    body
}

#[test]
fn readers_of_20_kb_a_second_hold_no_permit_and_no_connection() {
    let _quarter = quarter_alone();
    // More than the kernel buffers.
    let (origin, content) = origin(8 * MB);
    let gate = "max_in_flight = 2\nqueue_timeout = \"20s\"\nresponse_buffer = \"9MB\"\n";
    let buffered = Gateway::start(&one_origin(origin.address, "buffers = \"128MB\"", gate));
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let targets = ["/large", "/large?chunks"].into_iter().cycle().take(10);
        let readers: Vec<_> = targets
            .map(|target| scope.spawn(|| read_slowly(&buffered, target, &is_over)))
            .collect();
        origin.wait_for(10);
        eventually("the origin has sent all", || buffered.in_flight() == 0);
        for nth in 0..20 {
            assert_eq!(buffered.fetch("/").status, 200, "{nth}");
        }
        // All of them are still reading.
        assert!(buffered.buffered() > 10 * MB, "{}", buffered.buffered());
        // Other requests reuse the slow ones' connections, and there were no more than permits.
        let connections = origin.arrivals().iter().map(|it| it.connection).max();
        assert!(connections < Some(2 + 2), "{connections:?}");
        is_over.store(true, Ordering::Relaxed);
        for reader in readers {
            assert!(reader.join().expect("no panic") == *content);
        }
    });
    eventually("nothing is held", || buffered.buffered() == 0);
}

#[test]
fn all_buffers_together_stay_within_buffers_and_every_response_is_whole() {
    const STREAMS: u32 = 30;
    let (origin, content) = origin(MB);
    let server = "workers = 2\nbuffers = \"4MB\"\nbody_timeout = \"2m\"";
    let file = one_origin(origin.address, server, "response_buffer = \"2MB\"\n");
    let gateway = Gateway::start(&file);
    assert_eq!(gateway.fetch("/large").body.len(), MB);
    let before = gateway.peak_memory();
    let mut client = without_window(&gateway, "/large", STREAMS);
    origin.wait_for(1 + STREAMS as usize);
    eventually("the memory is used up", || {
        gateway.count("drip_body_buffer_refusals_total", &[]) > 20
    });
    let most = |held: usize| assert!(held <= 4 * MB, "{held}");
    most(gateway.buffered());
    assert!(gateway.buffered() > 3 * MB, "{}", gateway.buffered());
    // A request without buffer memory is served as without a buffer.
    for _ in 0..3 {
        let answer = gateway.fetch("/large?chunks");
        assert!(answer.status == 200 && answer.body == *content);
        most(gateway.buffered());
    }
    let grown = gateway.peak_memory() - before;
    // Without buffers, each stream has less than 100 KB.
    let most = 4 * MB as u64 + u64::from(STREAMS) * 100 * KB as u64 + 12 * MB as u64;
    assert!(grown < most, "{grown} bytes more");
    read_all(&mut client, STREAMS, &content);
    eventually("nothing is held", || gateway.buffered() == 0);
}

#[test]
fn an_event_reaches_its_client_while_the_next_one_is_not_there() {
    let has_come = Arc::<AtomicBool>::default();
    let of_origin = Arc::clone(&has_come);
    let origin = Origin::answering(move |exchange| {
        exchange.send(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n",
        )?;
        for nth in 0..3 {
            exchange.send(format!("9\r\ndata: {nth}\n\n\r\n"))?;
            while nth == 1 && !of_origin.load(Ordering::Relaxed) {
                thread::sleep(5 * MS);
            }
        }
        exchange.send(b"0\r\n\r\n")
    });
    let file = one_origin(origin.address, "", "response_buffer = \"1MB\"\n");
    let gateway = Gateway::start(&file);
    let mut client = Raw::connect(gateway.address());
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    // The origin sends no more until this has arrived.
    client.wait_for("data: 1\n\n");
    has_come.store(true, Ordering::Relaxed);
    client.wait_for("data: 2\n\n\r\n0\r\n\r\n");
    assert_eq!(gateway.buffered(), 0);
}

#[test]
fn a_response_that_breaks_off_does_so_after_the_bytes_that_came() {
    let origin = Origin::answering(|exchange| {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", 9 * MB);
        exchange.send(&head)?;
        exchange.send(noise(8 * MB))?;
        Exchange::close()
    });
    let gate = "max_in_flight = 1\nresponse_buffer = \"16MB\"\n";
    let gateway = Gateway::start(&one_origin(origin.address, "", gate));
    let mut client = gateway.ask("/");
    let head = client.head();
    assert_eq!(head.length(), Some(9 * MB as u64));
    gateway.wait_in_flight(0);
    let body = client.rest();
    assert!(body == noise(8 * MB), "{} bytes", body.len());
    eventually("nothing is held", || gateway.buffered() == 0);
}

#[test]
fn a_client_that_leaves_gives_back_what_its_response_took() {
    let (origin, _) = origin(8 * MB);
    let gate = "max_in_flight = 1\nresponse_buffer = \"16MB\"\n";
    let gateway = Gateway::start(&one_origin(origin.address, "", gate));
    for _ in 0..3 {
        let client = gateway.ask("/large");
        eventually("it is held", || gateway.buffered() > MB);
        drop(client);
        eventually("nothing is held", || {
            gateway.buffered() == 0 && gateway.in_flight() == 0
        });
    }
    assert_eq!(gateway.fetch("/").status, 200);
}

#[test]
fn an_origin_over_http_2_is_read_ahead_too() {
    const STREAMS: u32 = 5;
    let origin = StreamOrigin::start();
    let gate = "max_in_flight = 1\nqueue_timeout = \"20s\"\nresponse_buffer = \"2MB\"\n";
    let gateway = Gateway::start(&one_h2c_origin(origin.address, "", gate));
    let mut client = without_window(&gateway, "/16384/100", STREAMS);
    eventually("the origin has sent all", || {
        gateway.buffered() > STREAMS as usize * 15 * MB / 10 && gateway.in_flight() == 0
    });
    read_all(&mut client, STREAMS, &content(100 * 16 * KB));
    assert_eq!(origin.errors(), [""; 0]);
    eventually("nothing is held", || gateway.buffered() == 0);
}
