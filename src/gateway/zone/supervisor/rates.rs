//! Rates of a zone's keys, from overrides, plans and the zone.

use std::collections::HashMap;
use std::sync::Arc;

use config::Plans;
use foldhash::fast::RandomState;
use limit::Rate;

use super::Tuning;
use super::keys::Name;
use crate::zone::overrides::Overrides;

/// Rate of each key of a zone: that of its override or its plan, or the zone's.
///
/// A known key keeps the rate under which it was charged until its next use. So a change of the
/// plans of many keys costs nothing at once.
pub(super) struct Rates {
    of_zone: Rate,
    plans: Plans,
    overrides: Arc<Overrides>,
    /// Rates of known keys, where they differ from the zone's.
    known: HashMap<Name, Rate, RandomState>,
}

impl Rates {
    pub(super) fn new(tuning: &Tuning) -> Self {
        Self {
            of_zone: tuning.rate,
            plans: tuning.zone.plans.clone(),
            overrides: Arc::clone(&tuning.overrides),
            known: HashMap::default(),
        }
    }

    /// Adopts other settings. Known keys without an own rate have the zone's new rate.
    pub(super) fn adopt(&mut self, tuning: &Tuning) {
        *self = Self {
            known: std::mem::take(&mut self.known),
            ..Self::new(tuning)
        };
    }

    /// Returns whether every key has the zone's rate.
    pub(super) fn are_all_the_same(&self) -> bool {
        self.plans.is_empty() && self.known.is_empty() && self.overrides.keys.is_empty()
    }

    /// Returns the rate that a known key has.
    pub(super) fn of(&self, key: &[u8]) -> Rate {
        if self.known.is_empty() {
            return self.of_zone;
        }
        self.known.get(key).copied().unwrap_or(self.of_zone)
    }

    /// Returns whether a known key's rate differs from the zone's.
    pub(super) fn has_own(&self, key: &[u8]) -> bool {
        self.known.contains_key(key)
    }

    /// Returns the rate that a key should have.
    pub(super) fn effective(&self, key: &[u8]) -> Rate {
        let plan = || self.plans.of(key)?.rate;
        let own = self.overrides.rate_of(key).or_else(plan);
        own.unwrap_or(self.of_zone)
    }

    /// Sets the rate of a key from now on.
    pub(super) fn set(&mut self, key: &[u8], rate: Rate) {
        if rate == self.of_zone {
            self.known.remove(key);
        } else {
            self.known.insert(Name::from_slice(key), rate);
        }
    }

    /// Removes a key that is not known any more.
    pub(super) fn forget(&mut self, key: &[u8]) {
        if !self.known.is_empty() {
            self.known.remove(key);
        }
    }

    /// Removes all keys.
    pub(super) fn forget_all(&mut self) {
        self.known.clear();
    }
}
