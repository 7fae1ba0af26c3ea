//! Tests of floods of HTTP/2 frames, from a client that writes each frame itself.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use crate::load::abuse::{MB, MORE_DESCRIPTORS, open_gateway};
use crate::support::frames::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, PING, PREFACE, RST_STREAM, SETTINGS,
    WINDOW_UPDATE, frame,
};
use crate::support::night::day_or_night;
use crate::support::others::Others;
use crate::support::process::Process;
use crate::support::{Gateway, Origin, eventually, half_alone, now, side_by_side};

/// Time without reading after which a gateway counts as stalled.
const STALL: Duration = Duration::from_millis(500);

const CANCEL: u32 = 8;

/// Returns the fields of a request for a target of less than 127 bytes.
///
/// They use neither an index nor Huffman's code. `method`: 0x82 is GET, 0x83 POST.
fn fields(method: u8, target: &str) -> Vec<u8> {
    let mut fields = vec![method, 0x86];
    for (index, value) in [(4, target), (1, "a.test")] {
        fields.extend([index, u8::try_from(value.len()).expect("a short value")]);
        fields.extend(value.as_bytes());
    }
    fields
}

fn get(target: &str) -> Vec<u8> {
    fields(0x82, target)
}

/// Returns the stream of the `nth` request.
fn stream(nth: u32) -> u32 {
    2 * nth + 1
}

/// End of a flood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The gateway closed the connection.
    Closed,
    /// The gateway stopped reading.
    Stalled,
    /// The gateway read everything in time.
    Read,
}

/// Whether the client reads what the gateway sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reads {
    All,
    Nothing,
}

/// Connects without TLS, with prior knowledge and these settings of the client.
fn connect(gateway: &Gateway, settings: &[u8]) -> TcpStream {
    let mut tcp = TcpStream::connect(gateway.address()).expect("a connection");
    tcp.set_nodelay(true).expect("no delay");
    tcp.set_write_timeout(Some(STALL)).expect("a timeout");
    tcp.write_all(PREFACE).expect("sent");
    tcp.write_all(&frame(SETTINGS, 0, 0, settings))
        .expect("sent");
    tcp
}

/// Sends `first`, then the output of `next` for each count, until the time or the reading ends.
///
/// Other clients are served meanwhile, and memory grows by at most `most` bytes. In the end the
/// gateway is as before.
fn flood(
    reads: Reads,
    most: u64,
    settings: &[u8],
    first: &[u8],
    mut next: impl FnMut(u32) -> Vec<u8>,
) -> End {
    let span = Duration::from_secs(day_or_night(1, 3));
    let machine = half_alone();
    let origin = Origin::answering(|exchange| {
        let is_large = exchange.target().contains("large");
        exchange.reply(&vec![b'x'; if is_large { 1 << 20 } else { 2 }])
    });
    let gateway = open_gateway(&origin, "body_timeout = \"1s\"");
    let process = Process::of(gateway.id());
    let others = Others::start(&gateway);
    let (descriptors, memory) = (process.descriptors(), process.memory());

    let mut tcp = connect(&gateway, settings);
    tcp.write_all(first).expect("sent");
    if reads == Reads::All {
        let mut answers = tcp.try_clone().expect("a descriptor");
        thread::spawn(move || {
            let mut buffer = vec![0; 1 << 16];
            while answers.read(&mut buffer).is_ok_and(|count| count > 0) {}
        });
    }
    let (began, mut peak, mut end, mut sent) = (now(), memory, End::Read, 0);
    // Unread bytes fill the kernel's buffers first, which takes a while on a busy machine.
    let most_time = match reads {
        Reads::All => span,
        Reads::Nothing => Duration::from_secs(30),
    };
    for nth in 0.. {
        if began.elapsed() > most_time {
            break;
        }
        let frames = next(nth);
        match tcp.write_all(&frames) {
            Ok(()) => sent += frames.len(),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                end = End::Stalled;
                break;
            }
            Err(_) => {
                end = End::Closed;
                break;
            }
        }
        if nth % 16 == 0 {
            peak = peak.max(process.memory());
        }
    }
    // The rest only waits.
    drop(machine);
    while began.elapsed() < span {
        peak = peak.max(process.memory());
        thread::sleep(Duration::from_millis(20));
    }
    let more = peak.saturating_sub(memory);
    println!(
        "{sent} bytes in {:?}: {end:?}, {more} bytes more",
        began.elapsed()
    );
    assert!(more < most, "{more} bytes more");
    others.check();
    drop(tcp);
    eventually("its connection is closed and its requests are gone", || {
        process.descriptors() < descriptors + MORE_DESCRIPTORS
            && gateway.zone("drip_zone_queue_depth") == 0
    });
    eventually("the gateway is idle again", || process.load() < 0.2);
    end
}

