//! A worker's buffers: taken while bytes are in transit, returned as soon as they are empty.
//!
//! An idle connection holds no buffer.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Maximum number of bytes that one read puts into a buffer.
pub const READ_SIZE: usize = 16 * 1024;
/// Number of bytes kept free before a piece of a body, for the size line of a chunk.
pub(super) const CHUNK_HEADROOM: usize = 10;
/// Extra bytes for the fields that a proxy adds to a full head, and for the framing of a chunk.
const SLACK: usize = 1024;
/// Size of a pooled buffer in bytes.
const CAPACITY: usize = READ_SIZE + SLACK;
/// Maximum number of empty buffers that a worker keeps: about 2 MB.
const MAX_POOLED: usize = 128;

/// Buffer counts of one worker.
///
/// Only the worker's thread writes them, so counting costs no more than a store.
#[derive(Debug, Default)]
// Aligned so that two workers never share a cache line.
#[repr(align(128))]
struct PoolStats {
    /// Number of buffers, in use and pooled. Rarely written.
    total: AtomicUsize,
    /// Number of empty buffers in the pool.
    pooled: AtomicUsize,
}

impl PoolStats {
    /// Changes the number of buffers by `change`.
    fn add(&self, change: isize) {
        let total = self.total.load(Ordering::Relaxed);
        let total = total.saturating_add_signed(change);
        self.total.store(total, Ordering::Relaxed);
    }

    /// Returns the counts.
    fn read(&self) -> BufferStats {
        // A buffer may be taken between the two loads.
        let pooled = self.pooled.load(Ordering::Relaxed);
        BufferStats {
            in_use: self.total.load(Ordering::Relaxed).saturating_sub(pooled),
            pooled,
        }
    }
}

/// Number of buffers of all workers, for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferStats {
    /// Buffers that hold bytes in transit.
    pub in_use: usize,
    /// Empty buffers that the workers keep.
    pub pooled: usize,
}

/// Counts of all pools, for metrics.
static POOLS: Mutex<Vec<Weak<PoolStats>>> = Mutex::new(Vec::new());

thread_local! {
    static POOL: Pool = Pool::start();
}

/// Pool of one thread.
///
/// The buffer returned last is taken first: it is most likely still in the processor's cache.
struct Pool {
    /// Memory of empty buffers, each of [`CAPACITY`] bytes.
    empty: RefCell<Vec<Vec<u8>>>,
    stats: Arc<PoolStats>,
}

impl Pool {
    /// Creates the pool of this thread, and registers its counts.
    fn start() -> Self {
        let stats = Arc::<PoolStats>::default();
        let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
        pools.retain(|pool| pool.strong_count() > 0);
        pools.push(Arc::downgrade(&stats));
        Self {
            empty: RefCell::default(),
            stats,
        }
    }

    /// Takes the memory of a buffer, or allocates it.
    fn take(&self) -> Vec<u8> {
        let mut empty = self.empty.borrow_mut();
        let Some(bytes) = empty.pop() else {
            self.stats.add(1);
            return vec![0; CAPACITY];
        };
        self.stats.pooled.store(empty.len(), Ordering::Relaxed);
        bytes
    }

    /// Puts the memory of a buffer back, or frees it.
    fn give_back(&self, bytes: Vec<u8>) {
        let mut empty = self.empty.borrow_mut();
        // A buffer that grew for a large head is not kept.
        if bytes.len() == CAPACITY && empty.len() < MAX_POOLED {
            empty.push(bytes);
            self.stats.pooled.store(empty.len(), Ordering::Relaxed);
        } else {
            self.stats.add(-1);
        }
    }
}

/// Returns the number of buffers of all threads of this process.
pub(crate) fn stats() -> BufferStats {
    let pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    let mut stats = BufferStats::default();
    for pool in pools.iter().filter_map(Weak::upgrade) {
        let of_pool = pool.read();
        stats.in_use += of_pool.in_use;
        stats.pooled += of_pool.pooled;
    }
    stats
}

/// Bytes between a read and a write.
///
/// A buffer holds [`READ_SIZE`] bytes and a little more, or as many as a large head needs. When
/// dropped, it returns to its pool. The default one takes memory with its first bytes.
#[derive(Default)]
pub struct Buffer {
    /// Memory of the buffer. The bytes from `start` to `end` are filled.
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Buffer {
    /// Takes an empty buffer from this thread's pool.
    pub fn take() -> Self {
        Self {
            bytes: POOL.with(Pool::take),
            start: 0,
            end: 0,
        }
    }

    /// Takes an empty buffer [for a piece of a body](Self::clear_for_body).
    pub fn for_body() -> Self {
        let mut piece = Self::take();
        piece.clear_for_body();
        piece
    }

    /// Returns the bytes in the buffer.
    pub fn filled(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Returns the bytes in the buffer, mutable.
    pub fn filled_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.end]
    }

