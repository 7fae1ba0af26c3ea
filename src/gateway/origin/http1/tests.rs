//! Tests of HTTP/1 connections to servers.

use proptest::prelude::*;
use testing::config;
use tokio::net::UnixStream;

use super::*;

/// Reads a head in these pieces: the head and its size, or an error; `None` if it is not complete.
fn read_head(pieces: &[&[u8]]) -> Option<Result<(String, usize), InvalidResponse>> {
    let (near, _far) = UnixStream::pair().expect("two sockets");
    let usage = Usage::new(&ReuseLimits::default(), Moment::default());
    let mut connection = Http1Connection::new(OriginStream::Unix(near), &Rc::default(), usage);
    for piece in pieces.iter().filter(|piece| !piece.is_empty()) {
        let received = connection.received.get_or_insert_with(Buffer::take);
        received.put(piece);
        let mut table = FieldTable::new();
        if let Some(head) = connection.head(&mut table, false, usize::MAX).transpose() {
            return Some(head.map(|(head, size)| (format!("{head:?}"), size)));
        }
    }
    None
}

/// Cuts bytes into pieces of these sizes, and the rest.
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

/// Heads of responses, many of them invalid.
fn head() -> impl Strategy<Value = Vec<u8>> {
    let fields = [
        "x: y",
        "content-length: 5",
        "content-length: 6",
        "transfer-encoding: chunked",
    ];
    let invalid = ["no field", " folded", "", "\r"];
    let line = prop::sample::select([fields, invalid].concat());
    let end = prop_oneof![8 => Just("\r\n"), 1 => Just("\n"), 1 => Just("\r")];
    let first = prop_oneof![
        4 => Just("HTTP/1.1 200 OK"),
        1 => Just("HTTP/1.1 100 "),
        1 => Just("SSH-2.0-x"),
        1 => Just(""),
    ];
    let lines = prop::collection::vec((line, end.clone()), 0..12);
    (first, end, lines).prop_map(|(first, end, lines)| {
        let lines = lines.iter().map(|(line, end)| format!("{line}{end}"));
        (format!("{first}{end}") + &lines.collect::<String>()).into_bytes()
    })
}

proptest! {
    #![proptest_config(config())]

    /// A head in pieces is read as if it came at once. An invalid head may be found later.
    #[test]
    fn a_head_in_pieces_is_read_as_a_whole_one(
        head in head(),
        sizes in prop::collection::vec(0_usize..20, 0..60),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let _in_it = runtime.enter();
        let mut table = FieldTable::new();
        let whole = ResponseHead::parse(&head, &mut table, false);
        let whole = whole.map(|parsed| parsed.map(|(head, size)| (format!("{head:?}"), size)));
        match (read_head(&pieces(&head, &sizes)), whole) {
            (None, Ok(None) | Err(_)) | (Some(Err(_)), Err(_)) => {}
            (Some(Ok(read)), Ok(Some(whole))) => prop_assert_eq!(read, whole),
            (read, whole) => prop_assert!(false, "{read:?} of {whole:?}"),
        }
    }
}

/// Without memory of the searched part, this takes minutes.
#[tokio::test]
async fn a_head_of_a_megabyte_in_single_bytes_is_read_in_a_moment() {
    let value = "a".repeat(1 << 20);
    let head = format!("HTTP/1.1 200 OK\r\nx: {value}\r\n\r\n").into_bytes();
    let pieces: Vec<_> = head.chunks(1).collect();
    let read = read_head(&pieces).expect("it is complete");
    assert_eq!(read.map(|(_, size)| size), Ok(head.len()));
}
