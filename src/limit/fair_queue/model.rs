//! Naive model of the fair queue: fractions, and a linear search for everything.
//!
//! A *tag* is an instant in the order of departures: the smallest departs next, and of equal tags
//! the one that was set first. `now`, `newcomers` and `work_time` are `v`, `u` and `w` of the
//! parent module's rules.

use std::cmp::Ordering;

use super::weights::SUM_UNIT;

/// Fraction of whole numbers: numerator and denominator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fraction(u128, u128);

impl Fraction {
    const ZERO: Self = Self(0, 1);

    /// Returns `self + cost / weight`, in lowest terms.
    fn plus(self, cost: u32, weight: u32) -> Self {
        let (cost, weight) = (u128::from(cost), u128::from(weight));
        let sum = (self.0 * weight + cost * self.1, self.1 * weight);
        // Euclid's algorithm.
        let (mut divisor, mut rest) = sum;
        while rest != 0 {
            (divisor, rest) = (rest, divisor % rest);
        }
        Self(sum.0 / divisor, sum.1 / divisor)
    }
}

impl Ord for Fraction {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.0 * other.1).cmp(&(other.0 * self.1))
    }
}

impl PartialOrd for Fraction {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[derive(Clone, Debug)]
struct Key {
    name: u8,
    weight: u32,
    /// Tag of the first waiter; without waiters, the end of the last departure.
    tag: Fraction,
    /// Value of `tag_count` when the tag was set.
    tag_number: u64,
    /// Whether the tag was set by the work time, and no departure came since.
    is_costly: bool,
    /// Number and cost of each waiter.
    waiters: Vec<(u64, u32)>,
}

/// Naive fair queue.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    keys: Vec<Key>,
    now: Fraction,
    newcomers: Fraction,
    /// In units of 1 / [`SUM_UNIT`] of a cost of 1 at weight 1.
    work_time: u128,
    /// Number of times that a tag was set.
    tag_count: u64,
}

impl Model {
    pub(crate) fn new() -> Self {
        Self {
            keys: Vec::new(),
            now: Fraction::ZERO,
            newcomers: Fraction::ZERO,
            work_time: 0,
            tag_count: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.keys.iter().map(|key| key.waiters.len()).sum()
    }

    /// Adds the waiter `number` of the key `name`.
    pub(crate) fn join(&mut self, name: u8, weight: u32, cost: u32, number: u64) {
        self.tag_count += 1;
        let is_costly = cost > 1 && self.len() > 0;
        let tag = if is_costly {
            let start = Fraction(self.work_time, SUM_UNIT.into()).min(self.now.plus(cost, weight));
            start.plus(cost - 1, weight).max(self.now)
        } else {
            self.newcomers.min(self.now.plus(1, weight))
        };
        let tag_number = self.tag_count;
        let newcomer = Key {
            name,
            weight,
            tag,
            tag_number,
            is_costly,
            waiters: Vec::new(),
        };
        let known = self.keys.iter().position(|key| key.name == name);
        let index = known.unwrap_or(self.keys.len());
        if known.is_none() {
            self.keys.push(newcomer);
        } else if self.keys[index].waiters.is_empty() {
            self.keys[index].weight = weight;
            if self.keys[index].tag < self.now {
                self.keys[index] = newcomer;
            }
        }
        self.keys[index].waiters.push((number, cost));
    }

    /// Removes the waiter that departs next. Returns its key and its number.
    pub(crate) fn take(&mut self) -> Option<(u8, u64)> {
        let waiting = self.keys.iter().filter(|key| !key.waiters.is_empty());
        let weights: u32 = waiting.map(|key| key.weight).sum();
        let waiting = self.keys.iter_mut().filter(|key| !key.waiters.is_empty());
        let key = waiting.min_by_key(|key| (key.tag, key.tag_number))?;
        let (number, cost) = key.waiters.remove(0);
        key.is_costly = false;
        let (name, tag, end) = (key.name, key.tag, key.tag.plus(cost, key.weight));
        self.now = tag;
        self.tag_count += 1;
        (key.tag, key.tag_number) = (end, self.tag_count);
        let others = self.keys.iter().filter(|key| key.name != name);
        let heads = others.filter_map(|key| {
            let (_, cost) = key.waiters.first()?;
            Some(key.tag.plus(*cost, key.weight))
        });
        let reached = heads.min().map_or(tag, |first| first.min(end));
        self.newcomers = self.newcomers.max(reached);
        let now = (self.now.0 * u128::from(SUM_UNIT)).div_ceil(self.now.1);
        if self.len() == 0 {
            self.work_time = now;
        } else {
            self.work_time += u128::from(SUM_UNIT) * u128::from(cost) / u128::from(weights);
            let is_costly = |key: &Key| key.is_costly && !key.waiters.is_empty();
            if !self.keys.iter().any(is_costly) {
                self.work_time = self.work_time.max(now);
            }
        }
        Some((name, number))
    }

    /// Charges a request that departs at once: it joins and is taken.
    pub(crate) fn depart(&mut self, name: u8, weight: u32, cost: u32) {
        assert_eq!(self.len(), 0);
        self.join(name, weight, cost, u64::MAX);
        self.take();
    }

    /// Removes a waiter. Returns whether it waited.
    pub(crate) fn leave(&mut self, number: u64) -> bool {
        self.keys.iter_mut().any(|key| {
            let before = key.waiters.len();
            key.waiters.retain(|waiter| waiter.0 != number);
            key.is_costly &= !key.waiters.is_empty();
            key.waiters.len() < before
        })
    }

    /// Forgets everything.
    pub(crate) fn restart(&mut self) {
        assert_eq!(self.len(), 0);
        *self = Self::new();
    }

    /// Returns the number of waiters that depart before a new request of `name` would.
    pub(crate) fn ahead_of_new(&self, name: u8, weight: u32) -> usize {
        let mut copy = self.clone();
        copy.join(name, weight, 1, u64::MAX);
        let order = std::iter::from_fn(|| copy.take());
        order.take_while(|left| left.1 != u64::MAX).count()
    }
}
