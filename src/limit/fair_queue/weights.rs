//! Weight of a key, and the part of it that counts where the key waits at several gateways.
//!
//! A *flow* is a key in the queue. Its *tag* is a virtual start time: the smallest departs next.
//! Its `end` is the tag behind its last waiter. See the parent module.
//!
//! The number of requests ahead of a waiter is computed from sums over many flows. These sums use
//! their own units, so that they fit: [`SUM_UNIT`] for weights, and [`tag_in_sums`] for tags.

use std::hash::Hash;
use std::num::NonZeroU16;

use super::named_keys::{NamedKeys, Naming};
use super::{FairQueue, Flow, Tag, UNIT};

/// Weight of 1 in sums.
///
/// A key that waits at `n` gateways counts for `1 / n`, and each `n` up to 16 divides this number.
pub(super) const SUM_UNIT: u32 = 720_720;

/// Number of low bits of a tag that are left out in sums, so that sums fit.
const DROPPED_BITS: u32 = 40;

/// Cost of 1 at weight 1, in sums.
pub(super) const COST_IN_SUMS: u128 = (UNIT >> DROPPED_BITS) * SUM_UNIT as u128;

/// Converts a tag to the unit of sums.
pub(super) fn tag_in_sums(tag: Tag) -> u128 {
    tag >> DROPPED_BITS
}

impl<K> Flow<K> {
    /// Converts a cost to a difference of tags. It is exact: each weight divides [`UNIT`].
    pub(super) fn cost_in_tags(&self, cost: u32) -> Tag {
        UNIT / u128::from(self.weight) * u128::from(cost) * u128::from(self.gateways.get())
    }

    /// Returns the weight in sums: divided by the number of gateways, in units of [`SUM_UNIT`].
    pub(super) fn weight_in_sums(&self) -> u32 {
        let parts = SUM_UNIT * u32::from(self.weight);
        let gateways = u32::from(self.gateways.get());
        (parts + gateways / 2) / gateways
    }
}

impl<K: Hash + Eq + Clone, W> FairQueue<K, W> {
    /// Changes the weight of a key.
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
            // The waiters keep their costs. The result is exact: multiplied by the former weight,
            // `end - tag` is a multiple of `UNIT`, which each weight divides.
            flow.end = flow.tag + (flow.end - flow.tag) * before / u128::from(weight);
        });
    }

    /// Changes the number of gateways at which a key waits.
    fn set_gateways(&mut self, index: u32, gateways: NonZeroU16) {
        let known = self.flows.get(index).map(|flow| flow.gateways);
        let Some(before) = known.filter(|before| *before != gateways) else {
            return;
        };
        self.change(index, |flow| {
            flow.gateways = gateways;
            let (before, now) = (u128::from(before.get()), u128::from(gateways.get()));
            // Exact: `end - tag` is a multiple of `before`.
            flow.end = flow.tag + (flow.end - flow.tag) / before * now;
        });
    }

    /// Changes the weight or the gateways of a flow, and sorts it again.
    ///
    /// Takes the flow out of its sorted lines, applies `change`, and puts it back at its new place.
    fn change(&mut self, index: u32, change: impl FnOnce(&mut Flow<K>)) {
        let is_waiting = !self.flows[index].waiters.is_empty();
        let lines = if is_waiting {
            &mut self.ready
        } else {
            &mut self.resting
        };
        lines.remove(&mut self.flows, index);
        let flow = &mut self.flows[index];
        let (weight, end) = (flow.weight_in_sums(), flow.end);
        if !is_waiting {
            // Unused without waiters. It must not be below `tag`, which `change` subtracts.
            flow.end = flow.tag;
        }
        change(flow);
        if is_waiting {
            self.ends.remove(weight, end);
            self.ends.add(flow.weight_in_sums(), flow.end);
        }
        lines.push(&mut self.flows, index);
        self.update_head(index);
    }

    /// Starts to report the waiting keys to other gateways (to *name* them); `None` stops it.
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

    /// Returns the named keys; `None` if keys are not reported.
    pub(crate) fn named(&mut self) -> Option<&mut NamedKeys<K>> {
        self.named.as_deref_mut()
    }

    /// Records that the store has applied the last reported changes.
    ///
    /// A key that is not reported any more counts in full.
    pub(crate) fn record_applied(&mut self) {
        let unnamed = self.named.as_mut().map(|named| named.record_applied());
        for index in unnamed.unwrap_or_default() {
            self.set_gateways(index, NonZeroU16::MIN);
        }
    }

    /// Reports all keys again and counts them in full, because the store knows none of them.
    pub(crate) fn forget_reported(&mut self) {
        self.named().map(NamedKeys::forget_reported);
        self.count_in_full();
    }

    /// Reports all keys again and counts them in full, because the store has lost some of them.
    ///
    /// A key counts in full until the store reports its gateways again.
    pub(crate) fn report_again(&mut self) {
        self.named().map(NamedKeys::report_again);
        self.count_in_full();
    }

    /// Counts each waiting key as if it waited here only.
    fn count_in_full(&mut self) {
        let waiting = self.named.iter().flat_map(|named| named.waiting());
        for index in waiting.collect::<Vec<_>>() {
            self.set_gateways(index, NonZeroU16::MIN);
        }
    }

    /// Sets the number of gateways at which a key waits.
    ///
    /// With `n` gateways, its weight here is divided by `n`.
    pub(crate) fn set_gateways_of_key(&mut self, key: u64, gateways: NonZeroU16) {
        let named = self.named.as_mut();
        if let Some(index) = named.and_then(|named| named.set_gateways_of_key(key, gateways)) {
            self.set_gateways(index, gateways);
        }
    }
}
