use std::collections::BTreeMap;

use super::weights::{ROUGH_UNIT, rough};
use super::{Flow, Tag};
use crate::limit::chain::{Chain, Nodes};

/// Flows in the order of their tags; those of one tag in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Lines {
    by_tag: BTreeMap<Tag, Line>,
    flows: usize,
}

/// The flows of one tag.
#[derive(Debug, Default)]
struct Line {
    flows: Chain,
    /// Their weights together.
    weight: u64,
}

impl Lines {
    /// Number of flows.
    pub fn len(&self) -> usize {
        self.flows
    }

    /// The flow with the smallest tag.
    pub fn first(&self) -> Option<u32> {
        self.by_tag.first_key_value()?.1.flows.first()
    }

    /// The largest tag; zero without a flow.
    pub fn last_tag(&self) -> Tag {
        let last = self.by_tag.last_key_value();
        last.map_or(0, |(tag, _)| *tag)
    }

    /// Puts a flow that is in no line behind those of its tag.
    pub fn push<K>(&mut self, flows: &mut Nodes<Flow<K>>, index: u32) {
        let (tag, weight) = (flows[index].tag, flows[index].counted());
        let line = self.by_tag.entry(tag).or_default();
        line.flows.push(flows, index);
        line.weight += u64::from(weight);
        self.flows += 1;
    }

    /// Takes a flow out of its line, in which it must be.
    pub fn remove<K>(&mut self, flows: &mut Nodes<Flow<K>>, index: u32) {
        let (tag, weight) = (flows[index].tag, flows[index].counted());
        let Some(line) = self.by_tag.get_mut(&tag) else {
            return;
        };
        line.flows.unlink(flows, index);
        line.weight -= u64::from(weight);
        if line.flows.is_empty() {
            self.by_tag.remove(&tag);
        }
        self.flows -= 1;
    }

    /// The whole costs, in sums, that these flows have from their tags through `tag`, if each has
    /// waiters without end.
    pub fn begun(&self, tag: Tag) -> u128 {
        let of = |(start, line): (&Tag, &Line)| {
            let span = rough(tag) - rough(*start);
            u128::from(line.weight) * span + u128::from(line.flows.len()) * ROUGH_UNIT
        };
        self.by_tag.range(..=tag).map(of).sum()
    }
}
