//! Requests on their way to an actor: each is answered exactly once, unless its caller has gone before.

use limit::{Limit, Moment, Ticket};
use tokio::sync::oneshot;

use super::answer::Answer;
use super::join::Join;

/// A join on its way to an actor. It is answered exactly once, unless the caller has gone before.
#[derive(Debug)]
pub(super) struct PendingJoin {
    pub(super) join: Join,
    pub(super) reply: oneshot::Sender<Answer>,
}

/// Asks for a place for a request that has its turn. Answered exactly once, unless the caller has
/// gone before.
#[derive(Debug)]
pub(super) struct AskPlace {
    /// The ticket of the join.
    pub(super) ticket: Ticket,
    /// The route's limit.
    pub(super) limit: Limit,
    /// When it joined. Whoever joined first has the next place.
    pub(super) joined: Moment,
    /// Whether it waits until a place is free.
    pub(super) waits: bool,
    pub(super) reply: oneshot::Sender<Answer>,
}

impl Join {
    /// Makes it pending. Its answer comes to the receiver.
    pub(super) fn pending(self) -> (PendingJoin, oneshot::Receiver<Answer>) {
        let (reply, answer) = oneshot::channel();
        (PendingJoin { join: self, reply }, answer)
    }
}
