//! The memory of answers: what is kept or gathered for others, and what only readers hold.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The part of all memory that readers hold at least, where they need it: one of so many.
///
/// The rest is for what is kept and gathered, at least.
pub(super) const READERS_PART: usize = 4;

/// What can be taken from those who read it.
pub(super) trait CutOff: Debug + Send + Sync {
    fn cut_off(&self);
}

/// The memory that answers take, all together.
///
/// It counts as long as anybody reads them.
#[derive(Debug, Default)]
pub(super) struct Memory {
    used: AtomicUsize,
    held: Mutex<Held>,
}

/// The bodies that are in memory only because readers have not read them yet.
#[derive(Debug, Default)]
struct Held {
    /// By number, so the one that is held for longest comes first. Each with the bytes that it takes.
    bodies: BTreeMap<u64, (usize, Weak<dyn CutOff>)>,
    bytes: usize,
    last: u64,
}

impl Memory {
    /// The bytes that all answers take.
    pub(super) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// The bytes of those that only readers hold.
    pub(super) fn held(&self) -> usize {
        self.lock().bytes
    }

    /// Nobody but its readers holds this body, of `size` bytes, any more. Returns its number.
    pub(super) fn hold(&self, body: Weak<dyn CutOff>, size: usize) -> u64 {
        let mut held = self.lock();
        held.last += 1;
        held.bytes += size;
        let number = held.last;
        held.bodies.insert(number, (size, body));
        number
    }

    /// The body with this number has no readers any more.
    pub(super) fn release(&self, number: u64) {
        let mut held = self.lock();
        if let Some((size, _)) = held.bodies.remove(&number) {
            held.bytes -= size;
        }
    }

    /// Takes the body that readers hold for longest from them. Returns whether there is one.
    pub(super) fn cut_off(&self) -> bool {
        let mut held = self.lock();
        let Some((_, (size, body))) = held.bodies.pop_first() else {
            return false;
        };
        held.bytes -= size;
        // This may be the last one to have the body, whose end locks.
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

/// A part of the memory, given back when this is dropped.
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
