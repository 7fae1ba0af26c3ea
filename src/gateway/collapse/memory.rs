//! Memory of shared answers, with a bound for answers that only slow readers keep alive.
//!
//! A body is *held* if it is neither kept for later requests nor gathered any more, so that it
//! stays in memory only until its readers have finished. To *cut off* a held body is to take its
//! bytes from its readers.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, Weak};

/// Divisor of the memory limit: one part, a quarter, is reserved for held answers.
///
/// The rest is reserved for answers that are kept or gathered.
pub(super) const READERS_DIVISOR: usize = 4;

/// Memory of all answers.
///
/// An answer counts until its last reader has finished.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Bytes of all answers.
    used: AtomicUsize,
    held: Mutex<Held>,
}

/// Bodies that stay in memory only because readers have not finished them.
#[derive(Debug, Default)]
struct Held {
    /// Size in bytes and body, by number. The body that has been held longest comes first.
    bodies: BTreeMap<u64, (usize, Weak<AnswerBody>)>,
    /// Sum of their sizes.
    bytes: usize,
    /// Number of the body that was added last.
    last: u64,
}

impl Memory {
    /// Returns the bytes of all answers.
    pub(super) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Returns the bytes of the bodies that only readers hold.
    pub(super) fn held(&self) -> usize {
        self.lock().bytes
    }

    /// Adds a body of `size` bytes that only readers hold from now on. Returns the body's number.
    fn hold(&self, body: Weak<AnswerBody>, size: usize) -> u64 {
        let mut held = self.lock();
        held.last += 1;
        held.bytes += size;
        let number = held.last;
        held.bodies.insert(number, (size, body));
        number
    }

    /// Removes the body with this number, because it has no readers any more.
    fn release(&self, number: u64) {
        let mut held = self.lock();
        if let Some((size, _)) = held.bodies.remove(&number) {
            held.bytes -= size;
        }
    }

    /// Cuts off the readers of the body that has been held longest. Returns whether there is one.
    pub(super) fn cut_off(&self) -> bool {
        let mut held = self.lock();
        let Some((_, (size, body))) = held.bodies.pop_first() else {
            return false;
        };
        held.bytes -= size;
        // `body` may be the last reference, and dropping the body takes this lock.
        drop(held);
        if let Some(body) = body.upgrade() {
            body.cut_off();
        }
        true
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Charge of memory. Dropping it gives the memory back.
pub(super) struct Charge {
    memory: Arc<Memory>,
    bytes: usize,
}

impl Charge {
    pub(super) fn new(memory: &Arc<Memory>) -> Self {
        Self {
            memory: Arc::clone(memory),
            bytes: 0,
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Changes the charge to `bytes`.
    pub(super) fn set(&mut self, bytes: usize) {
        self.memory.used.fetch_add(bytes, Ordering::Relaxed);
        self.memory.used.fetch_sub(self.bytes, Ordering::Relaxed);
        self.bytes = bytes;
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.memory.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Body of an answer, or the rest of one for a single client.
///
/// If slow readers hold more than their part of the memory, the body is cut off: its readers can
/// send no more of it.
pub struct AnswerBody {
    /// Bytes of the body; `None`: it is cut off.
    content: RwLock<Option<Content>>,
    length: usize,
    /// Bytes of memory that the body takes.
    size: usize,
    memory: Arc<Memory>,
    /// Number among the bodies that only readers hold, if it is one of them.
    held: OnceLock<u64>,
}

/// Bytes of a body, with their charge of memory.
struct Content {
    bytes: Vec<u8>,
    /// Gives the memory back when the bytes are dropped.
    _charge: Charge,
}

impl AnswerBody {
    /// Creates a body. `charge`: its charge of memory.
    pub(super) fn new(bytes: Vec<u8>, charge: Charge) -> Arc<Self> {
        Arc::new(Self {
            length: bytes.len(),
            size: charge.bytes,
            memory: Arc::clone(&charge.memory),
            held: OnceLock::new(),
            content: RwLock::new(Some(Content {
                bytes,
                _charge: charge,
            })),
        })
    }

    /// Returns the number of bytes of the body.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Calls `read` with the bytes in `range`; with an empty slice if the range exceeds the body.
    ///
    /// Returns `None` if the body is cut off. `read` should be quick: it holds a lock.
    pub fn read<R>(&self, range: Range<usize>, read: impl FnOnce(&[u8]) -> R) -> Option<R> {
        let content = self.content.read().unwrap_or_else(PoisonError::into_inner);
        let bytes = &content.as_ref()?.bytes;
        Some(read(bytes.get(range).unwrap_or_default()))
    }

    /// Returns whether the body is cut off.
    pub fn is_cut_off(&self) -> bool {
        let content = self.content.read().unwrap_or_else(PoisonError::into_inner);
        content.is_none()
    }

    /// Records that only readers hold the body from now on.
    pub(super) fn hold(self: &Arc<Self>) {
        let body = Arc::downgrade(self);
        self.held.get_or_init(|| self.memory.hold(body, self.size));
    }

    /// Takes the bytes from the readers.
    fn cut_off(&self) {
        let content = self.content.write();
        let taken = content.unwrap_or_else(PoisonError::into_inner).take();
        drop(taken);
    }
}

impl Drop for AnswerBody {
    fn drop(&mut self) {
        self.cut_off();
        if let Some(number) = self.held.get() {
            self.memory.release(*number);
        }
    }
}
