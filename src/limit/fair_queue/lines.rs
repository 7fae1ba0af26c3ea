//! Order of the flows of a fair queue.

use std::collections::BTreeMap;

use super::weights::{COST_IN_SUMS, tag_in_sums};
use super::{Flow, Tag};
use crate::chain::{Chain, Nodes};

/// Flows in the order of their tags.
///
/// Flows with equal tags are in the order in which the tags were set.
#[derive(Debug, Default)]
pub(super) struct Lines {
    by_tag: BTreeMap<Tag, Line>,
    flows: usize,
    /// Sum of the weights of all flows, in units of `SUM_UNIT`.
    weight: u64,
}

/// Flows with the same tag.
#[derive(Debug, Default)]
struct Line {
    /// Flows that were added in the order in which their tags were set.
    flows: Chain,
    /// Flows that were added after a flow whose tag was set later, by the value of `tag_count`.
    late: BTreeMap<u64, u32>,
    /// Sum of the weights of these flows, in units of `SUM_UNIT`.
    weight: u64,
}

impl Line {
    fn len(&self) -> usize {
        self.flows.len() as usize + self.late.len()
    }
}

impl Lines {
    /// Returns the number of flows.
    pub fn len(&self) -> usize {
        self.flows
    }

    /// Returns the sum of the weights of all flows, in units of `SUM_UNIT`.
    pub fn weight(&self) -> u64 {
        self.weight
    }

    /// Returns the flow that departs next: the smallest tag, and of equal tags the one set first.
    pub fn first<K>(&self, flows: &Nodes<Flow<K>>) -> Option<u32> {
        let line = self.by_tag.first_key_value()?.1;
        let first = line.flows.first();
        let late = line.late.first_key_value();
        let late =
            late.filter(|(number, _)| first.is_none_or(|first| **number < flows[first].tag_number));
        late.map(|(_, index)| *index).or(first)
    }

    /// Returns the largest tag, or zero without a flow.
    pub fn last_tag(&self) -> Tag {
        let last = self.by_tag.last_key_value();
        last.map_or(0, |(tag, _)| *tag)
    }

    /// Adds a flow to the line of its tag. It must be in no line.
    pub fn push<K>(&mut self, flows: &mut Nodes<Flow<K>>, index: u32) {
        let (tag, number, weight) = (
            flows[index].tag,
            flows[index].tag_number,
            flows[index].weight_in_sums(),
        );
        let line = self.by_tag.entry(tag).or_default();
        if line
            .flows
            .last()
            .is_some_and(|last| number < flows[last].tag_number)
        {
            line.late.insert(number, index);
        } else {
            line.flows.push(flows, index);
        }
        line.weight += u64::from(weight);
        self.flows += 1;
        self.weight += u64::from(weight);
    }

    /// Removes a flow from its line. It must be in that line.
    pub fn remove<K>(&mut self, flows: &mut Nodes<Flow<K>>, index: u32) {
        let (tag, weight) = (flows[index].tag, flows[index].weight_in_sums());
        let Some(line) = self.by_tag.get_mut(&tag) else {
            return;
        };
        if line.late.remove(&flows[index].tag_number).is_none() {
            line.flows.unlink(flows, index);
        }
        line.weight -= u64::from(weight);
        if line.len() == 0 {
            self.by_tag.remove(&tag);
        }
        self.flows -= 1;
        self.weight -= u64::from(weight);
    }

    /// Returns the whole costs from the tags of these flows through `tag`, in [`COST_IN_SUMS`].
    ///
    /// Assumes that no flow ever runs out of waiters.
    pub fn begun(&self, tag: Tag) -> u128 {
        let costs = |(start, line): (&Tag, &Line)| {
            let span = tag_in_sums(tag) - tag_in_sums(*start);
            u128::from(line.weight) * span + line.len() as u128 * COST_IN_SUMS
        };
        self.by_tag.range(..=tag).map(costs).sum()
    }
}
