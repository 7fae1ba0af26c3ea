//! The keys of a log and their requests, in bounded memory.

use foldhash::fast::RandomState;
use lru::LruCache;

use crate::shown;

/// Number of forgotten keys whose requests are remembered.
const REMEMBERED: usize = 256;

/// Keys in bounded memory.
///
/// If there are too many, the least recently used one is forgotten. If it comes again, it counts as
/// another key.
pub(super) struct Keys {
    slots: LruCache<Box<[u8]>, u32, RandomState>,
    /// Requests of the key in each slot.
    requests: Vec<u64>,
    /// Maximum number of keys.
    most: usize,
    forgotten: u64,
    /// The forgotten keys with the most requests.
    heaviest: Vec<HeavyKey>,
}

/// A key, and the number of its requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HeavyKey {
    /// The key, unescaped.
    key: Box<[u8]>,
    pub(super) requests: u64,
    /// Its slot; `None` if it was forgotten.
    pub(super) slot: Option<u32>,
}

impl HeavyKey {
    /// The key as it is shown: escaped, and its start if it is long.
    pub(super) fn shown(&self) -> String {
        shown::key(&self.key)
    }
}

impl Keys {
    pub(super) fn new(most: usize) -> Self {
        Self {
            slots: LruCache::unbounded_with_hasher(RandomState::default()),
            requests: Vec::new(),
            most: most.max(1),
            forgotten: 0,
            heaviest: Vec::new(),
        }
    }

    /// The slot of a key, which becomes the most recently used one.
    pub(super) fn slot(&mut self, key: &[u8]) -> u32 {
        if let Some(slot) = self.slots.get(key) {
            return *slot;
        }
        let slot = if self.slots.len() < self.most {
            self.requests.push(0);
            u32::try_from(self.requests.len() - 1).unwrap_or(u32::MAX)
        } else {
            self.forget_one()
        };
        self.slots.put(key.into(), slot);
        slot
    }

    fn forget_one(&mut self) -> u32 {
        let Some((key, slot)) = self.slots.pop_lru() else {
            return 0;
        };
        self.forgotten += 1;
        if let Some(requests) = self.requests.get_mut(slot as usize) {
            self.heaviest.push(HeavyKey {
                key,
                requests: std::mem::take(requests),
                slot: None,
            });
        }
        if self.heaviest.len() >= 2 * REMEMBERED {
            keep_heaviest(&mut self.heaviest, REMEMBERED);
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

    /// Number of slots.
    pub(super) fn slots(&self) -> usize {
        self.requests.len()
    }

    /// Number of keys. One that was forgotten and came again counts each time.
    pub(super) fn number(&self) -> u64 {
        self.slots.len() as u64 + self.forgotten
    }

    /// How many times a key was forgotten.
    pub(super) fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// The keys with the most requests, the first of them first.
    pub(super) fn heaviest(&self, count: usize) -> Vec<HeavyKey> {
        let mut all = self.heaviest.clone();
        for (key, slot) in &self.slots {
            all.push(HeavyKey {
                key: key.clone(),
                requests: self.requests.get(*slot as usize).copied().unwrap_or(0),
                slot: Some(*slot),
            });
            if all.len() >= 2 * REMEMBERED {
                keep_heaviest(&mut all, REMEMBERED);
            }
        }
        keep_heaviest(&mut all, count);
        all
    }
}

/// Keeps the `count` keys with the most requests, the first of them first.
fn keep_heaviest(all: &mut Vec<HeavyKey>, count: usize) {
    all.sort_by(|one, other| {
        let by_requests = other.requests.cmp(&one.requests);
        by_requests.then_with(|| one.key.cmp(&other.key))
    });
    all.truncate(count);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heavy_key_is_remembered_after_it_was_forgotten() {
        let mut keys = Keys::new(3);
        for nth in 0..1_000u64 {
            let times = if nth == 17 { 9 } else { 1 };
            let slot = keys.slot(nth.to_string().as_bytes());
            for time in 0..times {
                assert_eq!(keys.count(slot), time == 0);
            }
        }
        assert_eq!(
            (keys.slots(), keys.number(), keys.forgotten()),
            (3, 1_000, 997)
        );
        let heaviest = keys.heaviest(2);
        let first = (&*heaviest[0].key, heaviest[0].requests, heaviest[0].slot);
        assert_eq!(first, (&b"17"[..], 9, None));
        assert_eq!((heaviest.len(), heaviest[1].requests), (2, 1));
    }
}
