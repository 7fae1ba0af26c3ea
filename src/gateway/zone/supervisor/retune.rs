//! Adoption of new settings, and of the rates that plans give to keys.

use std::num::NonZeroU32;
use std::sync::Arc;

use limit::Moment;

use super::keys::State;
use super::{Active, Tuning, ZoneSupervisor, store_link};
use crate::zone::join::{Key, NEW_KEYS};

impl ZoneSupervisor {
    /// Adopts new settings.
    ///
    /// `in_flight` has a pair (old, new) for each changed `in_flight` of a limit in this zone.
    pub(in crate::zone) fn retune(
        &mut self,
        tuning: Tuning,
        in_flight: &Arc<[(NonZeroU32, NonZeroU32)]>,
    ) {
        let now = self.counted_at(self.shard.pacer.now());
        let link = store_link(&tuning, &self.shard);
        self.shard.set_store_link(link);
        let before = std::mem::replace(&mut self.tuning, tuning);
        let rate = self.tuning.rate;
        if before.rate != rate {
            for (key, account) in self.keys.each_parked_mut() {
                // Keys with a rate of their own follow their plan at their next use.
                if self.rates.charged_rate_unless_zone(key).is_none() {
                    account.retune(before.rate, rate, now);
                }
            }
        }
        self.rates.adopt(&self.tuning);
        for active in self.keys.each_active() {
            if !in_flight.is_empty() {
                let in_flight = Arc::clone(in_flight);
                active.send(move |actor, _, _| actor.change_in_flight(&in_flight));
            }
            let key = &active.snapshot.key;
            // Rate under which the key was charged until now. `rates` has the zone's new rate.
            let previous = self.rates.charged_rate_unless_zone(key);
            let previous = previous.unwrap_or(before.rate);
            let effective = self.rates.rate_by_settings(key);
            self.rates.set_charged_rate(key, effective);
            let paused_until = self.tuning.overrides.paused_until(key);
            if before.overrides.paused_until(key) != paused_until {
                active.send(move |actor, now, ctx| actor.pause(paused_until, now, ctx));
            }
            // Actors of a shared zone also adopt other changes of its settings.
            if previous != effective || self.tuning.sharing.is_some() {
                active.send(move |actor, now, ctx| actor.retune(effective, now, ctx));
            }
        }
        while self.keys.len() > self.tuning.max_keys.get() && self.evict() {}
    }

    /// Adds an unknown key, at the rate of its plan.
    pub(super) fn add(&mut self, key: &Key, state: State<Active>, now: Moment) -> u32 {
        if !self.rates.are_all_the_same() {
            let rate = self.rates.rate_by_settings(key);
            self.rates.set_charged_rate(key, rate);
        }
        if **key != *NEW_KEYS {
            self.shard.metrics.new_keys.add(1);
        }
        self.keys.add(key, state, now)
    }

    /// Forgets a key.
    pub(super) fn remove(&mut self, index: u32) -> Option<State<Active>> {
        if !self.rates.are_all_the_same() {
            let name = self.keys.name(index);
            self.rates.forget(&name);
        }
        self.keys.remove(index)
    }

    /// Gives a known key the rate of its plan, if it has another rate.
    pub(super) fn follow_plan(&mut self, key: &Key, now: Moment) {
        if self.rates.are_all_the_same() {
            return;
        }
        let now = self.counted_at(now);
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
