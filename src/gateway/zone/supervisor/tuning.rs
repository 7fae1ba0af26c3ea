//! Settings of a supervisor, and the bound of its new keys.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use config::Plans;
use limit::{Algorithm, Moment, NewKeyBudget, Rate};

use super::super::join::NEW_KEYS;
use super::super::overrides::Overrides;
use super::super::store_link::Sharing;
use super::ZoneSupervisor;

/// Settings of a supervisor. They can change while it runs.
#[derive(Clone)]
pub struct Tuning {
    /// Algorithm that counts the requests of each key. Never changes.
    pub algorithm: Algorithm,
    /// Rate of each key without a plan.
    pub rate: Rate,
    /// Other rates for some keys.
    pub plans: Plans,
    /// Upper bound of the keys that this supervisor may remember.
    pub max_keys: NonZeroUsize,
    /// Idle time after which a drained key is forgotten.
    pub idle_timeout: Duration,
    /// Bound of the unknown keys that get buckets of their own; `None`: no bound.
    pub new_keys: Option<NewKeys>,
    /// Overrides in force.
    pub overrides: Arc<Overrides>,
    /// Upper bound of the arrivals kept for a replay. Never changes.
    pub most_arrivals: usize,
    /// Set for a zone that is kept in a store.
    pub(in crate::zone) sharing: Option<Sharing>,
}

/// Bound of the unknown keys that get buckets of their own.
#[derive(Clone, Debug)]
pub struct NewKeys {
    /// Upper bound over time.
    pub rate: Rate,
    /// Budget that all supervisors of the zone share.
    pub budget: Arc<NewKeyBudget>,
}

impl ZoneSupervisor {
    /// Returns whether a request of this key must use the bucket of [`NEW_KEYS`].
    ///
    /// If not, and the key is unknown, takes a new key from the zone's budget.
    pub(super) fn exceeds_new_keys(&self, key: &[u8], now: Moment) -> bool {
        let bounded = self.bound_of(key);
        bounded.is_some_and(|NewKeys { rate, budget }| !budget.take(*rate, now))
    }

    /// Returns whether a request of this key would have to use the bucket of [`NEW_KEYS`].
    pub(super) fn would_exceed_new_keys(&self, key: &[u8], now: Moment) -> bool {
        let bounded = self.bound_of(key);
        bounded.is_some_and(|NewKeys { rate, budget }| !budget.has_room(*rate, now))
    }

    /// Returns the bound of new keys, if this key is new.
    fn bound_of(&self, key: &[u8]) -> Option<&NewKeys> {
        let bound = self.tuning.new_keys.as_ref()?;
        let is_new = key != NEW_KEYS
            && self.keys.find(key).is_none()
            && self.tuning.plans.index_of(key).is_none();
        is_new.then_some(bound)
    }
}
