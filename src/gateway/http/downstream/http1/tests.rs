//! Tests of reading heads over HTTP/1.

use proptest::prelude::*;
use testing::{bytes, config};
use tokio::net::UnixStream;
use tokio::runtime::Builder;

use super::*;

/// Reads a head from pieces that arrive one after the other. Returns it and the bytes after it.
///
/// Returns `None` if the pieces are not a complete head.
fn read_pieces(pieces: &[&[u8]]) -> Option<(String, Vec<u8>)> {
    let timeouts = Timeouts {
        max_header_size: 4 << 20,
        ..Timeouts::of(&crate::test_settings::with("").server)
    };
    let (near, _far) = UnixStream::pair().expect("two sockets");
    let mut connection = Http1Connection::new(near, false, Rc::new(timeouts), &Rc::default());
    let (mut searched, mut pieces) = (0, pieces.iter().filter(|piece| !piece.is_empty()));
    let next = pieces.find_map(|piece| connection.take_piece(piece, &mut searched))?;
    let read = match next {
        Ok(head) => format!("{head:?}"),
        Err(End::Http2) => "HTTP/2".to_owned(),
        // The reason may differ: a truncated first line can have another error.
        Err(End::Refused(_)) => return Some(("refused".to_owned(), Vec::new())),
        Err(_) => unreachable!("no bytes end a connection in another way"),
    };
    let rest: Vec<&[u8]> = pieces.copied().collect();
    Some((read, [connection.kept, rest.concat()].concat()))
}

/// Cuts `bytes` into pieces of these sizes, and the rest.
fn cut<'b>(mut bytes: &'b [u8], sizes: &[usize]) -> Vec<&'b [u8]> {
    let take = |size: &usize| bytes.split_off(..bytes.len().min(*size));
    let mut pieces: Vec<_> = sizes.iter().filter_map(take).collect();
    pieces.push(bytes);
    pieces
}

/// Checks that `bytes` in pieces of these sizes are read as in one piece.
fn check_in_pieces(bytes: &[u8], sizes: &[usize]) -> Result<(), TestCaseError> {
    let runtime = Builder::new_current_thread().enable_io().build()?;
    let _in_runtime = runtime.enter();
    let in_pieces = read_pieces(&cut(bytes, sizes));
    let is_refused = RequestHead::parse(&bytes[empty_lines(bytes)..]).is_err();
    // An invalid head is rejected at its end at the latest.
    if !(is_refused && in_pieces.is_none()) {
        prop_assert_eq!(in_pieces, read_pieces(&[bytes]));
    }
    Ok(())
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_head_in_pieces_is_read_as_a_whole_one(
        bytes in bytes("heads"),
        sizes in prop::collection::vec(0_usize..40, 0..60),
    ) {
        check_in_pieces(&bytes, &sizes)?;
    }

    #[test]
    fn empty_lines_before_a_head_in_pieces_are_read_as_whole_ones(
        before in prop::collection::vec(prop_oneof![Just("\r\n"), Just("\r"), Just("\n")], 0..5),
        sizes in prop::collection::vec(0_usize..5, 0..60),
    ) {
        let bytes = before.concat() + "GET /a HTTP/1.1\r\nHost: a\r\n\r\nrest";
        check_in_pieces(bytes.as_bytes(), &sizes)?;
    }

    #[test]
    fn the_preface_of_http2_in_pieces_is_read_as_a_whole_one(sizes in prop::collection::vec(0_usize..9, 0..30)) {
        check_in_pieces(&[HTTP2_PREFACE, b"rest"].concat(), &sizes)?;
    }
}

/// Guards against quadratic copying: with it, this test would take minutes.
#[tokio::test]
async fn a_head_of_a_megabyte_in_single_bytes_is_read_in_a_moment() {
    let value = "a".repeat(1 << 20);
    let head = format!("GET / HTTP/1.1\r\nHost: a\r\nx: {value}\r\n\r\n").into_bytes();
    let pieces: Vec<_> = head.chunks(1).collect();
    assert_eq!(read_pieces(&pieces), read_pieces(&[&head]));
}
