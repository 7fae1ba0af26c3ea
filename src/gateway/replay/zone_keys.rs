//! The keys that a replayed zone remembers. A full zone evicts the least recently used key.

use config::{Zone, short_key};
use foldhash::fast::RandomState;
use lru::LruCache;

/// The keys that a zone remembers: at most `max_keys`. Long keys are stored in a short form.
pub(crate) struct ZoneKeys<S> {
    /// State of each key.
    known: LruCache<Box<[u8]>, S, RandomState>,
    max_keys: usize,
}

impl<S> ZoneKeys<S> {
    pub(crate) fn new(zone: &Zone) -> Self {
        Self {
            known: LruCache::unbounded_with_hasher(RandomState::default()),
            max_keys: zone.max_keys.get(),
        }
    }

    /// Returns the state of a key, without marking the key as used.
    pub(crate) fn peek(&self, key: &[u8]) -> Option<&S> {
        self.known.peek(&*short_key(key))
    }

    /// Returns the state of a key, to be changed, without marking the key as used.
    pub(crate) fn peek_mut(&mut self, key: &[u8]) -> Option<&mut S> {
        self.known.peek_mut(&*short_key(key))
    }

    /// Marks a key as used. Returns `false` if the zone is full and all its keys are busy.
    ///
    /// `is_busy`: returns whether a key has waiters. Such a key is not evicted. `new`: returns the
    /// state of a new key.
    pub(crate) fn remember(
        &mut self,
        key: &[u8],
        is_busy: impl Fn(&S) -> bool,
        new: impl FnOnce() -> S,
    ) -> bool {
        let key = &*short_key(key);
        if self.known.get(key).is_some() {
            return true;
        }
        let has_room = self.make_room(is_busy);
        if has_room {
            self.known.put(key.into(), new());
        }
        has_room
    }

    /// Makes room for one more key, as the gateway does.
    ///
    /// Evicts the least recently used key without waiters.
    fn make_room(&mut self, is_busy: impl Fn(&S) -> bool) -> bool {
        if self.known.len() < self.max_keys {
            return true;
        }
        for _ in 0..self.known.len() {
            match self.known.peek_lru() {
                Some((_, oldest)) if !is_busy(oldest) => {
                    return self.known.pop_lru().is_some();
                }
                Some((busy, _)) => {
                    // Counts as used last, so that the next key is examined.
                    let busy = busy.clone();
                    self.known.promote(&busy);
                }
                None => break,
            }
        }
        false
    }
}
