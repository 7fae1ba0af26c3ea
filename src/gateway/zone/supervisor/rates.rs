//! Rates of a zone's keys, from overrides, plans and the zone.

use std::collections::HashMap;
use std::sync::Arc;

use config::Plans;
use foldhash::fast::RandomState;
use limit::Rate;

use super::Tuning;
use super::keys::Name;
use crate::zone::overrides::Overrides;

/// Rate of each key of a zone: the rate of its override, of its plan or of the zone.
///
/// Until its next use, a known key keeps the rate under which it was charged. So a change of the
/// plans of many keys costs nothing at once.
pub(super) struct Rates {
    /// Rate of keys without a plan or an override.
    zone_rate: Rate,
    plans: Plans,
    overrides: Arc<Overrides>,
    /// Rates of the known keys whose rate is not `zone_rate`.
    known: HashMap<Name, Rate, RandomState>,
}

impl Rates {
    pub(super) fn new(tuning: &Tuning) -> Self {
        Self {
            zone_rate: tuning.rate,
            plans: tuning.zone.plans.clone(),
            overrides: Arc::clone(&tuning.overrides),
            known: HashMap::default(),
        }
    }

    /// Adopts other settings. Known keys without a rate of their own get the zone's new rate.
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

    /// Returns the rate under which a known key is charged now.
    pub(super) fn charged_rate(&self, key: &[u8]) -> Rate {
        self.charged_rate_unless_zone(key).unwrap_or(self.zone_rate)
    }

    /// Returns the rate under which a known key is charged now, if it is not the zone's.
    pub(super) fn charged_rate_unless_zone(&self, key: &[u8]) -> Option<Rate> {
        self.known.get(key).copied()
    }

    /// Returns the rate of a key by the settings in force. A known key gets it at its next use.
    pub(super) fn rate_by_settings(&self, key: &[u8]) -> Rate {
        let of_plan = || self.plans.of(key)?.rate;
        let own = self.overrides.rate_of(key).or_else(of_plan);
        own.unwrap_or(self.zone_rate)
    }

    /// Sets the rate under which a key is charged from now on.
    pub(super) fn set_charged_rate(&mut self, key: &[u8], rate: Rate) {
        if rate == self.zone_rate {
            self.known.remove(key);
        } else {
            self.known.insert(Name::from_slice(key), rate);
        }
    }

    /// Removes a key that the supervisor has forgotten.
    pub(super) fn forget(&mut self, key: &[u8]) {
        self.known.remove(key);
    }

    /// Removes all keys.
    pub(super) fn forget_all(&mut self) {
        self.known.clear();
    }
}
