//! The memory of shared answers: answers that are kept or gathered, and those only readers hold.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Divisor of all memory: this part is reserved for answers that only readers hold.
///
/// The rest is reserved for answers that are kept or gathered.
pub(super) const READERS_PART: usize = 4;

/// A body that can be taken from its readers.
pub(super) trait CutOff: Debug + Send + Sync {
    fn cut_off(&self);
}

/// The memory that all answers take.
///
/// An answer counts as long as anybody reads it.
#[derive(Debug, Default)]
pub(super) struct Memory {
    used: AtomicUsize,
    held: Mutex<Held>,
}

/// The bodies that are in memory only because readers have not read them yet.
#[derive(Debug, Default)]
struct Held {
    /// Size in bytes and body, by number. So the body that is held for longest comes first.
    bodies: BTreeMap<u64, (usize, Weak<dyn CutOff>)>,
    bytes: usize,
    last: u64,
}

impl Memory {
    /// Returns the bytes that all answers take.
    pub(super) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Returns the bytes of the bodies that only readers hold.
    pub(super) fn held(&self) -> usize {
        self.lock().bytes
    }

    /// Adds a body of `size` bytes that only its readers hold from now on. Returns its number.
    pub(super) fn hold(&self, body: Weak<dyn CutOff>, size: usize) -> u64 {
        let mut held = self.lock();
        held.last += 1;
        held.bytes += size;
        let number = held.last;
        held.bodies.insert(number, (size, body));
        number
    }

    /// Removes the body with this number, which has no readers any more.
    pub(super) fn release(&self, number: u64) {
        let mut held = self.lock();
        if let Some((size, _)) = held.bodies.remove(&number) {
            held.bytes -= size;
        }
    }

    /// Cuts off the readers of the body that is held for longest. Returns whether there is one.
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

/// A part of the memory, which is given back on drop.
#[derive(Debug)]
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

    pub(super) fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

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
