//! Adoption of new settings by a supervisor, its keys and their actors.

use std::sync::Arc;

use super::{Tuning, ZoneSupervisor, store_link};
use crate::zone::join::InFlightChange;

impl ZoneSupervisor {
    /// Adopts new settings. `in_flight`: changes of `in_flight` of limits in this zone.
    pub(in crate::zone) fn retune(&mut self, tuning: Tuning, in_flight: &Arc<[InFlightChange]>) {
        let now = self.account_time(self.shard.pacer.now());
        let link = store_link(&tuning, &self.shard);
        self.shard.set_store_link(link);
        let before = std::mem::replace(&mut self.tuning, tuning);
        let rate = self.tuning.rate;
        if before.rate != rate {
            for (key, account) in self.keys.each_parked_mut() {
                // Keys that are charged at another rate follow the settings at their next use.
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
}
