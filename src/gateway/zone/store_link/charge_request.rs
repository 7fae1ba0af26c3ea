//! Charge that a batcher sends to the store, and the receiver of the answer.
//!
//! A join may carry a *refill*: slots for the key's lease, which it takes in advance.

use std::cell::Cell;

use limit::{Limit, Moment};

use super::refill::Refill;
use super::{Decision, NoReply, SharedKey};

/// Receiver of the store's answer to an operation.
///
/// Called exactly once; with [`NoReply`] if it is dropped.
pub(in crate::zone) struct Reply<T>(Option<Receive<T>>);

/// Function that a [`Reply`] calls.
type Receive<T> = Box<dyn FnOnce(Result<T, NoReply>)>;

impl<T> Reply<T> {
    pub(in crate::zone) fn new(receive: impl FnOnce(Result<T, NoReply>) + 'static) -> Self {
        Self(Some(Box::new(receive)))
    }

    pub(super) fn send(mut self, answer: Result<T, NoReply>) {
        if let Some(receive) = self.0.take() {
            receive(answer);
        }
    }
}

impl<T> Drop for Reply<T> {
    fn drop(&mut self) {
        if let Some(receive) = self.0.take() {
            receive(Err(NoReply));
        }
    }
}

/// Join or other charge for the store to decide.
pub(super) struct ChargeRequest {
    pub(super) key: SharedKey,
    pub(super) limit: Limit,
    /// Time of the join.
    pub(super) since: Moment,
    /// Whether a request waits for the answer.
    is_join: bool,
    /// Receiver of the answer; `None` once it is answered, or if nobody needs the answer.
    reply: Cell<Option<Reply<Decision>>>,
    /// Number of slots that the charge takes: its own, and those of the refill.
    pub(super) slots: usize,
    /// Refill of the key's lease, completed after the reply.
    refill: Cell<Option<Refill>>,
}

impl ChargeRequest {
    /// Creates a join. `refill`: the slots that the key's lease takes ahead with it.
    pub(super) fn join(
        key: SharedKey,
        limit: Limit,
        since: Moment,
        reply: Reply<Decision>,
        refill: Option<Refill>,
    ) -> Self {
        let slots_ahead = refill.as_ref().map_or(0, |refill| refill.ahead);
        Self {
            is_join: true,
            slots: 1 + usize::try_from(slots_ahead).unwrap_or(0),
            refill: Cell::new(refill),
            ..Self::charge(key, limit, since, Some(reply))
        }
    }

    /// Creates a charge that no request waits for.
    pub(super) fn charge(
        key: SharedKey,
        limit: Limit,
        since: Moment,
        reply: Option<Reply<Decision>>,
    ) -> Self {
        Self {
            key,
            limit,
            since,
            is_join: false,
            reply: Cell::new(reply),
            slots: 1,
            refill: Cell::default(),
        }
    }

    /// Takes the refill, to be completed after the answer.
    pub(super) fn take_refill(&self) -> Option<Refill> {
        self.refill.take()
    }

    /// Returns whether it is a join whose answer is still missing.
    pub(super) fn is_unanswered_join(&self) -> bool {
        // A `Cell` can only be read by taking the value out and putting it back.
        let reply = self.reply.take();
        let is_unanswered = self.is_join && reply.is_some();
        self.reply.set(reply);
        is_unanswered
    }

    /// Answers the request, unless it was answered before. A refill that was not taken ends empty.
    pub(super) fn respond(&self, decision: Result<Decision, NoReply>) {
        if let Some(reply) = self.reply.take() {
            reply.send(decision);
        }
        drop(self.refill.take());
    }
}
