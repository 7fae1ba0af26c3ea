//! Counts at several moments, to tell what was counted since.

use std::borrow::Borrow;
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::mem;

/// Seconds between two steps.
const INTERVAL: u64 = 10;

/// All counts so far, of up to `max_keys` keys, at each of the last `max_kept` steps.
pub(super) struct Steps<K, C> {
    seconds: u64,
    max_keys: usize,
    max_kept: usize,
    counts: HashMap<K, VecDeque<C>>,
}

impl<K: Eq + Hash, C> Steps<K, C> {
    pub(super) fn new(max_keys: usize, max_kept: usize) -> Self {
        Self {
            seconds: 0,
            max_keys,
            max_kept,
            counts: HashMap::new(),
        }
    }

    /// Called each second. Keeps the counts of now where a step is due.
    pub(super) fn tick<I: Iterator<Item = (K, C)>>(&mut self, now: impl FnOnce() -> I) {
        if self.seconds.is_multiple_of(INTERVAL) {
            self.keep(now());
        }
        self.seconds += 1;
    }

    /// Keeps a step. A key that is not counted any more is forgotten.
    pub(super) fn keep(&mut self, now: impl Iterator<Item = (K, C)>) {
        let mut before = mem::take(&mut self.counts);
        for (key, counts) in now {
            // Several routes may have one name.
            if self.counts.len() >= self.max_keys || self.counts.contains_key(&key) {
                continue;
            }
            let mut steps = before.remove(&key).unwrap_or_default();
            steps.push_back(counts);
            if steps.len() > self.max_kept {
                steps.pop_front();
            }
            self.counts.insert(key, steps);
        }
    }

    /// The steps of a key, the oldest first.
    pub(super) fn of<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<&VecDeque<C>>
    where
        K: Borrow<Q>,
    {
        self.counts.get(key)
    }

    /// Number of keys.
    pub(super) fn len(&self) -> usize {
        self.counts.len()
    }
}
