//! Eviction: forgets the least recently used key when the zone is full (`max_keys`).
//!
//! A *quiet* actor has no waiters, no requests in flight and no pending messages. Only the key of a
//! quiet actor, or a key without an actor, can be evicted.

use super::ZoneSupervisor;
use super::keys::State;
use super::sweep::{ACTORS_PER_CALL, MAX_AT_ONCE};

impl ZoneSupervisor {
    /// Forgets the least recently used key without waiters, as nginx does when a zone is full.
    ///
    /// Returns `false` if every key has waiters.
    pub(super) fn evict(&mut self) -> bool {
        let oldest = self.find_quiet_before_parked();
        let oldest = oldest.or_else(|| self.keys.oldest_parked());
        let Some(index) = oldest.or_else(|| self.find_oldest_quiet_actor()) else {
            return false;
        };
        if let Some(State::Active(evicted)) = self.remove(index) {
            evicted.end();
        }
        self.shard.metrics.evicted_lru.add(1);
        true
    }

    /// Returns a quiet actor that was used before all keys without an actor.
    ///
    /// Examines the [`ACTORS_PER_CALL`] least recently used actors. An actor that is not quiet then
    /// counts as used at the last use of the oldest key without an actor.
    fn find_quiet_before_parked(&mut self) -> Option<u32> {
        let oldest_parked = self.keys[self.keys.oldest_parked()?].used;
        for _ in 0..ACTORS_PER_CALL {
            let index = self.keys.oldest_active()?;
            let oldest = &self.keys[index];
            if oldest.used >= oldest_parked {
                return None;
            }
            if oldest.active()?.snapshot.is_quiet() {
                return Some(index);
            }
            self.keys.touch(index, oldest_parked);
        }
        None
    }

    /// Returns the least recently used quiet actor.
    fn find_oldest_quiet_actor(&mut self) -> Option<u32> {
        let active = self.keys.active();
        // Do not examine every actor: many new keys in a zone full of waiters must stay cheap.
        if self.shard.busy_keys.get() >= active {
            return None;
        }
        for _ in 0..active {
            let index = self.keys.oldest_active()?;
            let oldest = &self.keys[index];
            if oldest.active()?.snapshot.is_quiet() {
                return Some(index);
            }
            let used = oldest.used;
            self.keys.touch(index, used);
        }
        None
    }

    /// Evicts keys down to `max_keys`. Returns whether nothing is left to evict now.
    ///
    /// Needed if `max_keys` was lowered while more keys than that had waiters.
    pub(super) fn shrink(&mut self) -> bool {
        let max_keys = self.tuning.max_keys.get();
        // Ends at the first round in which there are few enough keys, or all have waiters.
        (0..MAX_AT_ONCE).any(|_| self.keys.len() <= max_keys || !self.evict())
    }
}
