//! Keys whose requests find an empty bucket: they need no actor.

use limit::{self, Account, Bucket, Cost, Moment, Verdict};

use super::super::answer::{Charge, Grant, Outlook};
use super::ZoneSupervisor;
use super::keys::State;
use crate::zone::join::Join;

impl ZoneSupervisor {
    /// Lets a request pass that finds the bucket of a key without an actor empty.
    ///
    /// It need not wait, and no earlier charge can be given back any more: the key's actor would do
    /// just this. So an actor is only woken for a request that finds a level, that has a cost or a
    /// place among the running ones, or whose charge is to change.
    ///
    /// Returns `None` if it is for an actor.
    pub(super) fn pass_at_once(
        &mut self,
        join: &Join,
        known: Option<u32>,
        now: Moment,
    ) -> Option<Grant> {
        let (key, limit) = (&join.key, join.limit);
        let is_plain = limit.cost == Cost::ONE && limit.in_flight.is_none();
        let is_paused = || self.tuning.overrides.paused_until(key).is_some();
        if !is_plain || self.shard.is_shared() || is_paused() {
            return None;
        }
        let (mut bucket, rate) = match known.map(|index| &self.keys[index]) {
            None => (Bucket::new(), self.rates.wanted(key)),
            Some(known) => match known.parked() {
                Some(Account::Bucket(bucket)) => (*bucket, self.rates.of(key)),
                _ => return None,
            },
        };
        if !bucket.is_drained(rate, now) {
            return None;
        }
        let Verdict::Pass { excess } = bucket.decide(rate, limit, now) else {
            return None;
        };
        let account = Account::Bucket(bucket);
        // Places for those who are held back are not for whoever comes next.
        let outlook = Outlook::of(&account, rate, limit.with_above_burst(0), now);
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
        Some(Grant::at_once(charge, excess, outlook, now))
    }
}
