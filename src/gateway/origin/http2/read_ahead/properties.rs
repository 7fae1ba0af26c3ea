//! Property tests of buffered bodies: each is a queue of bytes, and all bytes are counted.

use proptest::prelude::*;
use testing::cases;

use super::*;

/// Step of one body among several of a connection.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// A frame with this number of bytes arrives, cut to the window.
    Arrive(usize),
    /// The client takes a piece.
    Take,
    /// The request ends, and another one begins.
    End,
}

fn step() -> impl Strategy<Value = (usize, Step)> {
    let size = prop_oneof![3 => 1..300usize, 2 => Just(16_384), 1 => 300..16_384usize];
    let step = prop_oneof![
        8 => size.prop_map(Step::Arrive),
        4 => Just(Step::Take),
        1 => Just(Step::End),
    ];
    (0..3usize, step)
}

/// Buffer of a body, and the bytes that it must have.
struct Model {
    read_ahead: ReadAhead,
    unread: VecDeque<u8>,
    /// Number of bytes that have arrived.
    received: usize,
}

impl Model {
    fn new(all: &UnreadBytes) -> Self {
        Self {
            read_ahead: ReadAhead::new(all.clone()),
            unread: VecDeque::new(),
            received: 0,
        }
    }

    fn step(&mut self, step: Step, all: &UnreadBytes) -> Result<(), TestCaseError> {
        match step {
            Step::Arrive(size) => {
                let window = STREAM_WINDOW as usize - self.unread.len();
                let end = self.received + size.min(window);
                let bytes = (self.received..end).map(|nth| nth.to_le_bytes()[0]);
                let bytes: Vec<u8> = bytes.collect();
                self.received = end;
                self.read_ahead.put(&bytes);
                self.unread.extend(bytes);
            }
            Step::Take => {
                let mut piece = Buffer::take();
                piece.clear_for_body();
                let count = self.read_ahead.take(&mut piece);
                // A piece is empty only if nothing is buffered.
                prop_assert_eq!(count == 0, self.unread.is_empty());
                prop_assert_eq!(count, piece.len());
                prop_assert!(count <= READ_SIZE);
                let expected: Vec<u8> = self.unread.drain(..count).collect();
                prop_assert_eq!(piece.filled(), &expected[..]);
            }
            Step::End => *self = Self::new(all),
        }
        prop_assert_eq!(self.read_ahead.is_empty(), self.unread.is_empty());
        prop_assert!(self.read_ahead.bytes.capacity() <= STREAM_WINDOW as usize);
        if self.unread.is_empty() {
            prop_assert_eq!(self.read_ahead.bytes.capacity(), 0);
        }
        Ok(())
    }
}

proptest! {
    // Numbers of cases: in an everyday run, and in the long search.
    #![proptest_config(cases(12, 2048))]

    #[test]
    fn bytes_come_in_order_and_never_exceed_the_window(
        steps in prop::collection::vec(step(), 1..200),
    ) {
        let all = UnreadBytes::default();
        let mut bodies: Vec<_> = (0..3).map(|_| Model::new(&all)).collect();
        for (body, step) in steps {
            bodies[body].step(step, &all)?;
            let unread: usize = bodies.iter().map(|body| body.unread.len()).sum();
            prop_assert_eq!(all.get(), unread);
        }
        drop(bodies);
        prop_assert_eq!(all.get(), 0);
    }
}
