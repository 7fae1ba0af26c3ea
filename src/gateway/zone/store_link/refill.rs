//! Refill of a key's lease: slots that it takes in advance with a join, and the store's answer.

use std::rc::Rc;

use limit::{Limit, Moment};

use super::{Decision, StoreLink};
use crate::zone::join::Key;

/// Refill of a key's lease, sent with a join: the slots to take ahead, and where to add them.
pub(super) struct Refill {
    pub(super) link: Rc<StoreLink>,
    pub(super) key: Key,
    pub(super) limit: Limit,
    /// Number of slots to take in advance.
    pub(super) ahead: u32,
    /// Version of the key's lease when the refill was requested.
    pub(super) version: u64,
    /// Whether the refill is complete.
    pub(super) is_answered: bool,
}

/// Store's answer to a refill: the decision on the join, then one for each requested slot.
pub(super) struct Refilled {
    /// Time of the request to the store.
    pub(super) asked: Moment,
    /// Decisions of the store.
    pub(super) decisions: Vec<Decision>,
}

impl Refill {
    /// Completes the refill with the store's answer; `None` if there is none.
    pub(super) fn respond(mut self, reported: Option<Refilled>) {
        self.is_answered = true;
        self.link.leases.complete_refill(&self, reported);
    }
}

/// Completes the refill in any case, so that no join waits for slots that never come.
impl Drop for Refill {
    fn drop(&mut self) {
        if !self.is_answered {
            self.link.leases.complete_refill(self, None);
        }
    }
}
