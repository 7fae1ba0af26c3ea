//! What a supervisor knows of its zone's settings.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use config::Plans;
use limit::{Algorithm, Moment, NewKeyBudget, Rate};

use super::super::join::NEW_KEYS;
use super::super::overrides::Overrides;
use super::super::store_link::Sharing;
use super::ZoneSupervisor;

/// A supervisor's settings. They can change while it runs.
#[derive(Clone, Debug)]
pub struct Tuning {
    /// How the requests of each key are counted. Never changes.
    pub algorithm: Algorithm,
    /// The rate of each key without a plan.
    pub rate: Rate,
    /// Other rates for some keys.
    pub plans: Plans,
    /// The most keys that this supervisor may remember.
    pub max_keys: NonZeroUsize,
    /// A drained key is forgotten after it was not used for this long.
    pub idle_timeout: Duration,
    /// Bounds the unknown keys that get buckets of their own; `None`: all get one.
    pub new_keys: Option<NewKeys>,
    /// What differs from the file for a while.
    pub overrides: Arc<Overrides>,
    /// The most arrivals that it keeps to be replayed. Never changes.
    pub most_arrivals: usize,
    /// Set for a zone that is kept in a store.
    pub(in crate::zone) sharing: Option<Sharing>,
}

/// How many unknown keys get buckets of their own.
#[derive(Clone, Debug)]
pub struct NewKeys {
    /// The most, over time.
    pub rate: Rate,
    /// One for all supervisors of the zone.
    pub budget: Arc<NewKeyBudget>,
}

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
