//! Ends of the flows of a queue: from its end on, a flow has no departures.
//!
//! A *flow* is a key in the queue. A *tag* is an instant in the order of departures. The *end* of a
//! flow is the tag behind its last waiter. Weights and costs are sums in the units of `weights`.

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

    /// Returns the costs that flows would have from their ends up to `tag`, with endless waiters.
    ///
    /// In units of [`COST_IN_SUMS`]. [`Lines::costs_to`](super::lines::Lines::costs_to) counts
    /// these costs, although there are no waiters for them.
    pub(super) fn costs_to(&self, tag: Tag) -> u128 {
        let costs = |(end, flows): (&Tag, &Flows)| {
            let distance = tag_in_sums(tag) - tag_in_sums(*end);
            // A departure at the end itself counts, too.
            u128::from(flows.weight) * distance + u128::from(flows.count) * COST_IN_SUMS
        };
        self.0.range(..=tag).map(costs).sum()
    }
}
