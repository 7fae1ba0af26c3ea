//! What a leader and its followers share.

use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Waker;

use futures_util::task::AtomicWaker;

use crate::limit::Moment;

/// What a leader and its followers share.
#[derive(Debug, Default)]
pub(super) struct Flight {
    /// When the leader left for the origin, in nanoseconds; 0 while it waits before.
    departed: AtomicU64,
    /// Wakes a leader whose client has left once nobody follows.
    alone: AtomicWaker,
}

impl Flight {
    /// When the leader left for the origin; `None` while it waits before.
    pub(super) fn departed(&self) -> Option<Moment> {
        let nanos = self.departed.load(Ordering::Relaxed);
        (nanos > 0).then(|| Moment::from_nanos(nanos))
    }

    pub(super) fn set_departed(&self, departed: Option<Moment>) {
        let nanos = departed.map_or(0, Moment::as_nanos);
        self.departed.store(nanos, Ordering::Relaxed);
    }

    pub(super) fn wait_alone(&self, waker: &Waker) {
        self.alone.register(waker);
    }

    pub(super) fn tell_alone(&self) {
        self.alone.wake();
    }
}
