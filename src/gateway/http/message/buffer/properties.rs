//! Property tests of buffers: after any sequence of calls, a buffer is a queue of bytes.

use std::task::Waker;

use proptest::prelude::*;
use testing::config;

use super::*;
use crate::http::message::test_writer::Writer;

/// One call of a buffer.
#[derive(Clone, Copy, Debug)]
enum Step {
    Put(usize),
    PutBefore(usize),
    Fill { limit: usize, most: usize },
    Consume(usize),
    Truncate(usize),
    Drain { most: usize },
    ClearForBody,
}

fn size() -> impl Strategy<Value = usize> {
    prop_oneof![
        4 => 0..30usize,
        2 => 0..2 * CAPACITY,
        1 => Just(READ_SIZE),
        1 => Just(CAPACITY),
        1 => CAPACITY - 20..CAPACITY + 20,
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => size().prop_map(Step::Put),
        1 => (1..=CHUNK_HEADROOM).prop_map(Step::PutBefore),
        4 => (prop_oneof![size(), Just(usize::MAX)], size())
            .prop_map(|(limit, most)| Step::Fill { limit: limit.max(1), most }),
        3 => size().prop_map(Step::Consume),
        1 => size().prop_map(Step::Truncate),
        1 => size().prop_map(|most| Step::Drain { most }),
        2 => Just(Step::ClearForBody),
    ]
}

/// Generates bytes that differ from their neighbours.
struct Source(u64);

impl Source {
    fn next(&mut self, count: usize) -> Vec<u8> {
        let bytes = (0..count as u64).map(|index| ((self.0 + index) % 251) as u8);
        let bytes = bytes.collect();
        self.0 += count as u64;
        bytes
    }
}

/// Applies one step to the buffer and to `model`, which holds the expected bytes.
fn apply(
    step: Step,
    buffer: &mut Buffer,
    model: &mut Vec<u8>,
    source: &mut Source,
) -> Result<(), TestCaseError> {
    let mut cx = Context::from_waker(Waker::noop());
    match step {
        Step::Put(count) => {
            let bytes = source.next(count);
            let fits = buffer.has_room_for(count);
            let capacity = buffer.bytes.len();
            buffer.put(&bytes);
            prop_assert_eq!(fits, buffer.bytes.len() == capacity);
            model.extend(bytes);
        }
        Step::PutBefore(count) => {
            let (bytes, has_headroom) = (source.next(count), buffer.start >= count);
            prop_assert_eq!(buffer.put_before(&bytes), has_headroom);
            if has_headroom {
                model.splice(..0, bytes);
            }
        }
        Step::Fill { limit, most } => {
            let offered = source.next(most);
            let mut rest = &offered[..];
            let read = buffer.poll_fill(&mut cx, &mut rest, limit);
            let taken = most - rest.len();
            prop_assert!(matches!(read, Poll::Ready(Ok(count)) if count == taken));
            prop_assert!((taken > 0 || most == 0) && taken <= limit.min(READ_SIZE));
            model.extend(&offered[..taken]);
        }
        Step::Consume(count) => {
            buffer.consume(count);
            model.drain(..count.min(model.len()));
        }
        Step::Truncate(count) => {
            buffer.truncate(count);
            model.truncate(count);
        }
        Step::Drain { most: 0 } => {
            // This writer is full: it accepts no byte.
            let mut to = io::Cursor::new(&mut [0_u8; 0][..]);
            let drained = buffer.poll_drain(&mut cx, &mut to);
            let drained = drained.map_err(|error| error.kind());
            let is_full = Err(io::ErrorKind::WriteZero);
            let expected = if model.is_empty() { Ok(()) } else { is_full };
            prop_assert_eq!(drained, Poll::Ready(expected));
        }
        Step::Drain { most } => {
            let mut to = Writer::new(vec![most]);
            let drained = buffer.poll_drain(&mut cx, &mut to);
            prop_assert!(matches!(drained, Poll::Ready(Ok(()))));
            prop_assert_eq!(to.writes.concat(), std::mem::take(model));
        }
        Step::ClearForBody => {
            buffer.clear_for_body();
            let has_headroom = buffer.start >= CHUNK_HEADROOM;
            prop_assert!(has_headroom || buffer.bytes.is_empty());
            model.clear();
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_buffer_is_a_queue_of_bytes(
        has_room in any::<bool>(),
        steps in prop::collection::vec(step(), 0..30),
    ) {
        let mut buffer = if has_room { Buffer::take() } else { Buffer::default() };
        let (mut model, mut source) = (Vec::new(), Source(0));
        for step in steps {
            let shown = format!("{step:?}");
            apply(step, &mut buffer, &mut model, &mut source)?;
            prop_assert!(buffer.filled() == model, "{}", shown);
            prop_assert_eq!(buffer.filled_mut().len(), model.len());
            prop_assert_eq!((buffer.len(), buffer.is_empty()), (model.len(), model.is_empty()));
            prop_assert!(!(buffer.is_untouched() && buffer.is_empty()));
            prop_assert_eq!(buffer.bytes.len() % CAPACITY, 0);
        }
    }

    /// A buffer that is emptied in time does not grow, whatever the number of bytes.
    #[test]
    fn a_buffer_does_not_grow_while_it_is_emptied(
        steps in prop::collection::vec((1..READ_SIZE, 0..CHUNK_HEADROOM), 1..50),
    ) {
        let (mut buffer, mut source) = (Buffer::take(), Source(0));
        let mut cx = Context::from_waker(Waker::noop());
        buffer.clear_for_body();
        for (most, kept) in steps {
            let offered = source.next(most);
            prop_assert!(buffer.poll_fill(&mut cx, &mut &offered[..], usize::MAX).is_ready());
            buffer.consume(buffer.len().saturating_sub(kept));
        }
        prop_assert_eq!(buffer.bytes.len(), CAPACITY);
    }
}

#[test]
fn buffers_are_counted_and_come_back() {
    // A new thread has a new pool.
    let counted = std::thread::spawn(|| {
        let own = || {
            let stats = POOL.with(|pool| pool.stats.read());
            (stats.in_use, stats.pooled)
        };
        let (mut one, mut other) = (Buffer::take(), Buffer::default());
        assert_eq!(own(), (1, 0));
        other.put(b"a");
        assert_eq!(own(), (2, 0));
        drop(other);
        assert_eq!(own(), (1, 1));
        assert!(super::stats().pooled >= 1);
        // A buffer that grew is not kept.
        one.put(&vec![0; CAPACITY + 1]);
        drop(one);
        assert_eq!(own(), (0, 1));
        drop(Buffer::take());
        assert_eq!(own(), (0, 1));
        let many: Vec<_> = (0..=MAX_POOLED).map(|_| Buffer::take()).collect();
        drop(many);
        assert_eq!(own(), (0, MAX_POOLED));
    });
    counted.join().unwrap();
}

#[test]
fn the_end_and_an_error_are_returned() {
    let mut cx = Context::from_waker(Waker::noop());
    let mut buffer = Buffer::take();
    buffer.put(b"a");
    let end = buffer.poll_fill(&mut cx, &mut &b""[..], usize::MAX);
    assert!(matches!(end, Poll::Ready(Ok(0))));
    assert_eq!(buffer.filled(), b"a");
    let (mut ours, theirs) = tokio::io::duplex(1);
    assert!(buffer.poll_fill(&mut cx, &mut ours, 1).is_pending());
    drop(theirs);
    let broken = buffer.poll_drain(&mut cx, &mut ours);
    assert!(matches!(broken, Poll::Ready(Err(_))));
}
