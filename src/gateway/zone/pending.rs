//! Messages to an actor that it answers: joins, and requests for a permit.

use limit::{Limit, Moment, Ticket};
use tokio::sync::oneshot;

use super::answer::Answer;
use super::join::Join;

/// Join with the sender of its answer. The actor answers it once.
pub(super) struct PendingJoin {
    pub(super) join: Join,
    pub(super) reply: oneshot::Sender<Answer>,
}

/// Request for a permit, by a request that the zone has admitted without one.
///
/// The actor answers it once.
pub(super) struct PermitRequest {
    /// Ticket of the join.
    pub(super) ticket: Ticket,
    /// Limit of the route.
    pub(super) limit: Limit,
    /// Time of the join. The waiter with the earliest join gets the next permit.
    pub(super) joined: Moment,
    /// Whether the request waits until a permit is free.
    ///
    /// If not, the answer may be [`Answer::NoPermit`].
    pub(super) waits: bool,
    pub(super) reply: oneshot::Sender<Answer>,
}

impl Join {
    /// Returns the message for the actor, and the receiver of its answer.
    pub(super) fn pending(self) -> (PendingJoin, oneshot::Receiver<Answer>) {
        let (reply, answer) = oneshot::channel();
        (PendingJoin { join: self, reply }, answer)
    }
}
