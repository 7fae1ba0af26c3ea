//! The operations that a batcher carries to the store.

use std::cell::Cell;

use actix::Recipient;
use limit::{Limit, Moment};

use super::refill::Refill;
use super::{Decision, InForce, NoReply, Retuned, SharedKey, StoreReply, StoreRequest};

/// A join for the store to decide, or another charge.
pub(super) struct Ask {
    pub(super) key: SharedKey,
    pub(super) limit: Limit,
    /// When the request joined.
    pub(super) since: Moment,
    /// `None` once it is answered, or if the charge stays whatever is told.
    reply_to: Cell<Option<ReplyTo>>,
    /// How many places it takes together.
    pub(super) places: usize,
    /// Told after the reply.
    refill: Cell<Option<Refill>>,
}

/// Receives the store's decision.
pub(super) struct ReplyTo {
    asked: StoreRequest,
    to: Recipient<StoreReply>,
}

/// A retune for the store.
pub(super) struct Retuning {
    pub(super) key: SharedKey,
    /// `None` once it is answered.
    reply_to: Option<Recipient<Retuned>>,
}

impl Ask {
    pub(super) fn new(
        key: SharedKey,
        limit: Limit,
        since: Moment,
        reply_to: Option<ReplyTo>,
    ) -> Self {
        Self {
            key,
            limit,
            since,
            reply_to: Cell::new(reply_to),
            places: 1,
            refill: Cell::new(None),
        }
    }

    /// The same with what its key's lease is told.
    pub(super) fn with(mut self, refill: Option<Refill>) -> Self {
        let ahead = refill.as_ref().map_or(0, |refill| refill.ahead);
        self.places = 1 + usize::try_from(ahead).unwrap_or(0);
        self.refill = Cell::new(refill);
        self
    }

    /// What is to be told of the places, after the answer.
    pub(super) fn take_refill(&self) -> Option<Refill> {
        self.refill.take()
    }

    /// Whether a request waits for the answer.
    pub(super) fn is_open_join(&self) -> bool {
        let reply_to = self.reply_to.take();
        let is_open = reply_to
            .as_ref()
            .is_some_and(|it| matches!(it.asked, StoreRequest::Join(..)));
        self.reply_to.set(reply_to);
        is_open
    }

    /// Answers it, unless it was answered before. A refill that is still here gets no places.
    pub(super) fn tell(&self, decision: Result<Decision, NoReply>) {
        if let Some(reply_to) = self.reply_to.take() {
            reply_to.tell(decision);
        }
        drop(self.refill.take());
    }
}

impl ReplyTo {
    pub(super) fn new(asked: StoreRequest, to: Recipient<StoreReply>) -> Self {
        Self { asked, to }
    }

    pub(super) fn tell(self, decision: Result<Decision, NoReply>) {
        let Self { asked, to } = self;
        to.do_send(StoreReply { asked, decision });
    }
}

/// An actor that expects an answer always gets one.
impl Drop for Ask {
    fn drop(&mut self) {
        self.tell(Err(NoReply));
    }
}

impl Retuning {
    pub(super) fn new(key: SharedKey, reply_to: Recipient<Retuned>) -> Self {
        Self {
            key,
            reply_to: Some(reply_to),
        }
    }

    pub(super) fn tell(mut self, in_force: Result<InForce, NoReply>) {
        self.answer(in_force);
    }

    fn answer(&mut self, in_force: Result<InForce, NoReply>) {
        if let Some(reply_to) = self.reply_to.take() {
            reply_to.do_send(Retuned(in_force));
        }
    }
}

/// As for [`Ask`].
impl Drop for Retuning {
    fn drop(&mut self) {
        self.answer(Err(NoReply));
    }
}
