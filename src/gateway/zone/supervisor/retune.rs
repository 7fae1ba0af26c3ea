//! Adoption of new settings, and of the rates that plans give to keys.

use std::num::NonZeroU32;
use std::sync::Arc;

use limit::{Moment, Rate};

use super::keys::State;
use super::{Active, Tuning, ZoneSupervisor, shared};
use crate::zone::join::{Key, NEW_KEYS};
use crate::zone::overrides::Overrides;

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
        self.shard.share(shared(&tuning, &self.shard));
        let before = std::mem::replace(&mut self.tuning, tuning);
        let (rate, max_keys) = (self.tuning.rate, self.tuning.max_keys.get());
        let known = |active: &Active| {
            let key = Key::clone(&active.snapshot.key);
            (self.rates.of(&key), key)
        };
        let active: Vec<(Rate, Key)> = self.keys.each_active().map(known).collect();
        if before.rate != rate {
            for (key, account) in self.keys.each_parked_mut() {
                // Other keys follow their plan at their next use.
                if !self.rates.has_own(key) {
                    account.retune(before.rate, rate, now);
                }
            }
        }
        self.rates.adopt(&self.tuning);
        if !in_flight.is_empty() {
            for active in self.keys.each_active() {
                let in_flight = Arc::clone(in_flight);
                active.send(move |actor, _, _| actor.change_in_flight(&in_flight));
            }
        }
        for (had, key) in active {
            let effective = self.rates.effective(&key);
            self.rates.set(&key, effective);
            self.pause_or_resume(&before.overrides, &key);
            // Actors of a shared zone also adopt other changes of its settings.
            if had == effective && self.tuning.sharing.is_none() {
                continue;
            }
            self.if_active(&key, move |actor, now, ctx| {
                actor.retune(effective, now, ctx);
            });
        }
        while self.keys.len() > max_keys && self.evict() {}
    }

    /// Adds an unknown key, at the rate of its plan.
    pub(super) fn add(&mut self, key: &Key, state: State<Active>, now: Moment) -> u32 {
        if !self.rates.are_all_the_same() {
            let rate = self.rates.effective(key);
            self.rates.set(key, rate);
        }
        if **key != *NEW_KEYS {
            self.shard.metrics.new_keys.add(1);
        }
        self.keys.add(key, state, now)
    }

    /// Pauses the actor of a key, or ends its pause, if an override has changed this.
    fn pause_or_resume(&self, before: &Overrides, key: &Key) {
        let until = self.tuning.overrides.paused_until(key);
        if before.paused_until(key) != until {
            self.if_active(key, move |actor, now, ctx| actor.pause(until, now, ctx));
        }
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
        let (had, effective) = (self.rates.of(key), self.rates.effective(key));
        if had == effective {
            return;
        }
        match &mut known.state {
            State::Parked(account) | State::Passing(account) => {
                account.retune(had, effective, now);
            }
            State::Active(active) => {
                active.send(move |actor, now, ctx| actor.retune(effective, now, ctx));
            }
        }
        self.rates.set(key, effective);
    }
}
