//! Weight of a key, and the part of it that counts where the key waits at several gateways.

use std::hash::Hash;
use std::num::NonZeroU16;

use super::named_keys::{NamedKeys, Naming};
use super::{FairQueue, Flow, Tag, UNIT};

/// Weight of 1, in the unit of sums of weights. Each number up to 16 gateways divides it.
pub(super) const PARTS: u32 = 720_720;

/// Number of low bits of a tag that sums leave out, so that sums fit.
const ROUGH: u32 = 40;

/// One whole cost at weight 1, in sums.
pub(super) const ROUGH_UNIT: u128 = (UNIT >> ROUGH) * PARTS as u128;

/// Converts a tag for sums.
pub(super) fn rough(tag: Tag) -> u128 {
    tag >> ROUGH
}

impl<K> Flow<K> {
    /// Converts a cost to tags.
    pub(super) fn span(&self, cost: u32) -> Tag {
        UNIT / u128::from(self.weight) * u128::from(cost) * u128::from(self.gateways.get())
    }

    /// Returns the weight for sums.
    pub(super) fn counted(&self) -> u32 {
        let parts = PARTS * u32::from(self.weight);
        let gateways = u32::from(self.gateways.get());
        (parts + gateways / 2) / gateways
    }
}

impl<K: Hash + Eq + Clone, W> FairQueue<K, W> {
    pub(super) fn set_weight(&mut self, index: u32, weight: u16) {
        let flow = &self.flows[index];
        let before = u128::from(flow.weight);
        if flow.weight == weight {
            return;
        }
        if !flow.waiters.is_empty() {
            self.weights = self.weights - u64::from(flow.weight) + u64::from(weight);
            if let Some(named) = &mut self.named {
                named.set_weight(index, weight.into());
            }
        }
        self.change(index, |flow| {
            flow.weight = weight;
            // The waiters keep their costs, which are whole.
            flow.end = flow.tag + (flow.end - flow.tag) * before / u128::from(weight);
        });
    }

    fn set_gateways(&mut self, index: u32, gateways: NonZeroU16) {
        let known = self.flows.get(index).map(|flow| flow.gateways);
        let Some(before) = known.filter(|before| *before != gateways) else {
            return;
        };
        self.change(index, |flow| {
            flow.gateways = gateways;
            let (before, now) = (u128::from(before.get()), u128::from(gateways.get()));
            flow.end = flow.tag + (flow.end - flow.tag) / before * now;
        });
    }

    /// Changes the weight of a flow. Without waiters, the flow's end is unused.
    fn change(&mut self, index: u32, change: impl FnOnce(&mut Flow<K>)) {
        let is_waiting = !self.flows[index].waiters.is_empty();
        let lines = if is_waiting {
            &mut self.ready
        } else {
            &mut self.resting
        };
        lines.remove(&mut self.flows, index);
        let flow = &mut self.flows[index];
        let (counted, end) = (flow.counted(), flow.end);
        if !is_waiting {
            flow.end = flow.tag;
        }
        change(flow);
        if is_waiting {
            self.ends.remove(counted, end);
            self.ends.add(flow.counted(), flow.end);
        }
        lines.push(&mut self.flows, index);
        self.update_head(index);
    }

    /// Starts to name the waiting keys to other gateways; `None` stops it.
    pub(crate) fn name_keys(&mut self, naming: Option<Naming<K>>) {
        if let Some(named) = self.named.take() {
            for index in named.waiting() {
                self.set_gateways(index, NonZeroU16::MIN);
            }
        }
        let Some(naming) = naming else {
            return;
        };
        let mut named = NamedKeys::new(naming);
        for index in 0..u32::try_from(self.flows.index_bound()).unwrap_or(u32::MAX) {
            let flow = self.flows.get(index);
            if let Some(flow) = flow.filter(|flow| !flow.waiters.is_empty()) {
                named.began(index, &flow.key, flow.weight.into());
            }
        }
        self.named = Some(Box::new(named));
    }

    /// Returns the named keys; `None` if keys are not named.
    pub(crate) fn named(&mut self) -> Option<&mut NamedKeys<K>> {
        self.named.as_deref_mut()
    }

    /// Records that the store has applied the changes that were taken last.
    pub(crate) fn changes_noted(&mut self) {
        let unnamed = self.named.as_mut().map(|named| named.noted());
        for index in unnamed.unwrap_or_default() {
            self.set_gateways(index, NonZeroU16::MIN);
        }
    }

    /// Reports all keys again and counts them in full, because the store knows none of them.
    pub(crate) fn forget_reported(&mut self) {
        self.named().map(NamedKeys::forget_reported);
        self.count_whole();
    }

    /// Reports all keys again and counts them in full, because the store has lost some of them.
    ///
    /// A key counts in full until the store reports its gateways again.
    pub(crate) fn report_again(&mut self) {
        self.named().map(NamedKeys::report_again);
        self.count_whole();
    }

    fn count_whole(&mut self) {
        let waiting = self.named.iter().flat_map(|named| named.waiting());
        for index in waiting.collect::<Vec<_>>() {
            self.set_gateways(index, NonZeroU16::MIN);
        }
    }

    /// Sets the number of gateways at which a key waits: here it counts as one of as many parts.
    pub(crate) fn waits_at(&mut self, key: u64, gateways: NonZeroU16) {
        let named = self.named.as_mut();
        if let Some(index) = named.and_then(|named| named.waits_at(key, gateways)) {
            self.set_gateways(index, gateways);
        }
    }
}
