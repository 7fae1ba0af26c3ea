//! Admission of requests that find the bucket of their key empty. Such a key needs no actor.

use limit::{self, Account, Bucket, Cost, Moment, Verdict};

use super::ZoneSupervisor;
use super::keys::State;
use crate::zone::answer::{Charge, Grant, Prediction};
use crate::zone::join::Join;

impl ZoneSupervisor {
    /// Admits a request that finds the bucket of a key without an actor empty.
    ///
    /// The request need not wait, and all earlier charges have leaked. So an actor would decide the
    /// same. An actor is started only for a request that finds a level, has a cost above 1 or needs
    /// a permit, and for a later change of a charge.
    ///
    /// `known`: index of the key, if the key is known. Returns `None` if an actor must decide.
    pub(super) fn pass_at_once(
        &mut self,
        join: &Join,
        known: Option<u32>,
        now: Moment,
    ) -> Option<Grant> {
        let (key, limit) = (&join.key, join.limit);
        let is_simple = limit.cost == Cost::ONE && limit.in_flight.is_none();
        let is_paused = || self.tuning.overrides.paused_until(key).is_some();
        if !is_simple || self.shard.is_shared() || is_paused() {
            return None;
        }
        let (mut bucket, rate) = match known.map(|index| &self.keys[index]) {
            None => (Bucket::new(), self.rates.rate_by_settings(key)),
            Some(known) => match known.parked() {
                Some(Account::Bucket(bucket)) => (*bucket, self.rates.charged_rate(key)),
                _ => return None,
            },
        };
        if !bucket.is_drained(rate, now) {
            return None;
        }
        // Charges the copy of the bucket, which then replaces the key's state.
        let Verdict::Pass { excess } = bucket.decide(rate, limit, now) else {
            return None;
        };
        let account = Account::Bucket(bucket);
        // The next request may not use the extra waiters that `above_burst` allows.
        let prediction = Prediction::of(&account, rate, limit.with_above_burst(0), now);
        let state = State::Passing(account);
        match known {
            Some(index) => {
                self.keys.replace(index, state);
                self.keys[index].used = now;
            }
            None if self.has_room() || self.evict() => {
                self.add(key, state, now);
            }
            None => return None,
        }
        let charge = Charge::Own(limit::Charge::of_passing(now, limit.cost));
        Some(Grant::at_once(charge, excess, prediction, now))
    }
}
