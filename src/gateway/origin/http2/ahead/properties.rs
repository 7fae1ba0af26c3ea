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

/// Body as the server counts it: the bytes it has sent, and its window.
struct Model {
    ahead: Ahead,
    waiting: VecDeque<u8>,
    window: usize,
    next: u8,
}

impl Model {
    fn new(all: &Undelivered) -> Self {
        Self {
            ahead: Ahead::new(all.clone()),
            waiting: VecDeque::new(),
            window: STREAM_WINDOW as usize,
            next: 0,
        }
    }

    fn step(&mut self, step: Step, all: &Undelivered) -> Result<(), TestCaseError> {
        match step {
            Step::Arrive(size) => {
                let size = size.min(self.window);
                let bytes: Vec<u8> = (0..size)
                    .map(|_| {
                        self.next = self.next.wrapping_add(1);
                        self.next
                    })
                    .collect();
                self.window -= size;
                self.ahead.put(&bytes);
                self.waiting.extend(bytes);
            }
            Step::Take => {
                let mut piece = Buffer::take();
                piece.clear_for_body();
                let count = self.ahead.take(&mut piece);
                // A piece is empty only if nothing is buffered.
                prop_assert_eq!(count == 0, self.waiting.is_empty());
                prop_assert_eq!(count, piece.len());
                prop_assert!(count <= READ_SIZE);
                let expected: Vec<u8> = self.waiting.drain(..count).collect();
                prop_assert_eq!(piece.filled(), &expected[..]);
                self.window += count;
            }
            Step::End => *self = Self::new(all),
        }
        prop_assert_eq!(self.ahead.is_empty(), self.waiting.is_empty());
        // The remaining window and the buffered bytes add up to the whole window.
        prop_assert_eq!(self.window + self.waiting.len(), STREAM_WINDOW as usize);
        prop_assert!(self.ahead.bytes.capacity() <= STREAM_WINDOW as usize);
        if self.waiting.is_empty() {
            prop_assert_eq!(self.ahead.bytes.capacity(), 0);
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(cases(12, 2048))]

    #[test]
    fn bytes_come_in_order_and_never_exceed_the_window(
        steps in prop::collection::vec(step(), 1..200),
    ) {
        let all = Undelivered::default();
        let mut bodies: Vec<_> = (0..3).map(|_| Model::new(&all)).collect();
        for (body, step) in steps {
            bodies[body].step(step, &all)?;
            let waiting: usize = bodies.iter().map(|body| body.waiting.len()).sum();
            prop_assert_eq!(all.get(), waiting);
        }
        drop(bodies);
        prop_assert_eq!(all.get(), 0);
    }
}
