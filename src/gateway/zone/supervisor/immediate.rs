//! Keys of algorithms without a queue. They have no actors: their supervisor decides at once.
//!
//! `key/store_reply` handles the store's replies for keys with a queue.

use std::rc::Rc;

use config::OnStoreFailure;
use limit::{self, Account, Cost, Excess, Limit, Moment, Rate, Verdict};

use super::actor::Call;
use super::keys::{Known, State};
use super::{Phase, ZoneSupervisor};
use crate::observe::metrics::Rejected;
use crate::time::clock;
use crate::zone::answer::{Charge, Grant, Prediction, Rejection};
use crate::zone::join::{Join, Key};
use crate::zone::pending::PendingJoin;
use crate::zone::store_link::{Decision, NoReply, Reply, StoreLink};

impl ZoneSupervisor {
    /// Decides on a request.
    pub(super) fn decide(&mut self, join: &Join, now: Moment) -> Result<Grant, Rejection> {
        let (key, limit) = (&join.key, join.limit);
        // There is no queue in which a request could wait for the end of a pause.
        if let Some(until) = self.tuning.overrides.paused_until(key)
            && !join.dry_run
        {
            return Err(Rejection::in_pause(until.since(now)));
        }
        let rate = self.rates.rate_by_settings(key);
        let counted = self.counted_at(now);
        let account = self.account(key, now);
        let account = account.ok_or_else(|| Rejection::soon(Rejected::Keys))?;
        let verdict = account.decide(rate, limit, counted);
        let charge = Charge::Own(limit::Charge::of_passing(counted, limit.cost));
        answer(account, rate, limit, verdict, charge, (counted, now))
    }

    /// Asks the store to decide on a join.
    pub(super) fn ask_store(&mut self, link: &Rc<StoreLink>, pending: PendingJoin) {
        let Some(actor) = self.actor.clone() else {
            return;
        };
        self.joins_at_store += 1;
        let (key, limit) = (Key::clone(&pending.join.key), pending.join.limit);
        let reply = Reply::new(move |decision| {
            let apply = move |zone: &mut Self| zone.apply_decision(pending, decision);
            actor.do_send(Call(apply));
        });
        link.join(&key, limit, reply);
    }

    /// Applies the store's decision, or the zone's `on_store_failure` if there is none.
    fn apply_decision(&mut self, pending: PendingJoin, decision: Result<Decision, NoReply>) {
        self.joins_at_store = self.joins_at_store.saturating_sub(1);
        let (join, now) = (&pending.join, self.shard.pacer.now());
        // The settings may have changed since the join was sent to the store.
        self.follow_plan(&join.key, now);
        let rate = self.rates.rate_by_settings(&join.key);
        let answer = match (decision, self.tuning.zone.on_store_failure) {
            (Ok(decision), _) => {
                let charge = decision.charge.map_or(Charge::Nothing, Charge::Store);
                let (mut account, in_force) = (decision.account, decision.in_force.rate);
                if in_force != rate {
                    account.retune(in_force, rate, now);
                }
                let (verdict, at) = (decision.verdict, (now, now));
                let answer = answer(&account, rate, join.limit, verdict, charge, at);
                if let Some(known) = self.account(&join.key, now) {
                    *known = account;
                }
                answer
            }
            (Err(NoReply), OnStoreFailure::Local) => self.decide(join, now),
            (Err(NoReply), OnStoreFailure::Open) => {
                let excess = Excess::default();
                let (verdict, charge) = (Verdict::Pass { excess }, Charge::Nothing);
                let new = Account::new(self.tuning.zone.algorithm);
                let known = self.keys.get(&join.key).and_then(Known::parked);
                let at = (self.counted_at(now), now);
                answer(known.unwrap_or(&new), rate, join.limit, verdict, charge, at)
            }
            (Err(NoReply), OnStoreFailure::Closed) => Err(Rejection::soon(Rejected::Store)),
        };
        self.answer(pending, answer.into(), now);
    }

    /// Refunds the charge of an admission that was not used, or is not to count.
    pub(in crate::zone) fn refund(&mut self, key: &Key, charge: Charge) {
        let now = self.shard.pacer.now();
        if self.tuning.zone.algorithm.queues() {
            return self.if_known(key, now, move |actor, now, _| actor.refund(charge, now));
        }
        match charge {
            Charge::Own(charge) => {
                let (rate, now) = (self.rates.charged_rate(key), self.counted_at(now));
                if let Some(account) = self.keys.get_mut(key).and_then(Known::parked_mut) {
                    account.refund(rate, charge, now);
                }
            }
            Charge::Store(charge) => {
                if let Some(link) = self.shard.store_link() {
                    link.refund(key, charge);
                }
            }
            Charge::Alone(_) | Charge::Nothing => {}
        }
    }

    /// Corrects the charge of an admitted request to its real cost.
    pub(in crate::zone) fn settle(&mut self, key: &Key, charge: Charge, cost: Cost) {
        let now = self.shard.pacer.now();
        if self.phase == Phase::HandedOver && cost > charge.cost() {
            // The next process relies on the departure times of the waiters.
            return;
        }
        let queues = self.tuning.zone.algorithm.queues();
        match charge {
            // The store may still know a key that is unknown here. No request waits for such a key.
            Charge::Store(charge) if !queues || self.keys.find(key).is_none() => {
                if let Some(link) = self.shard.store_link() {
                    link.settle(key, charge, cost);
                }
            }
            charge if queues => {
                self.if_known(key, now, move |actor, now, ctx| {
                    actor.settle(charge, cost, now, ctx);
                });
            }
            Charge::Own(charge) => {
                let (rate, now) = (self.rates.charged_rate(key), self.counted_at(now));
                if let Some(account) = self.keys.get_mut(key).and_then(Known::parked_mut) {
                    account.settle(rate, charge, cost, now);
                }
            }
            _ => {}
        }
    }

    /// Converts `now` to the clock by which accounts count.
    ///
    /// This is the wall clock if the algorithm's windows follow the calendar.
    pub(super) fn counted_at(&self, now: Moment) -> Moment {
        if self.tuning.zone.algorithm.follows_calendar() {
            clock::to_wall(now)
        } else {
            now
        }
    }

    /// Returns the account of a key, which counts as used now; `None` if the zone is full.
    fn account(&mut self, key: &Key, now: Moment) -> Option<&mut Account> {
        let index = if let Some(index) = self.keys.find(key) {
            self.keys.touch(index, now);
            index
        } else if self.has_room() || self.evict() {
            let account = Account::new(self.tuning.zone.algorithm);
            self.add(key, State::Parked(account), now)
        } else {
            return None;
        };
        self.keys[index].parked_mut()
    }
}

/// Turns a verdict into an answer.
///
/// `account` is the key's state after the verdict. `counted` is `now` on its clock.
fn answer(
    account: &Account,
    rate: Rate,
    limit: Limit,
    verdict: Verdict,
    charge: Charge,
    (counted, now): (Moment, Moment),
) -> Result<Grant, Rejection> {
    match verdict {
        Verdict::Reject(refusal) => Err(Rejection::of(refusal, counted)),
        Verdict::Pass { excess } | Verdict::Delay { excess, .. } => {
            let prediction = Prediction::of(account, rate, limit, counted);
            Ok(Grant::at_once(charge, excess, prediction, now))
        }
    }
}
