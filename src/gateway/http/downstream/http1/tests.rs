//! Tests of reading heads over HTTP/1.

use std::time::Duration;

use proptest::prelude::*;
use testing::{bytes, config};
use tokio::net::UnixStream;

use super::*;
use crate::time::lag::Floor;

const LIMIT: u32 = 4 << 20;

/// Creates a connection, and returns it with the other end of its socket.
fn connection() -> (Http1Connection<UnixStream>, UnixStream) {
    let (near, far) = UnixStream::pair().expect("two sockets");
    let timeouts = Timeouts {
        header: Duration::from_secs(10),
        keep_alive: Duration::from_secs(75),
        reuse: limit::ReuseLimits::default(),
        floor: Floor {
            pause: Duration::from_secs(30),
            span: Duration::from_secs(30),
            byte_nanos: u32::MAX,
        },
        max_header_size: LIMIT,
        max_concurrent_streams: 128,
    };
    let connection = Http1Connection::new(near, false, Rc::new(timeouts), &Rc::default());
    (connection, far)
}

/// Reads `pieces` one after the other. Returns the head and the bytes after it.
///
/// Returns `None` if the pieces are not a complete head.
fn reading(pieces: &[&[u8]]) -> Option<(String, Vec<u8>)> {
    let (mut connection, _far) = connection();
    let (mut searched, mut pieces) = (0, pieces.iter());
    while let Some(piece) = pieces.next() {
        if piece.is_empty() {
            continue;
        }
        let Some(next) = connection.take_piece(piece, &mut searched) else {
            continue;
        };
        let read = match next {
            Ok(head) => format!("{head:?}"),
            Err(End::Http2) => "HTTP/2".to_owned(),
            // The reason may differ: a truncated first line can have another error.
            Err(End::Refused(_)) => return Some(("refused".to_owned(), Vec::new())),
            Err(_) => unreachable!("no byte says so"),
        };
        let rest: Vec<&[u8]> = pieces.copied().collect();
        return Some((read, [connection.kept, rest.concat()].concat()));
    }
    None
}

fn pieces<'b>(mut bytes: &'b [u8], sizes: &[usize]) -> Vec<&'b [u8]> {
    let mut pieces = Vec::new();
    for size in sizes {
        let (piece, rest) = bytes.split_at((*size).min(bytes.len()));
        pieces.push(piece);
        bytes = rest;
    }
    pieces.push(bytes);
    pieces
}

fn split_holds(bytes: &[u8], sizes: &[usize]) -> Result<(), TestCaseError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    let _in_it = runtime.enter();
    let whole = reading(&[bytes]);
    let split = reading(&pieces(bytes, sizes));
    let is_refused = RequestHead::parse(&bytes[empty_lines(bytes)..]).is_err();
    // An invalid head is rejected at its end at the latest.
    if !(is_refused && split.is_none()) {
        prop_assert_eq!(split, whole);
    }
    Ok(())
}

proptest! {
    #![proptest_config(config())]

    /// A head is read alike, however it is split into pieces.
    #[test]
    fn a_head_in_pieces_is_read_as_a_whole_one(
        bytes in bytes("heads"),
        sizes in prop::collection::vec(0_usize..40, 0..60),
    ) {
        split_holds(&bytes, &sizes)?;
    }

    #[test]
    fn empty_lines_before_a_head_in_pieces_are_read_as_whole_ones(
        before in prop::collection::vec(prop_oneof![Just("\r\n"), Just("\r"), Just("\n")], 0..5),
        sizes in prop::collection::vec(0_usize..5, 0..60),
    ) {
        let bytes = before.concat() + "GET /a HTTP/1.1\r\nHost: a\r\n\r\nrest";
        split_holds(bytes.as_bytes(), &sizes)?;
    }

    #[test]
    fn the_preface_of_http2_in_pieces_is_read_as_a_whole_one(sizes in prop::collection::vec(0_usize..9, 0..30)) {
        split_holds(&[HTTP2_PREFACE, b"rest"].concat(), &sizes)?;
    }
}

/// Guards against quadratic copying: with it, this test would take minutes.
#[tokio::test]
async fn a_head_of_a_megabyte_in_single_bytes_is_read_in_a_moment() {
    let value = "a".repeat(1 << 20);
    let head = format!("GET / HTTP/1.1\r\nHost: a\r\nx: {value}\r\n\r\n").into_bytes();
    let pieces: Vec<_> = head.chunks(1).collect();
    assert_eq!(reading(&pieces), reading(&[&head]));
}
