//! Leader: the request that goes to the origin while its followers wait for the answer.
//!
//! If it ends without an answer for them, the next follower leads, or the followers are *released*:
//! each goes to the origin for itself.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use config::Collapse;
use limit::Moment;

use super::answer::{self, AnswerHead, KeptAnswer, SharedAnswer};
use super::flight::Flight;
use super::kinds::{Cause, FlightId};
use super::memory::{AnswerBody, Charge};
use super::{FollowResult, SharedAnswers, send, send_stale};
use crate::gate::{DepartedRequest, ReservedPosition};
use crate::time::clock;

/// Request that leads. Dropping it makes the next follower lead.
pub struct Leader {
    shared: Arc<SharedAnswers>,
    pub(super) id: FlightId,
    pub(super) flight: Arc<Flight>,
    pub(super) collapse: Arc<Collapse>,
    /// Departure of the request from the origin's gate, once it has left.
    departed: Option<DepartedRequest>,
    /// Position in the queue of the origin's gate that the previous leader left to this one.
    reserved: Option<ReservedPosition>,
    /// Whether the lead has ended, so that dropping it has no effect.
    is_over: bool,
}

/// Answer that a leader gathers: its head, and the part of its body that has arrived.
pub struct Gathered {
    head: AnswerHead,
    body: Vec<u8>,
    charge: Charge,
}

impl Gathered {
    /// Returns the part of the body that has arrived.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// Returns the bytes that a leader's own client has not read yet; `None` if there are none.
    ///
    /// For a leader whose answer is no longer shared. `read`: number of bytes that the client has.
    /// The bytes count as those of a slow reader: lack of memory may cut them off.
    pub fn into_rest(self, read: usize) -> Option<Arc<AnswerBody>> {
        let (mut body, mut charge) = (self.body, self.charge);
        body.drain(..read.min(body.len()));
        if body.is_empty() {
            return None;
        }
        body.shrink_to_fit();
        charge.set(answer::OVERHEAD + body.len());
        let rest = AnswerBody::new(body, charge);
        rest.hold();
        Some(rest)
    }
}

impl Leader {
    pub(super) fn new(
        shared: &Arc<SharedAnswers>,
        id: FlightId,
        flight: Arc<Flight>,
        collapse: &Arc<Collapse>,
    ) -> Self {
        Self {
            shared: Arc::clone(shared),
            id,
            flight,
            collapse: Arc::clone(collapse),
            departed: None,
            reserved: None,
            is_over: false,
        }
    }

    /// Creates the leader that replaces this one after its failure.
    ///
    /// If this one has departed from the origin's gate, the new one gets a position ahead of the
    /// gate's queue.
    pub(super) fn promote(&self, id: FlightId) -> Self {
        let mut next = Self::new(&self.shared, id, Arc::clone(&self.flight), &self.collapse);
        next.reserved = self.departed.as_ref().and_then(DepartedRequest::reserve);
        next
    }

    /// Returns the route's settings for shared answers.
    pub fn collapse(&self) -> &Arc<Collapse> {
        &self.collapse
    }

    /// Takes the position at the gate that the previous leader left to this one, if it did.
    pub fn take_reserved(&mut self) -> Option<ReservedPosition> {
        self.reserved.take()
    }

    /// Records that the request leaves for the origin.
    ///
    /// `departed`: its departure from the origin's gate, if it has one.
    pub fn record_departure(&mut self, departed: Option<DepartedRequest>, now: Moment) {
        self.departed = departed;
        self.flight.set_departed(Some(now));
    }

    /// Records that the request could not be sent, and waits for the origin.
    pub fn hold(&self) {
        self.flight.restart();
    }

    /// Records that the request leaves again, after a [hold](Self::hold).
    pub fn resume(&self, now: Moment) {
        self.flight.set_departed(Some(now));
    }

