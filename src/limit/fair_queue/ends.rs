//! Ends of the flows of a queue, to subtract the departures that flows no longer have.

use std::collections::BTreeMap;

use super::Tag;
use super::weights::{ROUGH_UNIT, rough};

/// Ends of all flows with waiters. Flows with the same end share an entry.
#[derive(Debug, Default)]
pub(super) struct Ends(BTreeMap<Tag, Flows>);

/// Flows with the same end.
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

    /// Returns the whole costs that ended flows would have had until `tag`, in [`ROUGH_UNIT`].
    ///
    /// It counts the flows whose end is at most `tag`, from their end through `tag`, including the
    /// cost at `tag` itself.
    pub(super) fn through(&self, tag: Tag) -> u128 {
        let of = |(end, flows): (&Tag, &Flows)| {
            let span = rough(tag) - rough(*end);
            u128::from(flows.weight) * span + u128::from(flows.count) * ROUGH_UNIT
        };
        self.0.range(..=tag).map(of).sum()
    }
}
