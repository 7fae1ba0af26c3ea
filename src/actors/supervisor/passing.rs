//! Keys whose requests find an empty bucket: they need no actor.

use super::super::answer::{Answer, Charge, Grant, Outlook};
use super::super::messages::{Join, Refund};
use super::ZoneSupervisor;
use super::keys::State;
use crate::limit::{self, Account, Bucket, Cost, Moment, Verdict};

impl ZoneSupervisor {
    /// Lets a request pass that finds the bucket of a key without an actor empty.
    ///
    /// It need not wait, and no earlier charge can be given back any more: the key's actor would do
    /// just this. So an actor is only woken for a request that finds a level, that has a cost or a
    /// place among the running ones, or whose charge is to change.
    ///
    /// Returns the join if it is for an actor.
    pub(super) fn pass_at_once(
        &mut self,
        join: Join,
        known: Option<u32>,
        now: Moment,
    ) -> Result<(), Join> {
        let limit = join.limit;
        let is_plain = limit.cost == Cost::ONE && limit.in_flight.is_none();
        let is_paused = || self.tuning.overrides.paused_until(&join.key).is_some();
        if !is_plain || self.shard.is_shared() || is_paused() {
            return Err(join);
        }
        let (mut bucket, rate) = match known.map(|index| &self.keys[index]) {
            None => (Bucket::new(), self.rates.wanted(&join.key)),
            Some(known) => match known.parked() {
                Some(Account::Bucket(bucket)) => (*bucket, self.rates.of(&join.key)),
                _ => return Err(join),
            },
        };
        if !bucket.is_drained(rate, now) {
            return Err(join);
        }
        let Verdict::Pass { excess } = bucket.decide(rate, limit, now) else {
            return Err(join);
        };
        let account = Account::Bucket(bucket);
        // Places for those who are held back are not for whoever comes next.
        let outlook = Outlook::of(&account, rate, limit.holding(0), now);
        let state = State::Passing(account);
        match known {
            Some(index) => {
                self.keys.replace(index, state);
                self.keys[index].used = now;
            }
            None if self.has_room() || self.evict() => {
                self.add(&join.key, state, now);
            }
            None => return Err(join),
        }
        let charge = Charge::Own(limit::Charge::of_passing(now, limit.cost));
        let grant = Grant::at_once(charge, excess, outlook, now);
        let Join { key, reply, .. } = join;
        if reply.send(Answer::Turn(grant)).is_err() {
            self.tell_known(&key.clone(), Refund { key, charge }, now);
        }
        Ok(())
    }
}
