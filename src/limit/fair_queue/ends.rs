//! Ends of the flows of a queue: from its end on, a flow has no departures.

use std::collections::BTreeMap;

use super::Tag;
use super::weights::{COST_IN_SUMS, tag_in_sums};

/// Ends of all flows with waiters. Flows with the same end share an entry.
#[derive(Debug, Default)]
pub(super) struct Ends(BTreeMap<Tag, Flows>);

/// Flows with the same end.
#[derive(Debug, Default)]
struct Flows {
    count: u32,
    /// Sum of their weights, in units of `SUM_UNIT`.
    weight: u64,
}

impl Ends {
    /// Adds a flow that ends at `end`.
    pub(super) fn add(&mut self, weight: u32, end: Tag) {
        let flows = self.0.entry(end).or_default();
        flows.count += 1;
        flows.weight += u64::from(weight);
    }

    /// Removes a flow that ends at `end`.
    pub(super) fn remove(&mut self, weight: u32, end: Tag) {
        let Some(flows) = self.0.get_mut(&end) else {
            return;
        };
        flows.count -= 1;
        flows.weight -= u64::from(weight);
        if flows.count == 0 {
            self.0.remove(&end);
        }
    }

    /// Returns the whole costs from the ends of these flows through `tag`, in [`COST_IN_SUMS`].
    ///
    /// [`Lines::begun`](super::lines::Lines::begun) counts these costs, although the flows have no
    /// waiters for them.
    pub(super) fn through(&self, tag: Tag) -> u128 {
        let costs = |(end, flows): (&Tag, &Flows)| {
            let span = tag_in_sums(tag) - tag_in_sums(*end);
            u128::from(flows.weight) * span + u128::from(flows.count) * COST_IN_SUMS
        };
        self.0.range(..=tag).map(costs).sum()
    }
}
