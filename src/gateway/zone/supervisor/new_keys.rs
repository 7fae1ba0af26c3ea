//! Bounds how many unknown keys get buckets of their own.

use limit::Moment;

use super::super::join::NEW_KEYS;
use super::ZoneSupervisor;
use crate::zone::supervisor::tuning::NewKeys;

impl ZoneSupervisor {
    /// Whether a request of this key must share the bucket of [`NEW_KEYS`]. If not, and the key is
    /// unknown, it takes a new key from the zone's budget.
    pub(super) fn is_one_too_many(&self, key: &[u8], now: Moment) -> bool {
        let bounded = self.bound_of(key);
        bounded.is_some_and(|NewKeys { rate, budget }| !budget.take(*rate, now))
    }

    /// Whether a request of this key would have to share the bucket of [`NEW_KEYS`].
    pub(super) fn would_be_one_too_many(&self, key: &[u8], now: Moment) -> bool {
        let bounded = self.bound_of(key);
        bounded.is_some_and(|NewKeys { rate, budget }| !budget.has_room(*rate, now))
    }

    /// What bounds the new keys, if this is one.
    fn bound_of(&self, key: &[u8]) -> Option<&NewKeys> {
        let bound = self.tuning.new_keys.as_ref()?;
        let is_new = key != NEW_KEYS
            && self.keys.find(key).is_none()
            && self.tuning.plans.index_of(key).is_none();
        is_new.then_some(bound)
    }
}
