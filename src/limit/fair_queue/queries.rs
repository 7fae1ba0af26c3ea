//! Queries of a fair queue: the costs ahead of a waiter, and the number of waiters of each key.
//!
//! A *flow* is a key in the queue. A *tag* is an instant in the order of departures. `now` is the
//! tag of the last departure, and `end` the tag behind the last waiter of a flow.

use std::hash::Hash;

use super::weights::COST_IN_SUMS;
use super::{FairQueue, Tag, UNIT};

impl<K: Hash + Eq + Clone, W> FairQueue<K, W> {
    /// Returns the costs that depart before a new request of `key`, if no other request joins.
    ///
    /// In whole requests. Waiters of other keys with the same tag are assumed to depart first. So
    /// the result may be one request too high for each key that has more waiters than this one. A
    /// newcomer is assumed to have cost and weight 1.
    pub fn ahead_of_new(&self, key: &K) -> u64 {
        match self.flow(key) {
            Some(flow) if !flow.waiters.is_empty() => self.costs_to(flow.end),
            Some(flow) if flow.tag >= self.now => self.costs_to(flow.tag),
            _ => self.costs_to(self.newcomers.min(self.now + UNIT)),
        }
    }

    /// Returns the costs that depart before the waiter of `key` that has `nth` others ahead.
    ///
    /// In whole requests. Assumes that no other request joins, and that each waiter ahead costs 1.
    /// `None` if the key has no waiters.
    pub fn ahead_of_nth(&self, key: &K, nth: u32) -> Option<u64> {
        let flow = self.flow(key).filter(|flow| !flow.waiters.is_empty())?;
        let tag = flow.tag + flow.cost_in_tags(nth);
        // The waiter itself is counted.
        Some(self.costs_to(tag).saturating_sub(1))
    }

    /// Calls `visit` for some of the keys that have waiters, with their number of waiters.
    ///
    /// Begins at the position `from`, and takes at most `max_steps` steps. Keys are in any order.
    /// Returns where the next call must begin, or `None` after the last key. The first call begins
    /// at 0.
    pub fn depths(
        &self,
        from: usize,
        max_steps: usize,
        mut visit: impl FnMut(&K, usize),
    ) -> Option<usize> {
        let (end, bound) = (from.saturating_add(max_steps), self.flows.index_bound());
        for index in from..end.min(bound) {
            let flow = self.flows.get(u32::try_from(index).ok()?);
            if let Some(flow) = flow.filter(|flow| !flow.waiters.is_empty()) {
                visit(&flow.key, flow.waiters.len() as usize);
            }
        }
        (end < bound).then_some(end)
    }

    /// Returns the costs of the waiters whose tag is at most `tag`, in whole requests.
    fn costs_to(&self, tag: Tag) -> u64 {
        let with_endless_waiters = self.ready.costs_to(tag);
        let without_waiters = self.ends.costs_to(tag);
        let costs = with_endless_waiters.saturating_sub(without_waiters);
        // The sums are a little too low, because tags are rounded down in sums.
        let costs = (costs + COST_IN_SUMS / 1024) / COST_IN_SUMS;
        u64::try_from(costs).unwrap_or(u64::MAX)
    }
}
