//! Space-Saving: finds the heaviest keys of one stream of events with a fixed number of counters.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use crate::stable_hash::MixingHasher;

/// Number of counters of one summary.
pub(super) const COUNTERS: usize = 64;

/// Heaviest keys of a stream of weighted events, in bounded memory.
///
/// This is Space-Saving (Metwally, Agrawal, El Abbadi: Efficient computation of frequent and top-k
/// elements in data streams, 2005). N is the sum of all weights. Each key with more than N /
/// [`COUNTERS`] has a counter. A count is never too low, and too high by at most `floor`, which is
/// at most N / [`COUNTERS`].
///
/// A key is identified by its hash: two keys with the same 64 bits count as one.
#[derive(Debug)]
pub(super) struct SpaceSaving<K> {
    /// Index in `counters` of each hash, while events are recorded here.
    ///
    /// The hashes are keyed with a secret.
    index: HashMap<u64, usize, BuildHasherDefault<MixingHasher>>,
    counters: Vec<Counter<K>>,
    /// Sum of all weights.
    pub(super) total: u64,
    /// Largest error of a count, and largest sum that a key without a counter may have.
    ///
    /// Once a counter was replaced, no counter has a lower count.
    pub(super) floor: u64,
    /// Index at which the next search for a counter to replace begins.
    next: usize,
}

#[derive(Debug)]
struct Counter<K> {
    hash: u64,
    count: u64,
    key: K,
}

impl<K> Default for SpaceSaving<K> {
    fn default() -> Self {
        Self {
            index: HashMap::default(),
            counters: Vec::new(),
            total: 0,
            floor: 0,
            next: 0,
        }
    }
}

impl<K> SpaceSaving<K> {
    /// Adds to the count of a key, and returns the stored key.
    ///
    /// `key` is called if the key has no counter yet.
    pub(super) fn record(&mut self, hash: u64, key: impl FnOnce() -> K, weight: u64) -> &K {
        self.total = self.total.saturating_add(weight);
        let index = match self.index.get(&hash).copied() {
            Some(index) => {
                let count = &mut self.counters[index].count;
                *count = count.saturating_add(weight);
                index
            }
            None if self.counters.len() < COUNTERS => {
                self.index.insert(hash, self.counters.len());
                self.counters.push(Counter {
                    hash,
                    count: weight,
                    key: key(),
                });
                self.counters.len() - 1
            }
            None => {
                let index = self.least();
                let old = &self.counters[index];
                self.index.remove(&old.hash);
                self.index.insert(hash, index);
                self.floor = old.count;
                self.next = index + 1;
                self.counters[index] = Counter {
                    hash,
                    count: self.floor.saturating_add(weight),
                    key: key(),
                };
                index
            }
        };
        &self.counters[index].key
    }

    /// Drops counters without information, because no more events are recorded here.
    ///
    /// Once counters were replaced, a count of at most N / [`COUNTERS`] may belong to any key.
    pub(super) fn close(&mut self) {
        if self.floor > 0 {
            let bound = self.total / COUNTERS as u64;
            let light = self.counters.iter().map(|counter| counter.count);
            let heaviest_dropped = light.filter(|count| *count <= bound).max();
            self.floor = self.floor.max(heaviest_dropped.unwrap_or_default());
            self.counters.retain(|counter| counter.count > bound);
        }
        self.counters.shrink_to_fit();
        self.index = HashMap::default();
    }

    /// Returns all counters: hash, key and count.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &K, u64)> {
        let counters = self.counters.iter();
        counters.map(|Counter { hash, count, key }| (*hash, key, *count))
    }

    /// Returns the count of a key, or its upper bound.
    pub(super) fn count(&self, hash: u64) -> u64 {
        let counter = self.counters.iter().find(|it| it.hash == hash);
        counter.map_or(self.floor, |it| it.count)
    }

    /// Returns the index of a counter with the lowest count.
    ///
    /// Searches from the counter behind the last replaced one on. In a flood of new keys, the next
    /// counter with the lowest count is near.
    fn least(&self) -> usize {
        let (mut least, mut lowest) = (0, u64::MAX);
        let (before, behind) = (0..self.next, self.next..self.counters.len());
        for index in behind.chain(before) {
            let count = self.counters[index].count;
            if count < lowest {
                (least, lowest) = (index, count);
                // No count is below the floor.
                if count <= self.floor {
                    break;
                }
            }
        }
        least
    }
}
