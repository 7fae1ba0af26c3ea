//! The request whose answer others wait for.

use std::sync::Arc;
use std::task::{Context, Poll};

use config::Collapse;
use limit::Moment;

use super::SharedAnswers;
use super::answer::{self, AnswerHead, SharedAnswer};
use super::flight::Flight;
use super::kinds::{Cause, FlightId};
use super::memory::{AnswerBody, Charge};
use crate::gate::{Line, Reserved};
use crate::time::clock;

/// A request that leads. If this is dropped, the next one does.
#[derive(Debug)]
pub struct Leader {
    shared: Arc<SharedAnswers>,
    pub(super) id: FlightId,
    pub(super) flight: Arc<Flight>,
    pub(super) collapse: Arc<Collapse>,
    /// Its line at the gate of the origin, once it has left.
    line: Option<Line>,
    /// The place at the gate that the leader before this one left to it.
    reserved: Option<Reserved>,
    is_over: bool,
}

/// An answer as far as it has arrived.
pub struct Gathered {
    head: AnswerHead,
    body: Vec<u8>,
    charge: Charge,
}

impl Gathered {
    /// The bytes of the body so far.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// The bytes behind the first `read` ones, for a single client that has those; `None` if there
    /// are none.
    pub fn into_rest(self, read: usize) -> Option<Arc<AnswerBody>> {
        let Self {
            mut body,
            mut charge,
            ..
        } = self;
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
            line: None,
            reserved: None,
            is_over: false,
        }
    }

    /// The leader behind this one, which failed. It goes on in the same line.
    pub(super) fn next(&self, id: FlightId) -> Self {
        let mut next = Self::new(&self.shared, id, Arc::clone(&self.flight), &self.collapse);
        next.reserved = self.line.as_ref().and_then(Line::reserve);
        next
    }

    /// What the route says of its kind.
    pub fn collapse(&self) -> &Arc<Collapse> {
        &self.collapse
    }

    /// Takes the place at the gate that the leader before this one left to it, if it did.
    pub fn take_reserved(&mut self) -> Option<Reserved> {
        self.reserved.take()
    }

    /// It leaves for the origin, in this line of the gate if there is one.
    pub fn departs(&mut self, line: Option<Line>, now: Moment) {
        self.line = line;
        self.flight.set_departed(Some(now));
    }

    /// It could not be sent, and waits for the origin until it departs again.
    pub fn hold(&self) {
        self.flight.restart();
    }

    /// It departs again, in the same line.
    pub fn resume(&self, now: Moment) {
        self.flight.set_departed(Some(now));
    }

    /// The origin cannot be reached. Returns what this one gets if a stale answer serves, which those
    /// who follow get, too. Then this is over, unless it goes on for no client.
    pub fn stand_in(&mut self, goes_on: bool, now: Moment) -> Option<Arc<SharedAnswer>> {
        let answer = self.shared.stand_in(self, goes_on, now)?;
        self.is_over = !goes_on;
        Some(answer)
    }

    /// Ready when nobody follows.
    pub fn poll_alone(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.flight.wait_alone(cx.waker());
        if self.shared.lock().is_followed(&self.id) {
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    }

    /// Begins to gather an answer. `has_length`: whether its head says how long it is.
    pub fn gather(&self, head: AnswerHead, has_length: bool) -> Gathered {
        if !has_length {
            self.flight.open(head.arrived);
        }
        Gathered {
            head,
            body: Vec::new(),
            charge: Charge::new(&self.shared.memory),
        }
    }

    /// Adds bytes to the body. Returns `false`, and adds nothing, if they make it too large, or if
    /// nobody waits for it any more.
    pub fn add(&self, gathered: &mut Gathered, bytes: &[u8]) -> bool {
        let length = gathered.body.len() + bytes.len();
        let max_size = usize::try_from(self.collapse.max_size.get()).unwrap_or(usize::MAX);
        if length > max_size || self.flight.is_abandoned() {
            return false;
        }
        if length > gathered.body.capacity() {
            // As a vector grows, but not beyond what the body may have.
            let capacity = length.max(max_size.min(2 * gathered.body.capacity()));
            let size = answer::size(&gathered.head, capacity);
            let more = size.saturating_sub(gathered.charge.bytes());
            // What can never fit makes others go for nothing.
            if !self.shared.may_fit(size) || !self.shared.make_room(more) {
                return false;
            }
            gathered.charge.set(size);
            gathered.body.reserve_exact(capacity - gathered.body.len());
        }
        gathered.body.extend_from_slice(bytes);
        true
    }

    /// The answer is complete: all who follow get it.
    pub fn complete(mut self, gathered: Gathered, now: Moment) -> Arc<SharedAnswer> {
        let Gathered { head, body, charge } = gathered;
        let answer = Arc::new(SharedAnswer::new(head, body, charge, now));
        let windows = answer.windows(&self.collapse);
        self.is_over = true;
        self.shared.complete(&self.id, &answer, &windows, now);
        answer
    }

    /// The answer is too large to share: those that wait go on by themselves.
    pub fn unshareable(mut self, now: Moment) {
        self.is_over = true;
        self.shared.unshareable(&self.id, now);
    }

    /// The answer may not be shared, which may concern this one alone: the next one leads.
    pub fn has_own_answer(mut self, now: Moment) {
        self.is_over = true;
        self.shared.failed(&self, Cause::OwnAnswer, now);
    }

    /// There is no answer, or one that says that the origin fails.
    ///
    /// Returns what this one gets, too, if a stale answer serves.
    pub fn failed(mut self, now: Moment) -> Option<Arc<SharedAnswer>> {
        self.is_over = true;
        self.shared.failed(&self, Cause::Failed, now)
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let limit = self.collapse.follow_timeout;
        if !self
            .shared
            .abandon(&self.id.key, &self.flight, limit, clock::now())
        {
            self.shared.failed(self, Cause::Left, Moment::default());
        }
    }
}
