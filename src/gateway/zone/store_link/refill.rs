//! Places that a lease takes ahead with a join.

use std::rc::Rc;

use limit::{Limit, Moment};

use super::{Decision, StoreLink};
use crate::zone::join::Key;

/// What goes with an ask whose key has a lease: the places to take ahead, and where they go.
pub(super) struct Refill {
    pub(super) link: Rc<StoreLink>,
    pub(super) key: Key,
    pub(super) limit: Limit,
    /// How many places to take ahead.
    pub(super) ahead: u32,
    pub(super) version: u64,
    pub(super) is_told: bool,
}

/// What the store said to an ask: first to the request, then of each place that was asked for.
pub(super) struct Refilled {
    /// When it was asked.
    pub(super) asked: Moment,
    pub(super) decisions: Vec<Decision>,
}

impl Refill {
    pub(super) fn tell(mut self, told: Option<Refilled>) {
        self.is_told = true;
        self.link.leases.refilled(&self, told);
    }
}

/// Those who wait for the places never wait for nothing.
impl Drop for Refill {
    fn drop(&mut self) {
        if !self.is_told {
            self.link.leases.refilled(self, None);
        }
    }
}
