//! What newcomers prepay: the part of their first request's cost that is beyond 1.

use std::hash::Hash;

use super::weights::PARTS;
use super::{FairQueue, Tag, UNIT};

/// The resolution of the work time. It is so coarse that fractions of it can be compared exactly.
const WORK_STEP: Tag = UNIT / PARTS as Tag;

/// Rounds up to a whole step of the work time.
pub(super) fn next_step(tag: Tag) -> Tag {
    tag.div_ceil(WORK_STEP) * WORK_STEP
}

impl<K: Hash + Eq + Clone, W> FairQueue<K, W> {
    /// Advances the work time by a departure. `weights`: the sum of the counted weights of all keys that waited.
    pub(super) fn work_done(&mut self, cost: u32, weights: u64) {
        let parts = u128::from(PARTS);
        let steps = parts * parts * u128::from(cost) / u128::from(weights.max(1));
        self.work += steps * WORK_STEP;
        if self.ready.prepaid() == 0 {
            self.work = self.work.max(next_step(self.now));
        }
    }

    /// Returns to a flow in no line what it has prepaid: its last waiter has disconnected.
    pub(super) fn refund_prepaid(&mut self, index: u32) {
        let now = self.now;
        let flow = &mut self.flows[index];
        let prepaid = std::mem::take(&mut flow.prepaid);
        flow.tag = now.max(flow.tag - flow.span(prepaid));
    }

    /// Returns to a flow what it has prepaid beyond the cost of its first waiter, which may have changed.
    ///
    /// Its tag does not fall below that of the last departure.
    pub(super) fn limit_prepaid(&mut self, index: u32) {
        let now = self.now;
        let flow = &self.flows[index];
        let first = flow.waiters.first().and_then(|it| self.waiters.get(it));
        let prepaid = first.map_or(0, |first| flow.prepaid.min(first.cost - 1));
        if prepaid == flow.prepaid {
            return;
        }
        self.ready.remove(&mut self.flows, index);
        let flow = &mut self.flows[index];
        let (counted, end) = (flow.counted(), flow.end);
        let start = flow.tag - flow.span(flow.prepaid);
        flow.tag = now.max(start + flow.span(prepaid));
        flow.prepaid = prepaid;
        flow.end = end + flow.tag - start - flow.span(prepaid);
        let moved = flow.end;
        self.ready.push(&mut self.flows, index);
        self.ends.replace(counted, end, moved);
    }
}
