//! Bound of a zone's new keys (`new_keys`). Above it, unknown keys share one bucket.

use limit::{Moment, Rate};

use super::ZoneSupervisor;
use crate::zone::join::NEW_KEYS;

impl ZoneSupervisor {
    /// Charges the zone's budget for a new key, if this key is new and the zone bounds new keys.
    ///
    /// Returns `false` if the budget is used up: the request must use the bucket of [`NEW_KEYS`].
    pub(super) fn take_new_key(&self, key: &[u8], now: Moment) -> bool {
        let max_rate = self.max_rate_of_new_keys(key);
        max_rate.is_none_or(|rate| self.tuning.new_keys.take(rate, now))
    }

    /// Returns whether a request of this key would have to use that bucket. Charges nothing.
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
