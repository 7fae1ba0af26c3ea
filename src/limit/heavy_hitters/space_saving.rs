//! The heaviest keys of one stream.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use crate::stable_hash::MixingHasher;

/// Counters of one summary.
pub(super) const COUNTERS: usize = 64;

/// The heaviest keys of a stream of weighted events, in bounded memory.
///
/// This is Space-Saving (Metwally, Agrawal, El Abbadi: Efficient computation of frequent and top-k
/// elements in data streams, 2005). With N as the sum of all weights, each key with more than
/// N / [`COUNTERS`] has a counter. A count is never too low, and too high by at most `floor`, which
/// is at most N / [`COUNTERS`].
///
/// A key is known by its hash: two keys with the same 64 bits count as one.
#[derive(Debug)]
pub(super) struct SpaceSaving<K> {
    /// Where in `counters` each hash is, while events are recorded here. The hashes have a secret.
    index: HashMap<u64, usize, BuildHasherDefault<MixingHasher>>,
    counters: Vec<Counter<K>>,
    /// The sum of all weights.
    total: u64,
    /// The most that a key without a counter may have. No counter has less once one was replaced.
    floor: u64,
    /// Where the next search for a counter to replace begins.
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
    /// Adds to the count of a key. `key` is called if the key has no counter yet.
    ///
    /// Returns the key as it is kept.
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

    /// Drops the counters that tell nothing, because no more events are recorded here.
    ///
    /// A count of at most N / [`COUNTERS`] may belong to any key once counters were replaced.
    pub(super) fn close(&mut self) {
        if self.floor > 0 {
            let bound = self.total / COUNTERS as u64;
            let light = self.counters.iter().map(|counter| counter.count);
            let light = light.filter(|count| *count <= bound).max();
            self.floor = self.floor.max(light.unwrap_or_default());
            self.counters.retain(|counter| counter.count > bound);
        }
        self.counters.shrink_to_fit();
        self.index = HashMap::default();
    }

    /// All counters: hash, key and count.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &K, u64)> {
        let counters = self.counters.iter();
        counters.map(|Counter { hash, count, key }| (*hash, key, *count))
    }

    /// The count of a key, or the most that it may have.
    pub(super) fn count(&self, hash: u64) -> u64 {
        let counter = self.counters.iter().find(|it| it.hash == hash);
        counter.map_or(self.floor, |it| it.count)
    }

    /// The sum of all weights.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// The most by which a count may be too high, and the most that a key without a counter has.
    pub(super) fn floor(&self) -> u64 {
        self.floor
    }

    /// A counter with the lowest count.
    ///
    /// In a flood of new keys the next one that has the last lowest count is near.
    fn least(&self) -> usize {
        let (mut least, mut lowest) = (0, u64::MAX);
        let (before, behind) = (0..self.next, self.next..self.counters.len());
        for index in behind.chain(before) {
            let count = self.counters[index].count;
            if count < lowest {
                (least, lowest) = (index, count);
                if count <= self.floor {
                    break;
                }
            }
        }
        least
    }
}