    /// Returns the stale answer to use while the origin cannot be reached, if there is one.
    ///
    /// The followers get the answer, too. This leader has then ended, unless `goes_on`: it only
    /// refreshes the answer, without a client.
    pub fn stand_in(&mut self, goes_on: bool, now: Moment) -> Option<Arc<SharedAnswer>> {
        let windows = |answer: &Arc<KeptAnswer>| answer.0.windows(&self.collapse);
        let mut kinds = self.shared.lock();
        let (kept, followers) = kinds.stand_in(&self.id, goes_on, windows, now)?;
        drop(kinds);
        self.is_over = !goes_on;
        Some(send_stale(&kept, followers))
    }

    /// Waits until no request follows.
    pub fn poll_alone(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.flight.alone.register(cx.waker());
        if self.shared.lock().is_followed(&self.id) {
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    }

    /// Begins to gather an answer. `has_length`: whether its head states the length of the body.
    pub fn gather(&self, head: AnswerHead, has_length: bool) -> Gathered {
        if !has_length {
            self.flight.note_unbounded(head.arrived);
        }
        Gathered {
            head,
            body: Vec::new(),
            charge: Charge::new(&self.shared.memory),
        }
    }

    /// Adds bytes to the body. Returns `false`, and adds nothing, if they do not fit.
    ///
    /// Also returns `false` if the followers were released: then no request waits for the answer.
    pub fn add(&self, gathered: &mut Gathered, bytes: &[u8]) -> bool {
        let length = gathered.body.len() + bytes.len();
        let max_size = usize::try_from(self.collapse.max_size.get()).unwrap_or(usize::MAX);
        if length > max_size || self.flight.is_abandoned() {
            return false;
        }
        if length > gathered.body.capacity() {
            // Double the capacity as a vector does, but only up to `max_size`.
            let capacity = length.max(max_size.min(2 * gathered.body.capacity()));
            let size = answer::size(&gathered.head, capacity);
            let more = size.saturating_sub(gathered.charge.bytes());
            // An answer that can never fit must not evict others.
            let can_fit = size <= self.shared.limit.load(Ordering::Relaxed);
            if !can_fit || !self.shared.make_room(more) {
                return false;
            }
            gathered.charge.set(size);
            gathered.body.reserve_exact(capacity - gathered.body.len());
        }
        gathered.body.extend_from_slice(bytes);
        true
    }

    /// Completes the answer: all followers get it.
    pub fn complete(mut self, gathered: Gathered, now: Moment) -> Arc<SharedAnswer> {
        let Gathered { head, body, charge } = gathered;
        let answer = Arc::new(SharedAnswer::new(head, body, charge, now));
        let windows = answer.windows(&self.collapse);
        self.is_over = true;
        let kept = Arc::new(KeptAnswer(Arc::clone(&answer)));
        let mut kinds = self.shared.lock();
        let followers = kinds.complete(&self.id, kept, &windows, now);
        drop(kinds);
        send(followers, || FollowResult::Answer(Arc::clone(&answer)));
        self.shared.drop_excess();
        answer
    }

    /// Ends the lead with an answer that is too large to share. The followers are released.
    pub fn end_too_large(mut self, now: Moment) {
        self.is_over = true;
        self.shared.lock().end_too_large(&self.id, now);
        self.shared.make_room(0);
        self.shared.release(&self.id);
    }

    /// Ends the lead with an answer for this client alone. The next follower leads.
    pub fn end_private(mut self, now: Moment) {
        self.is_over = true;
        self.shared.end_failed(&self, Cause::Private, now);
    }

    /// Ends the lead without an answer, or with one that reports a failure of the origin.
    ///
    /// Returns the stale answer that the leader gets, like its followers, if one may be used.
    pub fn end_failed(mut self, now: Moment) -> Option<Arc<SharedAnswer>> {
        self.is_over = true;
        self.shared.end_failed(&self, Cause::Failed, now)
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let limit = self.collapse.follow_timeout;
        let (shared, key) = (&self.shared, &self.id.key);
        if !shared.abandon(key, &self.flight, limit, clock::now()) {
            // For `Cause::Left` the time is not used: nothing is scheduled for a retry.
            shared.end_failed(self, Cause::Left, Moment::default());
        }
    }
}
