//! A request that waits for the answer of another one.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use limit::Moment;
use tokio::sync::oneshot;

use super::flight::Flight;
use super::kinds::{FlightId, KindKey};
use super::{Leader, SharedAnswer, SharedAnswers};

/// A request that waits for the answer of another one. If this is dropped, it leaves.
#[derive(Debug)]
pub struct Follower {
    shared: Arc<SharedAnswers>,
    key: KindKey,
    number: u64,
    told: oneshot::Receiver<Followed>,
    flight: Arc<Flight>,
    /// Whether it knows what becomes of it, and so follows no more.
    is_told: bool,
}

/// What becomes of a request that followed.
#[derive(Debug)]
pub enum Followed {
    /// It gets this answer.
    Answer(Arc<SharedAnswer>),
    /// It gets this stale answer, because the origin failed.
    Stale(Arc<SharedAnswer>),
    /// It leads now: the one before it failed.
    ///
    /// Boxed: few do.
    Lead(Box<Leader>),
    /// It goes to the origin for itself.
    Alone(Release),
}

/// The turn of one follower to join the queue of the origin. The next one has it when this is
/// dropped.
#[derive(Debug)]
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
    pub(super) fn new(
        shared: &Arc<SharedAnswers>,
        key: KindKey,
        number: u64,
        told: oneshot::Receiver<Followed>,
        flight: Arc<Flight>,
    ) -> Self {
        Self {
            shared: Arc::clone(shared),
            key,
            number,
            told,
            flight,
            is_told: false,
        }
    }

    /// When the leader left for the origin; `None` while it waits before.
    pub fn departed(&self) -> Option<Moment> {
        self.flight.departed()
    }

    /// It has waited for too long. If the answer had no end within `limit`, nobody waits for it any more.
    ///
    /// Returns whether that is so: then all who follow go on in order, and this is told its turn.
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
