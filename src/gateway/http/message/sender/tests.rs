//! Tests of the sender.
//!
//! A [`Writer`] accepts the given numbers of bytes, one number for each write. At 0 it is not
//! ready.

use std::task::Waker;

use proptest::prelude::*;
use testing::config;

use super::*;
use crate::http::message::test_writer::Writer;
use crate::http::message::{BodyDecoder, READ_SIZE};

/// Creates a sender that begins a message with this head, and a body of this length.
fn sender_of(head: &[u8], length: BodyLength) -> Sender {
    let mut sender = Sender::default();
    sender.head().put(head);
    sender.begin_body(length);
    sender
}

/// Sends one piece. Repeats the call while the writer is not ready.
fn send(sender: &mut Sender, to: &mut Writer, data: &[u8], then: Then<'_>) {
    let mut cx = Context::from_waker(Waker::noop());
    let mut piece = Buffer::for_body();
    piece.put(data);
    for _ in 0..1000 {
        if sender.poll_send(&mut cx, to, &mut piece, then).is_ready() {
            assert!(piece.is_empty() && to.is_flushed && sender.out.is_none());
            return;
        }
    }
    panic!("the piece is never sent");
}

/// Flushes once. Returns whether all bytes were written.
fn flush(sender: &mut Sender, to: &mut Writer) -> bool {
    let mut cx = Context::from_waker(Waker::noop());
    sender.poll_flush(&mut cx, to).is_ready()
}

fn trailers() -> Trailers {
    let mut trailers = Trailers::default();
    trailers.push(b"checksum", b"1");
    trailers
}

#[test]
fn a_head_and_what_follows_go_out_in_one_write_where_they_fit() {
    const END: Then<'static> = Then::End(None);
    let chunked = BodyLength::Chunked;
    // Length of the body, a piece of it, what follows the piece, and the bytes after the head.
    let cases: [(_, &[u8], _, &[u8]); 6] = [
        (BodyLength::Length(5), b"hello", END, b"hello"),
        (BodyLength::Length(9), b"hello", Then::More, b"hello"),
        (BodyLength::UntilClose, b"hello", Then::More, b"hello"),
        (chunked, b"hello", Then::More, b"5\r\nhello\r\n"),
        (chunked, b"hello", END, b"5\r\nhello\r\n0\r\n\r\n"),
        (chunked, b"", END, b"0\r\n\r\n"),
    ];
    for (length, data, then, body) in cases {
        let mut writer = Writer::new(vec![usize::MAX]);
        let mut sender = sender_of(b"head\r\n\r\n", length);
        assert!(sender.out.is_some() && sender.is_untouched());
        send(&mut sender, &mut writer, data, then);
        assert_eq!(writer.writes, [[b"head\r\n\r\n", body].concat()]);
    }
}

#[test]
fn a_piece_too_long_to_fit_behind_the_head_is_not_copied() {
    let data = vec![b'a'; READ_SIZE];
    // The size of the chunk is `READ_SIZE` in hexadecimal.
    let framed = [b"4000\r\n", &data[..], b"\r\n0\r\n\r\n"].concat();
    let mut writer = Writer::new(vec![usize::MAX]);
    let mut sender = sender_of(&[b'h'; 2000], BodyLength::Chunked);
    send(&mut sender, &mut writer, &data, Then::End(None));
    assert_eq!(writer.writes, [vec![b'h'; 2000], framed]);
}

#[test]
fn nothing_is_written_until_there_is_something() {
    let mut writer = Writer::new(vec![usize::MAX]);
    let mut sender = Sender::default();
    assert!(sender.out.is_none() && !sender.is_untouched());
    assert!(flush(&mut sender, &mut writer));
    send(&mut sender, &mut writer, b"", Then::More);
    assert!(writer.writes.is_empty());
}

#[test]
fn a_head_of_which_a_byte_was_written_is_not_untouched() {
    // The first flush writes nothing, and the second one a single byte.
    let mut writer = Writer::new(vec![0, 1, 0]);
    let mut sender = Sender::default();
    sender.head().put(b"head");
    for untouched in [true, false] {
        assert!(!flush(&mut sender, &mut writer));
        assert_eq!(sender.is_untouched(), untouched);
    }
}

#[test]
fn bytes_added_to_a_partly_written_head_follow_it() {
    let mut writer = Writer::new(vec![3, 0, usize::MAX]);
    let mut sender = sender_of(b"head\r\n\r\n", BodyLength::Chunked);
    assert!(!flush(&mut sender, &mut writer));
    let trailers = trailers();
    let then = Then::End(Some(&trailers));
    send(&mut sender, &mut writer, b"hello", then);
    let rest: &[u8] = b"d\r\n\r\n5\r\nhello\r\n0\r\nchecksum: 1\r\n\r\n";
    assert_eq!(writer.writes, [b"hea", rest]);
}

#[test]
fn errors_are_returned() {
    let mut cx = Context::from_waker(Waker::noop());
    // The other end is dropped at once.
    let (mut ours, _) = tokio::io::duplex(1);
    let mut sender = sender_of(b"head", BodyLength::None);
    let mut piece = Buffer::take();
    let sent = sender.poll_send(&mut cx, &mut ours, &mut piece, Then::End(None));
    assert!(matches!(sent, Poll::Ready(Err(_))));
}

proptest! {
    #![proptest_config(config())]

    /// All bytes arrive in order, even if the other side accepts only a few at a time.
    #[test]
    fn all_bytes_arrive_in_order(
        // Of each message: the length of its head, whether its body is chunked, and the pieces of
        // the body.
        messages in prop::collection::vec(
            (0..3000usize, any::<bool>(), prop::collection::vec(
                prop_oneof![
                    4 => prop::collection::vec(any::<u8>(), 0..60),
                    1 => (0..2 * READ_SIZE).prop_map(|count| vec![b'x'; count]),
                ],
                1..4,
            )),
            1..4,
        ),
        sizes in prop::collection::vec(
            prop_oneof![2 => 0..100usize, 1 => 100..2 * READ_SIZE],
            0..8,
        ),
        last in 100..READ_SIZE,
    ) {
        let mut writer = Writer::new([sizes, vec![last]].concat());
        let mut sender = Sender::default();
        let trailers = trailers();
        for (head, chunked, pieces) in &messages {
            let (head, data) = (vec![b'h'; *head], pieces.concat());
            let exact = BodyLength::Length(data.len() as u64);
            let length = if *chunked { BodyLength::Chunked } else { exact };
            sender.head().put(&head);
            sender.begin_body(length);
            let (last, others) = pieces.split_last().unwrap();
            for piece in others {
                send(&mut sender, &mut writer, piece, Then::More);
            }
            send(&mut sender, &mut writer, last, Then::End(Some(&trailers)));
            let mut sent = std::mem::take(&mut writer.writes).concat();
            prop_assert!(sent.starts_with(&head));
            let body = &mut sent[head.len()..];
            let mut decoder = BodyDecoder::new(length);
            let (count, used) = decoder.decode(body).unwrap();
            prop_assert_eq!(used, body.len());
            prop_assert!(decoder.is_over() && body[..count] == data);
            prop_assert_eq!(decoder.trailers(), chunked.then_some(&trailers));
        }
    }
}
