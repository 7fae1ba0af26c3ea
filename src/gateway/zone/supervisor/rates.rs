//! Rates of a zone's keys: the rate of the key's override, of its plan, or of the zone.
//!
//! A key that is known keeps the rate under which it was charged until its next use. So a change of
//! the plans of many keys costs nothing at once.

use std::collections::HashMap;
use std::sync::Arc;

use config::Plans;
use foldhash::fast::RandomState;
use limit::{Moment, Rate};

use super::keys::{KeyName, State};
use super::{ActiveKey, Tuning, ZoneSupervisor};
use crate::zone::join::{Key, NEW_KEYS};
use crate::zone::overrides::Overrides;

/// Rates of a zone's keys, by the settings in force and as last charged.
pub(super) struct Rates {
    /// Rate of keys that have no override and whose plan, if any, has no rate.
    zone_rate: Rate,
    plans: Plans,
    overrides: Arc<Overrides>,
    /// Rates under which known keys are charged, if that is not `zone_rate`.
    known: HashMap<KeyName, Rate, RandomState>,
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

    /// Returns the same rate; `None` if it is the rate of the zone.
    pub(super) fn charged_rate_unless_zone(&self, key: &[u8]) -> Option<Rate> {
        self.known.get(key).copied()
    }

    /// Returns the rate of a key by the settings in force. A known key gets it at its next use.
    pub(super) fn rate_by_settings(&self, key: &[u8]) -> Rate {
        let plan_rate = || self.plans.plan_of(key)?.rate;
        let key_rate = self.overrides.rate_of(key).or_else(plan_rate);
        key_rate.unwrap_or(self.zone_rate)
    }

    /// Sets the rate under which a key is charged from now on.
    pub(super) fn set_charged_rate(&mut self, key: &[u8], rate: Rate) {
        if rate == self.zone_rate {
            self.known.remove(key);
        } else {
            self.known.insert(KeyName::from_slice(key), rate);
        }
    }

    /// Drops the rate of a key that the supervisor has forgotten.
    pub(super) fn forget(&mut self, key: &[u8]) {
        self.known.remove(key);
    }

    /// Drops the rates of all known keys.
    pub(super) fn forget_all(&mut self) {
        self.known.clear();
    }
}

impl ZoneSupervisor {
    /// Adds an unknown key, at the rate of its override, plan or zone. Returns its index.
    pub(super) fn add(&mut self, key: &Key, state: State<ActiveKey>, now: Moment) -> u32 {
        if !self.rates.are_all_the_same() {
            let rate = self.rates.rate_by_settings(key);
            self.rates.set_charged_rate(key, rate);
        }
        if **key != *NEW_KEYS {
            self.shard.metrics.new_keys.add(1);
        }
        self.keys.add(key, state, now)
    }

    /// Forgets the key at an index. Returns its state.
    pub(super) fn remove(&mut self, index: u32) -> Option<State<ActiveKey>> {
        if !self.rates.are_all_the_same() {
            let name = self.keys.name(index);
            self.rates.forget(&name);
        }
        self.keys.remove(index)
    }

    /// Charges a known key from now on at the rate of the settings in force.
    pub(super) fn follow_plan(&mut self, key: &Key, now: Moment) {
        if self.rates.are_all_the_same() {
            return;
        }
        let now = self.account_time(now);
        let Some(known) = self.keys.get_mut(key) else {
            return;
        };
        let previous = self.rates.charged_rate(key);
        let effective = self.rates.rate_by_settings(key);
        if previous == effective {
            return;
        }
        match &mut known.state {
            State::Parked(account) | State::Passing(account) => {
                account.retune(previous, effective, now);
            }
            State::Active(active) => {
                active.send(move |actor, now, ctx| actor.retune(effective, now, ctx));
            }
        }
        self.rates.set_charged_rate(key, effective);
    }
}
