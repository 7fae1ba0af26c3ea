//! Decisions for algorithms without a queue: the supervisor decides at once, without an actor.
//!
//! Such an algorithm counts the requests of a key in an *account*, and admits or rejects each
//! request. If the zone is kept in the store, the store decides. `key/store_reply` handles the
//! store's replies for keys with a queue.

use std::rc::Rc;

use config::OnStoreFailure;
use limit::{self, Account, Excess, Limit, Moment, Rate, Verdict};

use super::ZoneSupervisor;
use super::actor::Call;
use super::keys::{KnownKey, State};
use crate::observe::metrics::Rejected;
use crate::time::clock;
use crate::zone::answer::{Charge, Grant, Prediction, Rejection};
use crate::zone::join::{Join, Key};
use crate::zone::pending::PendingJoin;
use crate::zone::store_link::{Decision, NoReply, Reply, StoreLink};

impl ZoneSupervisor {
    /// Decides on a request, and charges it if it is admitted.
    pub(super) fn decide_without_queue(
        &mut self,
        join: &Join,
        now: Moment,
    ) -> Result<Grant, Rejection> {
        let (key, limit) = (&join.key, join.limit);
        // There is no queue in which a request could wait for the end of a pause.
        if let Some(until) = self.tuning.overrides.paused_until(key)
            && !join.dry_run
        {
            return Err(Rejection::in_pause(until.since(now)));
        }
        let rate = self.rates.rate_by_settings(key);
        let account_now = self.account_time(now);
        let account = self.use_account(key, now);
        let account = account.ok_or_else(|| Rejection::soon(Rejected::Keys))?;
        let verdict = account.decide(rate, limit, account_now);
        let charge = Charge::Own(limit::Charge::of_passing(account_now, limit.cost));
        build_answer(account, rate, limit, verdict, charge, account_now, now)
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

    /// Answers a join by the store's decision, or by the zone's `on_store_failure` without one.
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
                let (limit, verdict) = (join.limit, decision.verdict);
                // The times of a decision are on the gateway's clock, not on that of accounts.
                let answer = build_answer(&account, rate, limit, verdict, charge, now, now);
                if let Some(known) = self.use_account(&join.key, now) {
                    *known = account;
                }
                answer
            }
            (Err(NoReply), OnStoreFailure::Local) => self.decide_without_queue(join, now),
            (Err(NoReply), OnStoreFailure::Open) => {
                let excess = Excess::default();
                let (verdict, charge) = (Verdict::Pass { excess }, Charge::Nothing);
                let new = Account::new(self.tuning.zone.algorithm);
                let known = self.keys.get(&join.key).and_then(KnownKey::parked);
                let (account, account_now) = (known.unwrap_or(&new), self.account_time(now));
                build_answer(account, rate, join.limit, verdict, charge, account_now, now)
            }
            (Err(NoReply), OnStoreFailure::Closed) => Err(Rejection::soon(Rejected::Store)),
        };
        self.answer(pending, answer.into(), now);
    }

    /// Converts a time to the clock of the zone's accounts.
    ///
    /// This is the wall clock if the algorithm counts in windows of the calendar, such as days.
    pub(super) fn account_time(&self, now: Moment) -> Moment {
        if self.tuning.zone.algorithm.follows_calendar() {
            clock::to_wall(now)
        } else {
            now
        }
    }

    /// Marks a key as used, and returns its account. Adds an unknown key.
    ///
    /// `None` if the key is unknown and the zone is full.
    fn use_account(&mut self, key: &Key, now: Moment) -> Option<&mut Account> {
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

/// Builds the answer for a verdict.
///
/// `account`: the key's state after the verdict. `account_now`: `now` on the account's clock.
fn build_answer(
    account: &Account,
    rate: Rate,
    limit: Limit,
    verdict: Verdict,
    charge: Charge,
    account_now: Moment,
    now: Moment,
) -> Result<Grant, Rejection> {
    match verdict {
        Verdict::Reject(refusal) => Err(Rejection::of(refusal, account_now)),
        Verdict::Pass { excess } | Verdict::Delay { excess, .. } => {
            let prediction = Prediction::of(account, rate, limit, account_now);
            Ok(Grant::at_once(charge, excess, prediction, now))
        }
    }
}
