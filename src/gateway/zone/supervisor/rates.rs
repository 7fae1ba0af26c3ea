use std::collections::HashMap;
use std::sync::Arc;

use config::Plans;
use foldhash::fast::RandomState;
use limit::Rate;

use super::keys::Name;
use crate::zone::overrides::Overrides;

/// The rate of each key of a zone: that of its override or its plan, or the zone's.
///
/// A known key keeps the rate under which it was charged until it is used again, so a change of
/// the plans of many keys costs nothing at once.
pub(super) struct Rates {
    of_zone: Rate,
    plans: Plans,
    overrides: Arc<Overrides>,
    /// The rates that known keys have, where these are not the zone's.
    known: HashMap<Name, Rate, RandomState>,
}

impl Rates {
    pub(super) fn new(of_zone: Rate, plans: Plans, overrides: Arc<Overrides>) -> Self {
        Self {
            of_zone,
            plans,
            overrides,
            known: HashMap::default(),
        }
    }

    /// Takes over other settings. Known keys without a rate of their own have the zone's new one.
    pub(super) fn adopt(&mut self, of_zone: Rate, plans: Plans, overrides: Arc<Overrides>) {
        (self.of_zone, self.plans, self.overrides) = (of_zone, plans, overrides);
    }

    /// Whether every key has the zone's rate.
    pub(super) fn are_all_the_same(&self) -> bool {
        self.plans.is_empty() && self.known.is_empty() && self.overrides.keys.is_empty()
    }

    /// The rate that a known key has.
    pub(super) fn of(&self, key: &[u8]) -> Rate {
        if self.known.is_empty() {
            return self.of_zone;
        }
        self.known.get(key).copied().unwrap_or(self.of_zone)
    }

    /// Whether a known key has a rate of its own.
    pub(super) fn has_own(&self, key: &[u8]) -> bool {
        self.known.contains_key(key)
    }

    /// The rate that a key should have.
    pub(super) fn wanted(&self, key: &[u8]) -> Rate {
        let plan = || self.plans.of(key)?.rate;
        let own = self.overrides.rate_of(key).or_else(plan);
        own.unwrap_or(self.of_zone)
    }

    /// A key has this rate from now on.
    pub(super) fn set(&mut self, key: &[u8], rate: Rate) {
        if rate == self.of_zone {
            self.known.remove(key);
        } else {
            self.known.insert(Name::from_slice(key), rate);
        }
    }

    /// A key is not known any more.
    pub(super) fn forget(&mut self, key: &[u8]) {
        if !self.known.is_empty() {
            self.known.remove(key);
        }
    }

    /// No key is known any more.
    pub(super) fn forget_all(&mut self) {
        self.known.clear();
    }
}
