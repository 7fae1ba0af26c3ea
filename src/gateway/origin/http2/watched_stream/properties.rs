//! Property tests of what h2 sees of a connection, for any boundaries of its reads.

use proptest::prelude::*;
use testing::config;
use tokio::net::UnixStream;
use tokio::runtime::Builder;

use super::*;

/// Frame: its type, its flags, its stream and the length of its payload.
type Frame = (u8, u8, u8, usize);

fn frame() -> impl Strategy<Value = Frame> {
    let length = prop_oneof![3 => Just(0), 3 => 1..300usize, 1 => Just(16_384)];
    let kind = prop_oneof![4 => Just(DATA), 1 => Just(HEADERS), 1 => Just(8)];
    let flags = prop_oneof![3 => Just(0), 1 => Just(END_STREAM)];
    (kind, flags, 0..3u8, length)
}

/// Returns the bytes of frames, and the positions of the types of the empty pieces.
fn bytes(frames: &[Frame]) -> (Vec<u8>, Vec<usize>) {
    let (mut bytes, mut empty) = (Vec::new(), Vec::new());
    for (kind, flags, stream, length) in frames {
        if (*kind, *flags, *length) == (DATA, 0, 0) && *stream > 0 {
            empty.push(bytes.len() + KIND);
        }
        let size = u32::try_from(*length).expect("a short frame");
        bytes.extend(&size.to_be_bytes()[1..]);
        bytes.extend([*kind, *flags, 0, 0, 0, *stream]);
        // The payload itself looks like frames.
        bytes.extend(std::iter::repeat_n(0, *length));
    }
    (bytes, empty)
}

/// Returns a connection with this budget.
fn watched(budget: &Rc<Budget>) -> io::Result<WatchedStream> {
    let (near, _) = UnixStream::pair()?;
    Ok(WatchedStream::new(OriginStream::Unix(near), budget.clone()))
}

/// Returns what h2 sees of these bytes, read in a cycle of these sizes.
fn seen(mut bytes: Vec<u8>, reads: &[usize]) -> io::Result<Vec<u8>> {
    let runtime = Builder::new_current_thread().enable_io().build()?;
    let _inside = runtime.enter();
    let budget = Rc::<Budget>::default();
    (0..10).for_each(|_| budget.begin());
    let mut watched = watched(&budget)?;
    let (mut rest, mut reads) = (&mut bytes[..], reads.iter().cycle());
    while let Some(size) = reads.next().filter(|_| !rest.is_empty()) {
        let (read, unread) = rest.split_at_mut(rest.len().min(*size));
        watched.watch(read)?;
        rest = unread;
    }
    Ok(bytes)
}

/// Receives frames in one read.
fn receive(watched: &mut WatchedStream, frames: &[Frame]) -> io::Result<()> {
    watched.watch(&mut bytes(frames).0)
}

#[tokio::test]
async fn padding_takes_nothing_of_the_window_of_other_streams() -> io::Result<()> {
    let budget = Rc::<Budget>::default();
    let mut watched = watched(&budget)?;
    budget.begin();
    for _ in 0..20_000 {
        budget.begin();
        // A head; then twice a piece with the length of its padding and one byte of padding.
        receive(&mut watched, &[(HEADERS, 0, 3, 1)])?;
        for flags in [PADDED, PADDED | END_STREAM] {
            let mut piece = [0, 0, 2, DATA, flags, 0, 0, 0, 3, 1, 0];
            let (first, second) = piece.split_at_mut(FRAME_HEAD);
            watched.watch(first)?;
            watched.watch(second)?;
        }
        watched.empty_pieces = 0;
        budget.end(true, 1);
    }
    receive(&mut watched, &[(DATA, 0, 1, WINDOW)])?;
    assert!(receive(&mut watched, &[(DATA, 0, 1, 1)]).is_err());
    Ok(())
}

#[tokio::test]
async fn each_cancelled_request_leaves_room_for_its_head_and_its_end() -> io::Result<()> {
    let budget = Rc::<Budget>::default();
    let mut watched = watched(&budget)?;
    for _ in 0..MAX_CANCELLED {
        budget.begin();
        budget.end(false, 0);
    }
    let heads = vec![(HEADERS, 0, 1, 1); 2 * MAX_CANCELLED + MAX_LATE];
    receive(&mut watched, &heads)?;
    assert!(receive(&mut watched, &[(HEADERS, 0, 1, 1)]).is_err());
    Ok(())
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn empty_pieces_become_unknown_frames_and_nothing_else_changes(
        frames in prop::collection::vec(frame(), 0..40),
        reads in prop::collection::vec(1..2000usize, 1..5),
    ) {
        let (bytes, empty) = bytes(&frames);
        let whole = seen(bytes.clone(), &[usize::MAX]).expect("few heads");
        let mut expected = bytes.clone();
        for at in &empty {
            expected[*at] = UNKNOWN;
        }
        prop_assert_eq!(&whole, &expected);
        // An empty piece stays unchanged if a read ends within its head.
        let in_parts = seen(bytes.clone(), &reads).expect("few heads");
        for (at, byte) in in_parts.iter().enumerate() {
            prop_assert!(*byte == bytes[at] || *byte == UNKNOWN && empty.contains(&at));
        }
    }
}
