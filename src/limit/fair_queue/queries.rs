//! Queries of a fair queue: the costs ahead of a waiter, and the waiters of each key.

use std::hash::Hash;

use super::weights::COST_IN_SUMS;
use super::{FairQueue, Tag, UNIT};

impl<K: Hash + Eq + Clone, W> FairQueue<K, W> {
    /// Returns the whole costs that depart before a new request of `key`, if no other joins.
    ///
    /// Waiters of other keys with the same tag are assumed to depart first. So the result may be
    /// one request too high for each key that has more waiters than this one. A newcomer is assumed
    /// to have cost and weight 1.
    pub fn ahead_of_new(&self, key: &K) -> u64 {
        match self.flow(key) {
            Some(flow) if !flow.waiters.is_empty() => self.through(flow.end),
            Some(flow) if flow.tag >= self.now => self.through(flow.tag),
            _ => self.through(self.newcomers.min(self.now + UNIT)),
        }
    }

    /// Returns the whole costs that depart before the waiter of `key` with `nth` others ahead.
    ///
    /// Assumes that no other request joins, and that each waiter ahead costs 1. `None` if the key
    /// has no waiters.
    pub fn ahead_of_nth(&self, key: &K, nth: u32) -> Option<u64> {
        let flow = self.flow(key).filter(|flow| !flow.waiters.is_empty())?;
        let tag = flow.tag + flow.cost_in_tags(nth);
        Some(self.through(tag).saturating_sub(1))
    }

    /// Calls `visit` for a part of the keys that have waiters, with their number of waiters.
    ///
    /// The part begins at the position `from`, and takes at most `max_steps` steps. Keys are in any
    /// order. Returns the beginning of the next part, or `None` after the last one.
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

    /// Returns the whole costs of the waiters whose tag is at most `tag`.
    fn through(&self, tag: Tag) -> u64 {
        let begun = self.ready.begun(tag);
        let ended = self.ends.through(tag);
        // The sums are a little too low, because rough tags are rounded down.
        let costs = (begun.saturating_sub(ended) + COST_IN_SUMS / 1024) / COST_IN_SUMS;
        u64::try_from(costs).unwrap_or(u64::MAX)
    }
}
