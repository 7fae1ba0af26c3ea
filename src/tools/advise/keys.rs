//! The keys of a log and the numbers of their requests, in bounded memory.
//!
//! Each remembered key has a slot: its number, from 0. The slot of a forgotten key is used again.

use std::cmp::Reverse;

use foldhash::fast::RandomState;
use lru::LruCache;

use crate::display;

/// The keys of a log. Above a maximum number of keys, the least recently used one is forgotten.
///
/// A forgotten key that appears again counts as a new key.
pub(super) struct Keys {
    /// Slot of each remembered key.
    slots: LruCache<Box<[u8]>, u32, RandomState>,
    /// Number of requests of the key in each slot.
    requests: Vec<u64>,
    /// Maximum number of remembered keys.
    capacity: usize,
    /// Number of times that a key was forgotten.
    pub(super) forgotten: u64,
}

/// A key, with the number of its requests.
pub(super) struct HeavyKey {
    /// The key, escaped, and truncated if it is long.
    pub(super) shown: String,
    pub(super) requests: u64,
    pub(super) slot: u32,
}

impl Keys {
    pub(super) fn new(max_keys: usize) -> Self {
        Self {
            slots: LruCache::unbounded_with_hasher(RandomState::default()),
            requests: Vec::new(),
            capacity: max_keys.max(1),
            forgotten: 0,
        }
    }

    /// Returns the slot of a key, and marks the key as the most recently used. Adds a new key.
    pub(super) fn find_or_add(&mut self, key: &[u8]) -> u32 {
        if let Some(slot) = self.slots.get(key) {
            return *slot;
        }
        let slot = if self.slots.len() < self.capacity {
            self.requests.push(0);
            u32::try_from(self.requests.len() - 1).unwrap_or(u32::MAX)
        } else {
            self.forget_least_recent()
        };
        self.slots.put(key.into(), slot);
        slot
    }

    /// Forgets the least recently used key. Returns its slot for reuse.
    fn forget_least_recent(&mut self) -> u32 {
        // There is a key: the maximum is at least 1.
        let Some((_, slot)) = self.slots.pop_lru() else {
            return 0;
        };
        self.forgotten += 1;
        if let Some(requests) = self.requests.get_mut(slot as usize) {
            *requests = 0;
        }
        slot
    }

    /// Counts a request of the key in `slot`. Returns whether it is the key's first request there.
    pub(super) fn count(&mut self, slot: u32) -> bool {
        let Some(requests) = self.requests.get_mut(slot as usize) else {
            return false;
        };
        *requests += 1;
        *requests == 1
    }

    /// Returns the number of slots.
    pub(super) fn slot_count(&self) -> usize {
        self.requests.len()
    }

    /// Returns the number of keys. A key that was forgotten and appeared again counts each time.
    pub(super) fn key_count(&self) -> u64 {
        self.slots.len() as u64 + self.forgotten
    }

    /// Returns the remembered keys with the most requests, the busiest first.
    pub(super) fn heaviest(&self, count: usize) -> Vec<HeavyKey> {
        let requests = |slot: u32| self.requests.get(slot as usize).copied().unwrap_or(0);
        let mut all: Vec<_> = self.slots.iter().collect();
        all.sort_by_key(|(key, slot)| (Reverse(requests(**slot)), *key));
        let heaviest = all.into_iter().take(count);
        let heaviest = heaviest.map(|(key, slot)| HeavyKey {
            shown: display::key(key),
            requests: requests(*slot),
            slot: *slot,
        });
        heaviest.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_key_is_forgotten_for_another() {
        let mut keys = Keys::new(3);
        for nth in 0..1_000u64 {
            let slot = keys.find_or_add(b"heavy");
            assert_eq!(keys.count(slot), nth == 0);
            let slot = keys.find_or_add(nth.to_string().as_bytes());
            assert!(keys.count(slot));
        }
        assert_eq!(
            (keys.slot_count(), keys.key_count(), keys.forgotten),
            (3, 1_001, 998)
        );
        let heaviest = keys.heaviest(2);
        assert_eq!(
            (&*heaviest[0].shown, heaviest[0].requests),
            ("heavy", 1_000)
        );
        assert_eq!((heaviest.len(), heaviest[1].requests), (2, 1));
    }
}
