//! Where the flows of a queue end: what all flows that end by a tag do not take of it any more.

use std::collections::BTreeMap;

use super::Tag;
use super::weights::{ROUGH_UNIT, rough};

/// The ends of all flows with waiters. Flows with one end are one entry.
#[derive(Debug, Default)]
pub(super) struct Ends(BTreeMap<Tag, Flows>);

/// The flows with one end.
#[derive(Debug, Default)]
struct Flows {
    count: u32,
    /// Sum of their counted weights.
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

    /// The whole costs, in [`ROUGH_UNIT`], that the flows which end by `tag` would have had until
    /// then if they had not ended, and the one at `tag` itself.
    pub(super) fn through(&self, tag: Tag) -> u128 {
        let of = |(end, flows): (&Tag, &Flows)| {
            let span = rough(tag) - rough(*end);
            u128::from(flows.weight) * span + u128::from(flows.count) * ROUGH_UNIT
        };
        self.0.range(..=tag).map(of).sum()
    }
}
