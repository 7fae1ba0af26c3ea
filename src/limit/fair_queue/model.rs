//! Naive model of the fair queue: fractions, and a linear search for everything.

use std::cmp::Ordering;

use super::weights::SUM_UNIT;

/// Fraction of whole numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fraction(u128, u128);

impl Fraction {
    const ZERO: Self = Self(0, 1);

    fn plus(self, cost: u32, weight: u32) -> Self {
        let (cost, weight) = (u128::from(cost), u128::from(weight));
        let (mut a, mut b) = (self.0 * weight + cost * self.1, self.1 * weight);
        let sum = (a, b);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        Self(sum.0 / a, sum.1 / a)
    }

    fn min(self, other: Self) -> Self {
        if self.compare(other) == Ordering::Greater {
            other
        } else {
            self
        }
    }

    fn max(self, other: Self) -> Self {
        if self.compare(other) == Ordering::Less {
            other
        } else {
            self
        }
    }

    fn compare(self, other: Self) -> Ordering {
        (self.0 * other.1).cmp(&(other.0 * self.1))
    }
}

#[derive(Clone, Debug)]
struct Key {
    name: u8,
    weight: u32,
    /// Tag of the first waiter or of the next one, and the number of its setting.
    tag: Fraction,
    set: u64,
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
    /// In parts of a whole cost at weight 1.
    work_time: u128,
    sets: u64,
}

impl Model {
    pub(crate) fn new() -> Self {
        Self {
            keys: Vec::new(),
            now: Fraction::ZERO,
            newcomers: Fraction::ZERO,
            work_time: 0,
            sets: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.keys.iter().map(|key| key.waiters.len()).sum()
    }

    pub(crate) fn join(&mut self, name: u8, weight: u32, cost: u32, number: u64) {
        self.sets += 1;
        let is_costly = cost > 1 && self.len() > 0;
        let tag = if is_costly {
            let start = Fraction(self.work_time, SUM_UNIT.into()).min(self.now.plus(cost, weight));
            start.plus(cost - 1, weight).max(self.now)
        } else {
            self.newcomers.min(self.now.plus(1, weight))
        };
        let set = self.sets;
        let known = self.keys.iter().position(|key| key.name == name);
        let is_new = known.is_none();
        let index = known.unwrap_or_else(|| {
            self.keys.push(Key {
                name,
                weight,
                tag,
                set,
                is_costly: false,
                waiters: Vec::new(),
            });
            self.keys.len() - 1
        });
        let key = &mut self.keys[index];
        if key.waiters.is_empty() {
            key.weight = weight;
            if is_new || key.tag.compare(self.now) == Ordering::Less {
                (key.tag, key.set, key.is_costly) = (tag, set, is_costly);
            }
        }
        key.waiters.push((number, cost));
    }

    pub(crate) fn take(&mut self) -> Option<(u8, u64)> {
        let waiting = self.keys.iter().filter(|key| !key.waiters.is_empty());
        let weights: u32 = waiting.map(|key| key.weight).sum();
        let waiting = self.keys.iter_mut().filter(|key| !key.waiters.is_empty());
        let key = waiting.min_by(|one, other| {
            let by_tag = one.tag.compare(other.tag);
            by_tag.then(one.set.cmp(&other.set))
        })?;
        let (number, cost) = key.waiters.remove(0);
        key.is_costly = false;
        let (name, tag, end) = (key.name, key.tag, key.tag.plus(cost, key.weight));
        self.now = tag;
        self.sets += 1;
        (key.tag, key.set) = (end, self.sets);
        let others = self.keys.iter().filter(|key| key.name != name);
        let heads = others.filter_map(|key| {
            let (_, cost) = key.waiters.first()?;
            Some(key.tag.plus(*cost, key.weight))
        });
        let reached = heads.reduce(Fraction::min).map_or(tag, |it| it.min(end));
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
