//! Queue of body bytes between a fast peer and a slow one, with a memory limit for all queues.
//!
//! `response_buffer` and `request_buffer` of an origin limit one queue. `buffers` of the server
//! limits all queues together.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::buffer::{Buffer, READ_SIZE};

/// Number of bytes that a queue takes from the memory at a time.
const BLOCK: u64 = READ_SIZE as u64;

/// Memory of all body queues of a gateway.
#[derive(Debug, Default)]
pub struct BodyMemory {
    /// Number of blocks held by queues.
    blocks: AtomicU64,
    /// Limit of all queues, in bytes.
    limit: AtomicU64,
    /// Number of times that a queue asked for a block and got none.
    refused: AtomicU64,
}

impl BodyMemory {
    /// Sets the limit, in bytes. Queues that hold more keep their blocks.
    pub fn set_limit(&self, bytes: u64) {
        self.limit.store(bytes, Ordering::Relaxed);
    }

    /// Returns the limit, in bytes.
    pub fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    /// Returns the number of bytes held by queues, in whole blocks.
    pub fn held(&self) -> u64 {
        self.blocks.load(Ordering::Relaxed).saturating_mul(BLOCK)
    }

    /// Returns the number of times that a queue got no memory. Its request continued without.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Takes a block, if the limit allows one more. Returns whether it does.
    fn take(&self) -> bool {
        let max_blocks = self.limit() / BLOCK;
        let taken = (self.blocks).fetch_update(Ordering::Relaxed, Ordering::Relaxed, |blocks| {
            (blocks < max_blocks).then_some(blocks + 1)
        });
        taken.is_ok()
    }

    /// Takes blocks back from a queue.
    fn give_back(&self, blocks: usize) {
        self.blocks.fetch_sub(blocks as u64, Ordering::Relaxed);
    }
}

/// Pieces of one body, in order.
///
/// The pieces are copied into full blocks, so that small pieces need no more memory than large
/// ones.
pub struct BodyQueue {
    memory: Arc<BodyMemory>,
    /// Blocks with bytes. All but the last one are full.
    pieces: VecDeque<Buffer>,
    /// Maximum number of blocks.
    max_blocks: usize,
    /// Number of blocks taken from the memory. Each piece uses one; the others are reserved.
    blocks: usize,
    /// Whether the memory had no block at the last attempt.
    is_refused: bool,
}

impl BodyQueue {
    /// Creates an empty queue for `limit` bytes, and one block more for the last piece.
    pub fn new(memory: &Arc<BodyMemory>, limit: u64) -> Self {
        Self {
            memory: Arc::clone(memory),
            pieces: VecDeque::new(),
            max_blocks: usize::try_from(limit.div_ceil(BLOCK) + 1).unwrap_or(usize::MAX),
            blocks: 0,
            is_refused: false,
        }
    }

    /// Returns whether the queue has no bytes.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Returns whether a piece of [`READ_SIZE`] bytes may be added. Takes the memory for it.
    pub fn has_room(&mut self) -> bool {
        if self.blocks > self.pieces.len() {
            return true;
        }
        if self.blocks >= self.max_blocks {
            return false;
        }
        let is_taken = self.memory.take();
        self.blocks += usize::from(is_taken);
        if !is_taken && !self.is_refused {
            self.memory.refused.fetch_add(1, Ordering::Relaxed);
        }
        self.is_refused = !is_taken;
        is_taken
    }

    /// Adds a piece. Call [`Self::has_room`] first.
    pub fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let is_full = |last: &Buffer| last.len() >= READ_SIZE;
            if self.pieces.back().is_none_or(is_full) {
                self.pieces.push_back(Buffer::for_body());
            }
            let Some(last) = self.pieces.back_mut() else {
                return;
            };
            let count = bytes.len().min(READ_SIZE - last.len());
            let (fitting, rest) = bytes.split_at(count);
            last.put(fitting);
            bytes = rest;
        }
    }

    /// Returns the number of blocks that have bytes.
    pub fn count_blocks(&self) -> usize {
        self.pieces.len()
    }

    /// Returns a copy of the block with this index; `None` if there is none.
    pub fn copy(&self, index: usize) -> Option<Buffer> {
        let piece = self.pieces.get(index)?;
        let mut copy = Buffer::for_body();
        copy.put(piece.filled());
        Some(copy)
    }

    /// Removes the first block. Memory that is not needed any more is given back.
    pub fn pop(&mut self) -> Option<Buffer> {
        let first = self.pieces.pop_front();
        self.shrink();
        first
    }

    /// Gives back the memory that the pieces do not need.
    pub fn shrink(&mut self) {
        let spare = self.blocks.saturating_sub(self.pieces.len());
        self.memory.give_back(spare);
        self.blocks -= spare;
    }
}

impl Drop for BodyQueue {
    fn drop(&mut self) {
        self.memory.give_back(self.blocks);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(blocks: u64) -> Arc<BodyMemory> {
        let memory = Arc::<BodyMemory>::default();
        memory.set_limit(blocks * BLOCK);
        memory
    }

    #[test]
    fn small_pieces_come_out_in_order_and_fill_blocks() {
        let memory = memory(4);
        let mut queue = BodyQueue::new(&memory, 2 * BLOCK);
        let mut expected = Vec::new();
        for nth in 0..3000u32 {
            assert!(queue.has_room());
            queue.push(&nth.to_be_bytes());
            expected.extend(nth.to_be_bytes());
        }
        // One block is partly filled, and one is reserved for the next piece.
        assert_eq!(memory.held(), 2 * BLOCK);
        let pieces = std::iter::from_fn(|| queue.pop());
        let content: Vec<_> = pieces.flat_map(|piece| piece.filled().to_vec()).collect();
        assert_eq!(content, expected);
        assert_eq!(memory.held(), 0);
    }

    #[test]
    fn a_queue_has_no_room_beyond_its_own_bound() {
        let memory = memory(100);
        let mut queue = BodyQueue::new(&memory, 2 * BLOCK - 1);
        // There is room for all bytes, in pieces of any size, and for at most two blocks more.
        let piece = [1; READ_SIZE - 1];
        for _ in 0..3 {
            assert!(queue.has_room());
            queue.push(&piece);
        }
        assert!(!queue.has_room());
        assert_eq!((memory.held(), memory.refused()), (3 * BLOCK, 0));
        drop(queue.pop());
        assert!(queue.has_room());
        drop(queue);
        assert_eq!(memory.held(), 0);
    }

    #[test]
    fn all_queues_together_have_no_more_than_the_memory() {
        let memory = memory(3);
        let mut queues: Vec<_> = (0..4).map(|_| BodyQueue::new(&memory, BLOCK)).collect();
        let rooms: Vec<_> = queues.iter_mut().map(BodyQueue::has_room).collect();
        assert_eq!(rooms, [true, true, true, false]);
        // Several failed attempts in a row count once.
        assert!(!queues[3].has_room());
        assert_eq!((memory.held(), memory.refused()), (3 * BLOCK, 1));
        queues.remove(0);
        assert!(queues[2].has_room());
        memory.set_limit(0);
        queues[2].shrink();
        assert!(!queues[2].has_room());
        drop(queues);
        assert_eq!(memory.held(), 0);
    }
}
