//! Requests that an actor answers: joins, and requests for a permit.

use limit::{Limit, Moment, Ticket};
use tokio::sync::oneshot;

use super::answer::Answer;
use super::join::Join;

/// Join with the sender of its answer. It is answered once, unless its caller has disconnected.
pub(super) struct PendingJoin {
    pub(super) join: Join,
    pub(super) reply: oneshot::Sender<Answer>,
}

/// Request for the permit of a request that a zone has admitted.
///
/// It is answered once, unless its caller has disconnected.
pub(super) struct PermitRequest {
    /// Ticket of the join.
    pub(super) ticket: Ticket,
    /// Limit of the route.
    pub(super) limit: Limit,
    /// Time of the join. The waiter with the earliest join gets the next permit.
    pub(super) joined: Moment,
    /// Whether it waits until a permit is free. If not, the answer may be that none is free.
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
