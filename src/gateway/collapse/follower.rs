//! Request that waits for the response of another request, its leader.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use limit::Moment;
use tokio::sync::oneshot;

use super::flight::Flight;
use super::kinds::{FlightId, KindKey};
use super::{Leader, SharedAnswer, SharedAnswers};

/// Request that waits for the response of its leader. Dropping it leaves the queue of followers.
pub struct Follower {
    pub(super) shared: Arc<SharedAnswers>,
    pub(super) key: KindKey,
    pub(super) number: u64,
    pub(super) told: oneshot::Receiver<Followed>,
    pub(super) flight: Arc<Flight>,
    /// Whether the follower has received its result, and so is no longer in the queue.
    pub(super) is_told: bool,
}

/// Result of following.
pub enum Followed {
    /// The follower gets this answer.
    Answer(Arc<SharedAnswer>),
    /// The follower gets this stale answer, because the origin failed.
    Stale(Arc<SharedAnswer>),
    /// The follower leads now, because its leader failed.
    ///
    /// Boxed, because this is rare.
    Lead(Box<Leader>),
    /// The follower goes to the origin for itself.
    Alone(Release),
}

/// Turn of one follower to join the origin's queue. Dropping it passes the turn to the next one.
pub struct Release {
    shared: Arc<SharedAnswers>,
    id: FlightId,
}

impl Release {
    pub(super) fn new(shared: &Arc<SharedAnswers>, id: &FlightId) -> Self {
        Self {
            shared: Arc::clone(shared),
            id: id.clone(),
        }
    }
}

impl Drop for Release {
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
    /// Releases all followers, one after the other, if a response without a length has lasted for
    /// `limit`. Returns whether the followers are released: then this one receives its turn, too.
    pub fn give_up(&self, limit: Duration, now: Moment) -> bool {
        self.shared.abandon(&self.key, &self.flight, limit, now)
    }
}

impl Future for Follower {
    /// `None`: the process ends.
    type Output = Option<Followed>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let told = ready!(Pin::new(&mut self.told).poll(cx));
        self.is_told = true;
        Poll::Ready(told.ok())
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        if !self.is_told && self.shared.leave(&self.key, self.number) {
            self.flight.tell_alone();
        }
    }
}
