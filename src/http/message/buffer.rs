//! A worker's buffers: taken while bytes are on their way, given back as soon as they are empty.

use std::cell::RefCell;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes that one read puts into a buffer at most.
pub const READ_SIZE: usize = 16 * 1024;
/// Room before the bytes of a body for the size of their chunk, and behind them for the chunk's end and the last chunk.
pub(super) const CHUNK_HEADROOM: usize = 10;
/// Room for the fields that a proxy adds to a head that filled a read, and for what frames a chunk.
const SLACK: usize = 1024;
/// Size of a pooled buffer in bytes.
const CAPACITY: usize = READ_SIZE + SLACK;
/// Empty buffers that a worker keeps: 2 MB at most.
const MAX_POOLED: usize = 128;

/// Counts one worker's buffers. Only its thread writes, so that counting costs no more than a store.
#[derive(Debug, Default)]
// No other worker's lies in the same cache lines.
#[repr(align(128))]
struct PoolStats {
    in_use: AtomicUsize,
    pooled: AtomicUsize,
}

/// Counts the buffers of all workers, for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferStats {
    /// Buffers that hold bytes on their way.
    pub in_use: usize,
    /// Empty buffers that workers keep for the next bytes.
    pub pooled: usize,
}

static POOLS: Mutex<Vec<Weak<PoolStats>>> = Mutex::new(Vec::new());

thread_local! {
    static POOL: Pool = Pool::start();
}

/// The pool of one thread. The buffer given back last is taken first, since the processor still has it at hand.
#[derive(Debug)]
struct Pool {
    empty: RefCell<Vec<Vec<u8>>>,
    stats: Arc<PoolStats>,
}

impl Pool {
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

    fn take(&self) -> Vec<u8> {
        let mut empty = self.empty.borrow_mut();
        let bytes = empty.pop().unwrap_or_else(|| vec![0; CAPACITY]);
        self.stats.pooled.store(empty.len(), Ordering::Relaxed);
        let in_use = self.stats.in_use.load(Ordering::Relaxed);
        self.stats.in_use.store(in_use + 1, Ordering::Relaxed);
        bytes
    }

    fn give_back(&self, bytes: Vec<u8>) {
        let in_use = self.stats.in_use.load(Ordering::Relaxed);
        let less = in_use.saturating_sub(1);
        self.stats.in_use.store(less, Ordering::Relaxed);
        let mut empty = self.empty.borrow_mut();
        // One that grew for a large head is not kept.
        if bytes.len() == CAPACITY && empty.len() < MAX_POOLED {
            empty.push(bytes);
            self.stats.pooled.store(empty.len(), Ordering::Relaxed);
        }
    }
}

/// The buffers of all threads of this process.
#[must_use]
pub fn stats() -> BufferStats {
    let pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    let mut all = BufferStats::default();
    for pool in pools.iter().filter_map(Weak::upgrade) {
        all.in_use += pool.in_use.load(Ordering::Relaxed);
        all.pooled += pool.pooled.load(Ordering::Relaxed);
    }
    all
}

/// Bytes between being read and being written: [`READ_SIZE`] of them and a little more, or as many as a large head
/// needs. Dropped, the buffer goes back to its pool.
pub struct Buffer {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Buffer {
    /// An empty buffer from this thread's pool.
    #[must_use]
    pub fn take() -> Self {
        Self {
            bytes: POOL.with(Pool::take),
            start: 0,
            end: 0,
        }
    }

    /// The bytes that are in it.
    #[must_use]
    pub fn filled(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// The same, to be changed in place.
    pub fn filled_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.end]
    }

    /// How many bytes are in it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.end - self.start
    }

    /// Whether there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Whether nothing was ever taken out of what is in it.
    #[must_use]
    pub fn is_untouched(&self) -> bool {
        self.start == 0 && !self.is_empty()
    }

    /// Empties it.
    pub fn clear(&mut self) {
        (self.start, self.end) = (0, 0);
    }

    /// Empties it, and leaves room before what comes next for the size of a chunk.
    pub fn clear_for_body(&mut self) {
        (self.start, self.end) = (CHUNK_HEADROOM, CHUNK_HEADROOM);
    }

    /// Takes the first `count` bytes out.
    pub fn consume(&mut self, count: usize) {
        self.start = (self.start + count).min(self.end);
    }

    /// Keeps the first `count` bytes only.
    pub fn truncate(&mut self, count: usize) {
        self.end = self.end.min(self.start + count);
    }

    /// Appends bytes. The buffer grows where it must.
    #[inline]
    pub fn put(&mut self, bytes: &[u8]) {
        let end = self.end + bytes.len();
        if end > self.bytes.len() {
            self.grow(end);
        }
        self.bytes[self.end..end].copy_from_slice(bytes);
        self.end = end;
    }

    #[cold]
    fn grow(&mut self, end: usize) {
        self.bytes.resize(end.next_multiple_of(CAPACITY), 0);
    }

    /// Whether `count` more bytes fit in without growing.
    #[must_use]
    pub fn has_room_for(&self, count: usize) -> bool {
        self.end + count <= self.bytes.len()
    }

    /// Puts bytes before the others; there must be [room](Self::clear_for_body) for them.
    pub(super) fn put_before(&mut self, bytes: &[u8]) {
        let start = self.start - bytes.len();
        self.bytes[start..self.start].copy_from_slice(bytes);
        self.start = start;
    }

    /// Whether `count` bytes fit in before the others.
    pub(super) fn has_headroom_for(&self, count: usize) -> bool {
        self.start >= count
    }

    /// Reads up to `limit` bytes behind those that are in it; grows where there is no room for any. Zero: the end.
    ///
    /// # Errors
    ///
    /// Those of the reader.
    pub fn poll_fill<R: AsyncRead + Unpin>(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut R,
        limit: usize,
    ) -> Poll<io::Result<usize>> {
        let limit = limit.min(READ_SIZE);
        if !self.has_room_for(limit) && self.start > CHUNK_HEADROOM {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.len());
        }
        if !self.has_room_for(1) {
            let grown = self.bytes.len() + CAPACITY;
            self.bytes.resize(grown, 0);
        }
        let until = self.bytes.len().min(self.end + limit);
        let mut room = ReadBuf::new(&mut self.bytes[self.end..until]);
        ready!(Pin::new(from).poll_read(cx, &mut room))?;
        let count = room.filled().len();
        self.end += count;
        Poll::Ready(Ok(count))
    }

    /// Writes all that is in it.
    ///
    /// # Errors
    ///
    /// Those of the writer; one that takes nothing is at its end.
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
        // A thread that ends has no pool any more.
        let _ended = POOL.try_with(|pool| pool.give_back(bytes));
    }
}

impl io::Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.put(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer")
            .field("filled", &self.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod properties;
