//! State of a flight: a leader, whose request goes to the origin, and the followers of its answer.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures_util::task::AtomicWaker;
use limit::Moment;

/// State that a leader and its followers share.
#[derive(Debug, Default)]
pub(super) struct Flight {
    /// Instant in nanoseconds at which the leader left for the origin; 0 before it leaves.
    departed: AtomicU64,
    /// Arrival of the head, in nanoseconds, if the response states no length; 0 otherwise.
    unbounded_since: AtomicU64,
    /// Whether the followers have been released, because the response may never end.
    is_abandoned: AtomicBool,
    /// Wakes a leader whose client has disconnected when its last follower leaves.
    pub(super) alone: AtomicWaker,
}

impl Flight {
    /// Returns when the leader left for the origin; `None` before it leaves.
    pub(super) fn departed(&self) -> Option<Moment> {
        let nanos = self.departed.load(Ordering::Relaxed);
        (nanos > 0).then(|| Moment::from_nanos(nanos))
    }

    /// Records when the leader left for the origin; `None` if it waits again.
    pub(super) fn set_departed(&self, departed: Option<Moment>) {
        let nanos = departed.map_or(0, Moment::as_nanos);
        self.departed.store(nanos, Ordering::Relaxed);
    }

    /// Records that a response without a length has begun: it may never end.
    pub(super) fn note_unbounded(&self, now: Moment) {
        self.unbounded_since
            .store(now.as_nanos(), Ordering::Relaxed);
    }

    /// Resets the state because the leader waits for the origin again, or another request leads.
    pub(super) fn restart(&self) {
        self.set_departed(None);
        self.unbounded_since.store(0, Ordering::Relaxed);
    }

    /// Returns whether the response states no length and has lasted for at least `limit`.
    pub(super) fn is_endless(&self, limit: Duration, now: Moment) -> bool {
        let nanos = self.unbounded_since.load(Ordering::Relaxed);
        nanos > 0 && now >= Moment::from_nanos(nanos) + limit
    }

    /// Records that no request waits for the leader any more, and wakes the leader.
    pub(super) fn abandon(&self) {
        self.is_abandoned.store(true, Ordering::Relaxed);
        self.alone.wake();
    }

    /// Returns whether the followers have been released.
    pub(super) fn is_abandoned(&self) -> bool {
        self.is_abandoned.load(Ordering::Relaxed)
    }
}
