//! Order of the flows of a fair queue, by tag.
//!
//! A *flow* is a key in the queue. Its *tag* is its instant in the order of departures: the
//! smallest departs next. The *tag number* counts how often tags were set: of equal tags, the one
//! that was set first departs first. A *line* has all flows with one tag.

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
    /// Number of flows.
    flows: usize,
    /// Sum of the weights of all flows, in units of `SUM_UNIT`.
    weight: u64,
}

/// Flows with the same tag.
#[derive(Debug, Default)]
struct Line {
    /// Flows that were added in the order of their tag numbers, which is nearly always so.
    flows: Chain,
    /// Index of each flow that was added after a flow with a larger tag number, by tag number.
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
        let is_earlier = |number: u64| first.is_none_or(|first| number < flows[first].tag_number);
        let late = line.late.first_key_value();
        let late = late.filter(|(number, _)| is_earlier(**number));
        late.map(|(_, index)| *index).or(first)
    }

    /// Returns the largest tag, or zero without a flow.
    pub fn last_tag(&self) -> Tag {
        let last = self.by_tag.last_key_value();
        last.map_or(0, |(tag, _)| *tag)
    }

    /// Adds a flow to the line of its tag. It must be in no line.
    pub fn push<K>(&mut self, flows: &mut Nodes<Flow<K>>, index: u32) {
        let flow = &flows[index];
        let (number, weight) = (flow.tag_number, flow.weight_in_sums());
        let line = self.by_tag.entry(flow.tag).or_default();
        let last = line.flows.last();
        if last.is_some_and(|last| number < flows[last].tag_number) {
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

    /// Returns the costs that depart from the tags of these flows up to `tag`.
    ///
    /// In units of [`COST_IN_SUMS`]. Assumes that no flow ever runs out of waiters.
    pub fn costs_to(&self, tag: Tag) -> u128 {
        let costs = |(start, line): (&Tag, &Line)| {
            let distance = tag_in_sums(tag) - tag_in_sums(*start);
            // A departure at the tag of the flow itself counts, too.
            u128::from(line.weight) * distance + line.len() as u128 * COST_IN_SUMS
        };
        self.by_tag.range(..=tag).map(costs).sum()
    }
}
