//! Requests on their way to an actor. Each is answered once, unless its caller is dropped before.

use limit::{Limit, Moment, Ticket};
use tokio::sync::oneshot;

use super::answer::Answer;
use super::join::Join;

/// Join on its way to an actor. Answered exactly once, unless the caller is dropped before.
pub(super) struct PendingJoin {
    pub(super) join: Join,
    pub(super) reply: oneshot::Sender<Answer>,
}

/// Asks for a permit for a request that a zone has admitted.
///
/// Answered exactly once, unless the caller is dropped before.
pub(super) struct PermitRequest {
    /// Ticket of the join.
    pub(super) ticket: Ticket,
    /// Limit of the route.
    pub(super) limit: Limit,
    /// Time of the join. The waiter with the earliest join gets the next permit.
    pub(super) joined: Moment,
    /// Whether it waits until a permit is free.
    pub(super) waits: bool,
    pub(super) reply: oneshot::Sender<Answer>,
}

impl Join {
    /// Returns the pending join, and the receiver of its answer.
    pub(super) fn pending(self) -> (PendingJoin, oneshot::Receiver<Answer>) {
        let (reply, answer) = oneshot::channel();
        (PendingJoin { join: self, reply }, answer)
    }
}
