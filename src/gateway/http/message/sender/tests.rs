//! Tests of the sender.

use std::task::Waker;

use proptest::prelude::*;
use testing::config;

use super::*;
use crate::http::message::{BodyDecoder, READ_SIZE};

/// Writer that accepts as many bytes per call as `sizes` lists, in turn. Zero: not ready, once.
struct Writer {
    sizes: Vec<usize>,
    writes: Vec<Vec<u8>>,
    calls: usize,
    flushed: bool,
}

impl Writer {
    fn new(sizes: Vec<usize>) -> Self {
        Self {
            sizes,
            writes: Vec::new(),
            calls: 0,
            flushed: true,
        }
    }

    fn taken(&self) -> Vec<u8> {
        self.writes.concat()
    }
}

impl AsyncWrite for Writer {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let size = this.sizes[this.calls % this.sizes.len()];
        this.calls += 1;
        if size == 0 {
            return Poll::Pending;
        }
        let count = size.min(bytes.len());
        this.writes.push(bytes[..count].to_vec());
        this.flushed = false;
        Poll::Ready(Ok(count))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().flushed = true;
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Sends one piece. Repeats the call while the writer is not ready.
fn send(sender: &mut Sender, to: &mut Writer, piece: &mut Buffer, then: Then<'_>) {
    let mut cx = Context::from_waker(Waker::noop());
    for _ in 0..1000 {
        if sender.poll_send(&mut cx, to, piece, then).is_ready() {
            assert!(piece.is_empty() && to.flushed && sender.out.is_none());
            return;
        }
    }
    panic!("it is never sent");
}

fn piece_of(data: &[u8]) -> Buffer {
    let mut piece = Buffer::take();
    piece.clear_for_body();
    piece.put(data);
    piece
}

/// Sends a message whose body has these pieces.
fn send_message(
    sender: &mut Sender,
    to: &mut Writer,
    (head, length, pieces): (&[u8], BodyLength, &[Vec<u8>]),
    trailers: Option<&Trailers>,
) {
    sender.head().put(head);
    sender.begin_body(length);
    for (index, data) in pieces.iter().enumerate() {
        let then = if index + 1 == pieces.len() {
            Then::End(trailers)
        } else {
            Then::More
        };
        send(sender, to, &mut piece_of(data), then);
    }
}

fn trailers() -> Trailers {
    let mut trailers = Trailers::default();
    trailers.push(b"checksum", b"1");
    trailers
}

#[test]
fn a_head_and_what_follows_go_out_in_one_write_where_they_fit() {
    let chunked = BodyLength::Chunked;
    let cases: [(_, &[u8], Then<'_>, &[u8]); 6] = [
        (BodyLength::Length(5), b"hello", Then::End(None), b"hello"),
        (BodyLength::Length(9), b"hello", Then::More, b"hello"),
        (BodyLength::UntilClose, b"hello", Then::More, b"hello"),
        (chunked, b"hello", Then::More, b"5\r\nhello\r\n"),
        (
            chunked,
            b"hello",
            Then::End(None),
            b"5\r\nhello\r\n0\r\n\r\n",
        ),
        (chunked, b"", Then::End(None), b"0\r\n\r\n"),
    ];
    for (length, data, then, body) in cases {
        let mut writer = Writer::new(vec![usize::MAX]);
        let mut sender = Sender::default();
        sender.head().put(b"head\r\n\r\n");
        sender.begin_body(length);
        assert!(sender.out.is_some() && sender.is_untouched());
        send(&mut sender, &mut writer, &mut piece_of(data), then);
        assert_eq!(writer.writes, [[b"head\r\n\r\n", body].concat()]);
    }
}

#[test]
fn a_piece_too_long_to_fit_behind_the_head_is_not_copied() {
    let data = vec![b'a'; READ_SIZE];
    let framed = [b"4000\r\n", &data[..], b"\r\n0\r\n\r\n"].concat();
    let mut writer = Writer::new(vec![usize::MAX]);
    let mut sender = Sender::default();
    sender.head().put(&[b'h'; 2000]);
    sender.begin_body(BodyLength::Chunked);
    let mut piece = piece_of(&data);
    send(&mut sender, &mut writer, &mut piece, Then::End(None));
    assert_eq!(writer.writes, [vec![b'h'; 2000], framed]);
}

#[test]
fn nothing_is_written_until_there_is_something() {
    let mut cx = Context::from_waker(Waker::noop());
    let mut writer = Writer::new(vec![usize::MAX]);
    let mut sender = Sender::default();
    assert!(sender.out.is_none() && !sender.is_untouched());
    assert!(sender.poll_flush(&mut cx, &mut writer).is_ready());
    send(&mut sender, &mut writer, &mut piece_of(b""), Then::More);
    assert!(writer.writes.is_empty());
}

#[test]
fn a_head_of_which_a_byte_was_written_is_not_untouched() {
    let mut cx = Context::from_waker(Waker::noop());
    let mut writer = Writer::new(vec![0, 1, 0]);
    let mut sender = Sender::default();
    sender.head().put(b"head");
    for untouched in [true, false] {
        assert!(sender.poll_flush(&mut cx, &mut writer).is_pending());
        assert_eq!(sender.is_untouched(), untouched);
    }
}

#[test]
fn bytes_added_to_a_partly_written_head_follow_it() {
    let mut cx = Context::from_waker(Waker::noop());
    let mut writer = Writer::new(vec![3, 0, usize::MAX]);
    let mut sender = Sender::default();
    sender.head().put(b"head\r\n\r\n");
    sender.begin_body(BodyLength::Chunked);
    assert!(sender.poll_flush(&mut cx, &mut writer).is_pending());
    let (mut piece, trailers) = (piece_of(b"hello"), trailers());
    send(
        &mut sender,
        &mut writer,
        &mut piece,
        Then::End(Some(&trailers)),
    );
    let rest: &[u8] = b"d\r\n\r\n5\r\nhello\r\n0\r\nchecksum: 1\r\n\r\n";
    assert_eq!(writer.writes, [b"hea", rest]);
}

#[test]
fn errors_are_returned() {
    let mut cx = Context::from_waker(Waker::noop());
    let (mut ours, theirs) = tokio::io::duplex(1);
    drop(theirs);
    let mut sender = Sender::default();
    sender.head().put(b"head");
    sender.begin_body(BodyLength::None);
    let mut piece = Buffer::take();
    let sent = sender.poll_send(&mut cx, &mut ours, &mut piece, Then::End(None));
    assert!(matches!(sent, Poll::Ready(Err(_))));
}

proptest! {
    #![proptest_config(config())]

    /// All bytes arrive in order, even if the other side accepts only a few at a time.
    #[test]
    fn all_bytes_arrive_in_order(
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
            let head = vec![b'h'; *head];
            let data = pieces.concat();
            let length = if *chunked {
                BodyLength::Chunked
            } else {
                BodyLength::Length(data.len() as u64)
            };
            let before = writer.taken().len();
            let message = (&head[..], length, &pieces[..]);
            send_message(&mut sender, &mut writer, message, Some(&trailers));
            let mut sent = writer.taken().split_off(before);
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
