use super::weights::{ROUGH_UNIT, rough};
use super::{Tag, UNIT};

/// Number of slots. With more whole costs than this between the first and the last end, a slot
/// stands for two of them, or four, and so on.
const SLOTS: usize = 1024;

/// Where the flows of a queue end: sums over all ends up to a tag in O(log n).
///
/// A Fenwick tree over a ring of slots, each for the ends of one whole cost. All ends lie between
/// the present tag and `SLOTS` slots later.
#[derive(Debug, Default)]
pub(super) struct Ends {
    /// Empty until the first flow.
    slots: Vec<Sums>,
    tree: Vec<Sums>,
    /// A slot has the ends of two to this power whole costs.
    shift: u32,
    /// No end is in a slot before this one.
    base: u128,
}

/// Sums over flows. They wrap around: only differences, which are small, are used.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    flows: u128,
    weights: u128,
    /// Each flow's weight times its end, as far as ends count in sums.
    weighted: u128,
}

impl Sums {
    fn of(weight: u32, end: Tag) -> Self {
        let weight = u128::from(weight);
        Self {
            flows: 1,
            weights: weight,
            weighted: weight.wrapping_mul(rough(end)),
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            flows: self.flows.wrapping_add(other.flows),
            weights: self.weights.wrapping_add(other.weights),
            weighted: self.weighted.wrapping_add(other.weighted),
        }
    }

    fn minus(self, other: Self) -> Self {
        Self {
            flows: self.flows.wrapping_sub(other.flows),
            weights: self.weights.wrapping_sub(other.weights),
            weighted: self.weighted.wrapping_sub(other.weighted),
        }
    }
}

impl Ends {
    /// Adds a flow that ends at `end`.
    pub fn add(&mut self, weight: u32, end: Tag) {
        if self.slots.is_empty() {
            self.slots = vec![Sums::default(); SLOTS];
            self.tree = vec![Sums::default(); SLOTS];
        }
        while self.slot(end).saturating_sub(self.base) >= SLOTS as u128 {
            self.coarsen();
        }
        self.change(end, |sums| sums.plus(Sums::of(weight, end)));
    }

    /// Removes a flow that ends at `end`.
    pub(super) fn remove(&mut self, weight: u32, end: Tag) {
        self.change(end, |sums| sums.minus(Sums::of(weight, end)));
    }

    /// Moves the end of a flow.
    pub(super) fn replace(&mut self, weight: u32, from: Tag, to: Tag) {
        self.remove(weight, from);
        self.add(weight, to);
    }

    /// From now on no flow ends before `tag`.
    pub(super) fn advance(&mut self, tag: Tag) {
        self.base = self.slot(tag);
    }

    /// No flow is left: the next ones end at `tag` or later.
    pub(super) fn restart(&mut self, tag: Tag) {
        self.shift = 0;
        self.base = self.slot(tag);
    }

    /// The whole costs, in sums, that the flows which end by `tag` would have had until then if
    /// they had not ended, and the one at `tag` itself.
    pub(super) fn through(&self, tag: Tag) -> u128 {
        let last = self.slot(tag).min(self.base + SLOTS as u128 - 1);
        if self.slots.is_empty() || last < self.base {
            return 0;
        }
        let (first, last) = (ring(self.base), ring(last));
        let before = self.sum(first);
        let sums = if first <= last {
            self.sum(last + 1).minus(before)
        } else {
            self.sum(SLOTS).minus(before).plus(self.sum(last + 1))
        };
        let spans = rough(tag).wrapping_mul(sums.weights);
        let spans = spans.wrapping_sub(sums.weighted);
        spans.wrapping_add(sums.flows.wrapping_mul(ROUGH_UNIT))
    }

    fn slot(&self, tag: Tag) -> u128 {
        (tag / UNIT) >> self.shift
    }

    fn change(&mut self, end: Tag, change: impl Fn(Sums) -> Sums) {
        let slot = ring(self.slot(end));
        self.slots[slot] = change(self.slots[slot]);
        let mut node = slot + 1;
        while node <= SLOTS {
            self.tree[node - 1] = change(self.tree[node - 1]);
            node += node & node.wrapping_neg();
        }
    }

    /// The sums of the slots before `slot`.
    fn sum(&self, slot: usize) -> Sums {
        let (mut sums, mut node) = (Sums::default(), slot);
        while node > 0 {
            sums = sums.plus(self.tree[node - 1]);
            node -= node & node.wrapping_neg();
        }
        sums
    }

    /// Doubles what a slot stands for.
    fn coarsen(&mut self) {
        let fine = std::mem::replace(&mut self.slots, vec![Sums::default(); SLOTS]);
        for slot in self.base..self.base + SLOTS as u128 {
            let coarse = &mut self.slots[ring(slot >> 1)];
            *coarse = coarse.plus(fine[ring(slot)]);
        }
        self.shift += 1;
        self.base >>= 1;
        self.tree.clone_from(&self.slots);
        for node in 1..=SLOTS {
            let parent = node + (node & node.wrapping_neg());
            if parent <= SLOTS {
                self.tree[parent - 1] = self.tree[parent - 1].plus(self.tree[node - 1]);
            }
        }
    }
}

/// The place of a slot in the ring.
fn ring(slot: u128) -> usize {
    usize::try_from(slot % SLOTS as u128).unwrap_or_default()
}
