//! The body of an answer, as its readers have it until it is cut off.

use std::ops::Range;
use std::sync::{Arc, OnceLock, PoisonError, RwLock, Weak};

use super::memory::{Charge, CutOff, Memory};

/// The body of an answer, or the rest of one that a single client has not read.
///
/// If slow readers hold more than their part of the memory, the body is taken from them: they can
/// send no more of it.
#[derive(Debug)]
pub struct AnswerBody {
    /// `None`: it is cut off.
    content: RwLock<Option<Content>>,
    length: usize,
    /// The bytes of memory that it takes.
    size: usize,
    memory: Arc<Memory>,
    /// Its number among the bodies that only readers hold, if it is one.
    held: OnceLock<u64>,
}

#[derive(Debug)]
struct Content {
    bytes: Vec<u8>,
    _charge: Charge,
}

impl AnswerBody {
    /// `charge`: what it takes.
    pub(super) fn new(bytes: Vec<u8>, charge: Charge) -> Arc<Self> {
        Arc::new(Self {
            length: bytes.len(),
            size: charge.bytes(),
            memory: Arc::clone(charge.memory()),
            held: OnceLock::new(),
            content: RwLock::new(Some(Content {
                bytes,
                _charge: charge,
            })),
        })
    }

    /// The number of its bytes.
    #[must_use]
    pub fn length(&self) -> usize {
        self.length
    }

    /// Calls `read` with the bytes in `range`; an empty slice if it ends behind them.
    ///
    /// Returns `None` if the body is cut off. `read` should be quick: it holds a lock.
    pub fn read<R>(&self, range: Range<usize>, read: impl FnOnce(&[u8]) -> R) -> Option<R> {
        let content = self.content.read().unwrap_or_else(PoisonError::into_inner);
        let bytes = &content.as_ref()?.bytes;
        Some(read(bytes.get(range).unwrap_or_default()))
    }

    /// Whether it is cut off.
    #[must_use]
    pub fn is_cut_off(&self) -> bool {
        let content = self.content.read().unwrap_or_else(PoisonError::into_inner);
        content.is_none()
    }

    /// Nobody but its readers holds it any more.
    pub(super) fn hold(self: &Arc<Self>) {
        let body: Weak<Self> = Arc::downgrade(self);
        self.held.get_or_init(|| self.memory.hold(body, self.size));
    }
}

impl CutOff for AnswerBody {
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
