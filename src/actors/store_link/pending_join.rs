use actix::Recipient;

use super::{Decision, NoReply, StoreReply};
use crate::actors::messages::Join;
use crate::limit::Moment;

/// A join that is not decided.
pub(super) struct PendingJoin {
    pub(super) join: Join,
    /// When the request joined.
    pub(super) since: Moment,
    pub(super) reply_to: Recipient<StoreReply>,
}

impl PendingJoin {
    pub(super) fn tell(self, decision: Result<Decision, NoReply>) {
        self.reply_to.do_send(StoreReply {
            join: self.join,
            since: self.since,
            decision,
        });
    }
}