/// Returns this many frames in one write.
fn many(count: u32, nth: u32, mut next: impl FnMut(u32) -> Vec<u8>) -> Vec<u8> {
    (nth * count..(nth + 1) * count)
        .flat_map(&mut next)
        .collect()
}

#[test]
fn requests_that_are_reset_at_once_cost_bounded_memory_and_leave_their_queues() {
    flood(Reads::All, 16 * MB, &[], &[], |nth| {
        many(64, nth, |nth| {
            let request = frame(
                HEADERS,
                END_STREAM | END_HEADERS,
                stream(nth),
                get("/?key=flood"),
            );
            let reset = frame(RST_STREAM, 0, stream(nth), CANCEL.to_be_bytes());
            [request, reset].concat()
        })
    });
}

#[test]
fn requests_that_are_reset_later_cost_bounded_memory_and_leave_their_queues() {
    /// Number of requests between a request and its reset: less than may run at once.
    const BETWEEN: u32 = 100;
    // If the gateway reads many at once, some are reset before they are processed, as above.
    flood(Reads::All, 16 * MB, &[], &[], |nth| {
        // Time for the gateway to process them.
        thread::sleep(Duration::from_millis(1));
        many(4, nth, |nth| {
            let head = get("/?key=flood");
            let mut frames = frame(HEADERS, END_STREAM | END_HEADERS, stream(nth), head);
            if let Some(earlier) = nth.checked_sub(BETWEEN) {
                frames.extend(frame(RST_STREAM, 0, stream(earlier), CANCEL.to_be_bytes()));
            }
            frames
        })
    });
}

#[test]
fn a_head_that_never_ends_closes_the_connection() {
    let head = frame(HEADERS, END_STREAM, stream(0), get("/?key=flood"));
    // A literal field of 1000 bytes.
    let mut field = vec![0, 1, b'a', 127, 0xE9, 6];
    field.extend([b'x'; 1000]);
    let end = flood(Reads::All, 4 * MB, &[], &head, |_| {
        frame(CONTINUATION, 0, stream(0), &field)
    });
    assert_eq!(end, End::Closed);
}

#[test]
fn settings_and_pings_whose_answers_nobody_reads_are_read_no_more() {
    let settings = |nth: u32| {
        // An initial window, a different one each time.
        let window = [&[0, 4][..], &(65_535 + nth).to_be_bytes()].concat();
        frame(SETTINGS, 0, 0, &window)
    };
    let pings = |_: u32| frame(PING, 0, 0, b"01234567");
    let all: [&(dyn Fn(u32) -> Vec<u8> + Sync); 2] = [&settings, &pings];
    side_by_side(all, |next| {
        let end = flood(Reads::Nothing, 4 * MB, &[], &[], |nth| {
            many(256, 0, |_| next(nth))
        });
        assert_ne!(end, End::Read);
    });
}

#[test]
fn pieces_of_a_body_without_a_byte_close_the_connection() {
    let head = frame(HEADERS, END_HEADERS, stream(0), fields(0x83, "/?key=flood"));
    let end = flood(Reads::All, 8 * MB, &[], &head, |nth| {
        many(256, nth, |_| frame(DATA, 0, stream(0), []))
    });
    assert_eq!(end, End::Closed);
}

#[test]
fn windows_that_grow_by_a_byte_cost_no_memory() {
    flood(Reads::All, 4 * MB, &[], &[], |nth| {
        many(256, nth, |_| {
            frame(WINDOW_UPDATE, 0, 0, 1_u32.to_be_bytes())
        })
    });
}

#[test]
fn large_answers_that_are_read_byte_by_byte_end_in_time_and_cost_bounded_memory() {
    // The initial window of each stream is one byte.
    let settings = [0, 4, 0, 0, 0, 1];
    let requests = many(100, 0, |nth| {
        let target = "/large?key=flood";
        frame(HEADERS, END_STREAM | END_HEADERS, stream(nth), get(target))
    });
    let end = flood(Reads::All, 48 * MB, &settings, &requests, |nth| {
        thread::sleep(Duration::from_millis(10));
        frame(WINDOW_UPDATE, 0, stream(nth % 100), 1_u32.to_be_bytes())
    });
    assert_eq!(end, End::Read);
}