    /// Returns the number of bytes in the buffer.
    pub fn len(&self) -> usize {
        self.end - self.start
    }

    /// Returns whether the buffer is empty.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Returns whether the buffer holds bytes and none were consumed.
    ///
    /// Only for a buffer that never was [cleared for a body](Self::clear_for_body).
    pub(crate) fn is_untouched(&self) -> bool {
        self.start == 0 && !self.is_empty()
    }

    /// Empties the buffer, and leaves room before the next bytes for the size of a chunk.
    pub fn clear_for_body(&mut self) {
        let start = CHUNK_HEADROOM.min(self.bytes.len());
        (self.start, self.end) = (start, start);
    }

    /// Removes the first `count` bytes.
    pub fn consume(&mut self, count: usize) {
        self.start = (self.start + count).min(self.end);
    }

    /// Keeps only the first `count` bytes.
    pub fn truncate(&mut self, count: usize) {
        self.end = self.end.min(self.start + count);
    }

    /// Appends bytes. The buffer grows if necessary.
    #[inline]
    pub fn put(&mut self, bytes: &[u8]) {
        let end = self.end + bytes.len();
        if end > self.bytes.len() {
            self.grow(end);
        }
        self.bytes[self.end..end].copy_from_slice(bytes);
        self.end = end;
    }

    /// Appends several pieces in a row. The buffer grows if necessary.
    #[inline]
    pub fn put_all<const N: usize>(&mut self, pieces: [&[u8]; N]) {
        let end = self.end + pieces.iter().map(|piece| piece.len()).sum::<usize>();
        if end > self.bytes.len() {
            self.grow(end);
        }
        let mut room = &mut self.bytes[self.end..end];
        for piece in pieces {
            let (target, after) = room.split_at_mut(piece.len());
            target.copy_from_slice(piece);
            room = after;
        }
        self.end = end;
    }

    /// Takes memory from the pool, or enlarges it, so that it has at least `end` bytes.
    #[cold]
    fn grow(&mut self, end: usize) {
        if self.bytes.is_empty() {
            self.bytes = POOL.with(Pool::take);
        }
        let size = end.next_multiple_of(CAPACITY).max(self.bytes.len());
        self.bytes.resize(size, 0);
    }

    /// Returns whether `count` more bytes fit without growing.
    pub(crate) fn has_room_for(&self, count: usize) -> bool {
        self.end + count <= self.bytes.len()
    }

    /// Inserts bytes before the existing ones. Returns whether there was room for them.
    ///
    /// There is room for [`CHUNK_HEADROOM`] bytes after [`Self::clear_for_body`].
    pub(super) fn put_before(&mut self, bytes: &[u8]) -> bool {
        let Some(start) = self.start.checked_sub(bytes.len()) else {
            return false;
        };
        self.bytes[start..self.start].copy_from_slice(bytes);
        self.start = start;
        true
    }

    /// Reads up to `limit` bytes, and appends them. Returns their number; 0 at the end.
    ///
    /// Grows the buffer if it is full.
    ///
    /// # Errors
    ///
    /// Returns an error if the reader does.
    pub fn poll_fill<R: AsyncRead + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut R,
        limit: usize,
    ) -> Poll<io::Result<usize>> {
        let limit = limit.min(READ_SIZE);
        if !self.has_room_for(limit) && self.start > CHUNK_HEADROOM {
            // Moves the bytes to the start, to make room after them.
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.len());
        }
        if !self.has_room_for(1) {
            self.grow(self.end + 1);
        }
        let until = self.bytes.len().min(self.end + limit);
        let mut room = ReadBuf::new(&mut self.bytes[self.end..until]);
        ready!(Pin::new(from).poll_read(cx, &mut room))?;
        let count = room.filled().len();
        self.end += count;
        Poll::Ready(Ok(count))
    }

    /// Writes all bytes.
    ///
    /// # Errors
    ///
    /// Returns an error if the writer does, or if the writer accepts no bytes.
    pub fn poll_drain<W: AsyncWrite + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        to: &mut W,
    ) -> Poll<io::Result<()>> {
        while !self.is_empty() {
            let count = ready!(Pin::new(&mut *to).poll_write(cx, self.filled()))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.consume(count);
        }
        Poll::Ready(Ok(()))
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        if bytes.is_empty() {
            return;
        }
        // A thread that is ending has no pool any more.
        let _ended = POOL.try_with(|pool| pool.give_back(bytes));
    }
}

#[cfg(test)]
mod properties;
