use actix::Recipient;
use limit::Moment;

use super::ask::ReplyTo;
use super::{StoreReply, StoreRequest};
use crate::zone::messages::Join;

/// A join that is not decided.
pub(super) struct PendingJoin {
    pub(super) join: Join,
    /// When the request joined.
    pub(super) since: Moment,
    pub(super) reply_to: Recipient<StoreReply>,
}

impl PendingJoin {
    pub(super) fn into_reply(self) -> ReplyTo {
        ReplyTo::new(StoreRequest::Join(self.join, self.since), self.reply_to)
    }
}
