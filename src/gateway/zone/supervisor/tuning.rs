//! Settings of a supervisor, and the bound of its new keys.

use std::num::NonZeroUsize;
use std::sync::Arc;

use limit::{Moment, NewKeyBudget, Rate};

use super::ZoneSupervisor;
use crate::zone::join::NEW_KEYS;
use crate::zone::overrides::Overrides;
use crate::zone::store_link::Sharing;

/// Settings of a supervisor. They can change while it runs.
#[derive(Clone)]
pub struct Tuning {
    /// Settings of the zone. The algorithm never changes.
    pub zone: Arc<config::Zone>,
    /// Rate of keys without a plan: the rate of the zone or of its override.
    pub rate: Rate,
    /// Upper bound of the keys that this supervisor may remember.
    pub max_keys: NonZeroUsize,
    /// Budget for new keys that all supervisors of the zone share.
    pub new_keys: Arc<NewKeyBudget>,
    /// Overrides in force.
    pub overrides: Arc<Overrides>,
    /// Upper bound of the arrivals kept for a replay. Never changes.
    pub max_arrivals: usize,
    /// Store of the zone; `None` if it is kept in memory.
    pub(in crate::zone) sharing: Option<Sharing>,
}

impl ZoneSupervisor {
    /// Takes a new key from the zone's budget, if this key is new and the zone bounds new keys.
    ///
    /// Returns whether the budget is used up: then the request must use the bucket of [`NEW_KEYS`].
    pub(super) fn exceeds_new_keys(&self, key: &[u8], now: Moment) -> bool {
        let max_rate = self.max_rate_of_new_keys(key);
        max_rate.is_some_and(|rate| !self.tuning.new_keys.take(rate, now))
    }

    /// Returns whether a request of this key would have to use the bucket of [`NEW_KEYS`].
    pub(super) fn would_exceed_new_keys(&self, key: &[u8], now: Moment) -> bool {
        let max_rate = self.max_rate_of_new_keys(key);
        max_rate.is_some_and(|rate| !self.tuning.new_keys.has_room(rate, now))
    }

    /// Returns the maximum rate of new keys, if this key is new and the zone bounds new keys.
    fn max_rate_of_new_keys(&self, key: &[u8]) -> Option<Rate> {
        let max_rate = self.tuning.zone.new_keys?;
        let is_new = key != NEW_KEYS
            && self.keys.find(key).is_none()
            && self.tuning.zone.plans.index_of(key).is_none();
        is_new.then_some(max_rate)
    }
}
