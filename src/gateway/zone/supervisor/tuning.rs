//! Settings of a supervisor, and the bound of its new keys.

use std::num::NonZeroUsize;
use std::sync::Arc;

use limit::{Moment, NewKeyBudget, Rate};

use super::super::join::NEW_KEYS;
use super::super::overrides::Overrides;
use super::super::store_link::Sharing;
use super::ZoneSupervisor;

/// Settings of a supervisor. They can change while it runs.
#[derive(Clone)]
pub struct Tuning {
    /// Settings of the zone. The algorithm never changes.
    pub zone: Arc<config::Zone>,
    /// Rate of each key without a plan: that of the zone, or its override.
    pub rate: Rate,
    /// Upper bound of the keys that this supervisor may remember.
    pub max_keys: NonZeroUsize,
    /// Budget for new keys that all supervisors of the zone share.
    pub new_keys: Arc<NewKeyBudget>,
    /// Overrides in force.
    pub overrides: Arc<Overrides>,
    /// Upper bound of the arrivals kept for a replay. Never changes.
    pub most_arrivals: usize,
    /// Set for a zone that is kept in a store.
    pub(in crate::zone) sharing: Option<Sharing>,
}

impl ZoneSupervisor {
    /// Returns whether a request of this key must use the bucket of [`NEW_KEYS`].
    ///
    /// If not, and the key is unknown, takes a new key from the zone's budget.
    pub(super) fn exceeds_new_keys(&self, key: &[u8], now: Moment) -> bool {
        let bound = self.bound_of(key);
        bound.is_some_and(|rate| !self.tuning.new_keys.take(rate, now))
    }

    /// Returns whether a request of this key would have to use the bucket of [`NEW_KEYS`].
    pub(super) fn would_exceed_new_keys(&self, key: &[u8], now: Moment) -> bool {
        let bound = self.bound_of(key);
        bound.is_some_and(|rate| !self.tuning.new_keys.has_room(rate, now))
    }

    /// Returns the rate that bounds new keys, if this key is new and the zone bounds them.
    fn bound_of(&self, key: &[u8]) -> Option<Rate> {
        let bound = self.tuning.zone.new_keys?;
        let is_new = key != NEW_KEYS
            && self.keys.find(key).is_none()
            && self.tuning.zone.plans.index_of(key).is_none();
        is_new.then_some(bound)
    }
}
