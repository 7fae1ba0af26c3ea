//! Follower: a request that waits for the answer to another request, its leader.
//!
//! If there is no answer for the followers, they are *released* one after the other: each goes to
//! the origin for itself, as soon as the one before it has joined the origin's queue.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use limit::Moment;
use tokio::sync::oneshot;

use super::flight::Flight;
use super::kinds::{FlightId, KindKey};
use super::{Leader, SharedAnswer, SharedAnswers};

/// Request that waits for the answer to its leader. Dropping it leaves the queue of followers.
pub struct Follower {
    pub(super) shared: Arc<SharedAnswers>,
    pub(super) key: KindKey,
    /// Identifies the follower in the queue of its kind.
    pub(super) number: u64,
    pub(super) result: oneshot::Receiver<FollowResult>,
    pub(super) flight: Arc<Flight>,
    /// Whether the follower has received its result, and so is no longer in the queue.
    pub(super) has_result: bool,
}

/// Result of following.
pub enum FollowResult {
    /// The follower gets this answer.
    Answer(Arc<SharedAnswer>),
    /// The follower gets this stale answer, because the origin failed.
    Stale(Arc<SharedAnswer>),
    /// The follower leads now, because its leader failed.
    ///
    /// Boxed, because this is rare.
    Lead(Box<Leader>),
    /// The follower goes to the origin for itself.
    Alone(ReleasedTurn),
}

/// Turn of one released follower to join the origin's queue.
///
/// Dropping it passes the turn to the next follower.
pub struct ReleasedTurn {
    shared: Arc<SharedAnswers>,
    id: FlightId,
}

impl ReleasedTurn {
    pub(super) fn new(shared: &Arc<SharedAnswers>, id: &FlightId) -> Self {
        Self {
            shared: Arc::clone(shared),
            id: id.clone(),
        }
    }
}

impl Drop for ReleasedTurn {
    fn drop(&mut self) {
        self.shared.release(&self.id);
    }
}

impl Follower {
    /// Returns when the leader left for the origin; `None` before it leaves.
    pub fn departed(&self) -> Option<Moment> {
        self.flight.departed()
    }

    /// Gives up a response that may never end. Call it when the follower has waited for too long.
    ///
    /// If the leader's response states no length and has lasted for `limit`, releases all
    /// followers. Returns whether the followers are released: then this one will receive its turn,
    /// too.
    pub fn give_up(&self, limit: Duration, now: Moment) -> bool {
        self.shared.abandon(&self.key, &self.flight, limit, now)
    }
}

impl Future for Follower {
    /// Result; `None` if the process ends.
    type Output = Option<FollowResult>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let result = ready!(Pin::new(&mut self.result).poll(cx));
        self.has_result = true;
        Poll::Ready(result.ok())
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        if !self.has_result && self.shared.lock().leave(&self.key, self.number) {
            self.flight.alone.wake();
        }
    }
}
