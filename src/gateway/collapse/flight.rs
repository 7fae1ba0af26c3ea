//! What a leader and its followers share.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Waker;
use std::time::Duration;

use futures_util::task::AtomicWaker;
use limit::Moment;

/// What a leader and its followers share.
#[derive(Debug, Default)]
pub(super) struct Flight {
    /// When the leader left for the origin, in nanoseconds; 0 while it waits before.
    departed: AtomicU64,
    /// When the head of an answer without a length arrived, in nanoseconds; 0: there is none.
    opened: AtomicU64,
    /// Whether nobody waits for the leader any more, as its answer has no end in sight.
    is_abandoned: AtomicBool,
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

    /// Notes that an answer without a length began.
    pub(super) fn open(&self, now: Moment) {
        self.opened.store(now.as_nanos(), Ordering::Relaxed);
    }

    /// The leader waits for the origin: it departs later, or the next one leads.
    pub(super) fn restart(&self) {
        self.set_departed(None);
        self.opened.store(0, Ordering::Relaxed);
    }

    /// Whether an answer without a length has gone on for at least `limit`.
    pub(super) fn is_endless(&self, limit: Duration, now: Moment) -> bool {
        let nanos = self.opened.load(Ordering::Relaxed);
        nanos > 0 && now >= Moment::from_nanos(nanos) + limit
    }

    /// Nobody waits for the leader any more.
    pub(super) fn abandon(&self) {
        self.is_abandoned.store(true, Ordering::Relaxed);
        self.tell_alone();
    }

    pub(super) fn is_abandoned(&self) -> bool {
        self.is_abandoned.load(Ordering::Relaxed)
    }

    pub(super) fn wait_alone(&self, waker: &Waker) {
        self.alone.register(waker);
    }

    pub(super) fn tell_alone(&self) {
        self.alone.wake();
    }
}
