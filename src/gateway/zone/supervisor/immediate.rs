//! Keys of the algorithms without waiting. They need no actor: their supervisor decides at once.

use std::rc::Rc;

use config::OnStoreFailure;
use limit::{self, Account, Excess, Limit, Moment, Rate, Verdict};

use super::super::answer::{Answer, Charge, Grant, Key, Outlook, Rejection};
use super::super::messages::{Join, Refund, Settle};
use super::super::store_link::{Decision, NoReply, StoreLink, StoreReply, StoreRequest};
use super::here::Handle;
use super::keys::{Known, State};
use super::{JoinRequest, ZoneSupervisor};
use crate::observe::metrics::Rejected;
use crate::time::clock;

impl Handle<StoreReply> for ZoneSupervisor {
    fn handle(&mut self, StoreReply { asked, decision }: StoreReply) {
        self.asked = self.asked.saturating_sub(1);
        let now = self.shard.pacer.now();
        // Nothing waits here: only joins expect a reply.
        if let StoreRequest::Join(join, _) = asked {
            self.apply(join, decision, now);
        }
    }
}

impl ZoneSupervisor {
    /// Decides a request.
    pub(super) fn decide(
        &mut self,
        request: &JoinRequest<'_>,
        now: Moment,
    ) -> Result<Grant, Rejection> {
        let (key, limit) = (request.key, request.limit);
        // Nothing can wait here for the end of a pause.
        if let Some(until) = self.tuning.overrides.paused_until(key)
            && !request.dry_run
        {
            return Err(Rejection {
                retry_after: until.since(now),
                ..Rejection::in_pause()
            });
        }
        let rate = self.rates.wanted(key);
        let counted = self.counted_at(now);
        let account = self.account(key, now);
        let account = account.ok_or_else(|| Rejection::soon(Rejected::Keys))?;
        let verdict = account.decide(rate, limit, counted);
        let charge = Charge::Own(limit::Charge::of_passing(counted, limit.cost));
        answer(account, rate, limit, verdict, charge, (counted, now))
    }

    /// Asks the store to decide a join.
    pub(super) fn ask_store(&mut self, zone: &Rc<StoreLink>, join: Join) {
        if let Some(replies) = &self.replies {
            self.asked += 1;
            zone.ask(join, replies.clone());
        }
    }

    /// Applies the store's decision, or the zone's fallback if there is none.
    fn apply(&mut self, join: Join, decision: Result<Decision, NoReply>, now: Moment) {
        let on_store_failure = self.shard.sharing().map(|zone| zone.on_store_failure);
        // The settings may have changed since it was asked.
        self.follow_plan(&join.key, now);
        let own = self.rates.wanted(&join.key);
        match (decision, on_store_failure.unwrap_or_default()) {
            (Ok(decision), _) => {
                let charge = decision.charge.map_or(Charge::Nothing, Charge::Store);
                let (mut account, in_force) = (decision.account, decision.in_force.rate);
                if in_force != own {
                    account.retune(in_force, own, now);
                }
                let answer = answer(
                    &account,
                    own,
                    join.limit,
                    decision.verdict,
                    charge,
                    (now, now),
                );
                if let Some(known) = self.account(&join.key, now) {
                    *known = account;
                }
                self.answer(join, answer, now);
            }
            (Err(NoReply), OnStoreFailure::Local) => {
                let decided = self.decide(&join.request(), now);
                self.answer(join, decided, now);
            }
            (Err(NoReply), OnStoreFailure::Open) => {
                let excess = Excess::default();
                let (verdict, charge) = (Verdict::Pass { excess }, Charge::Nothing);
                let new = Account::new(self.tuning.algorithm);
                let known = self.keys.get(&join.key).and_then(Known::parked);
                let account = known.unwrap_or(&new);
                let at = (self.counted_at(now), now);
                let answer = answer(account, own, join.limit, verdict, charge, at);
                self.answer(join, answer, now);
            }
            (Err(NoReply), OnStoreFailure::Closed) => {
                self.answer(join, Err(Rejection::without_store()), now);
            }
        }
    }

    /// Answers a join. If the receiver of a turn has gone, gives the charge back.
    pub(super) fn answer(&mut self, join: Join, answer: Result<Grant, Rejection>, now: Moment) {
        match answer {
            Ok(grant) => {
                if join.reply.send(Answer::Turn(grant)).is_err() {
                    self.refund(join.key, grant.charge, now);
                }
            }
            Err(rejection) => {
                let (key, dry_run) = (&join.key, join.dry_run);
                self.shard.reject(key, join.reply, rejection, dry_run, now);
            }
        }
    }

    /// Gives back the charge of an unused turn.
    pub(super) fn refund(&mut self, key: Key, charge: Charge, now: Moment) {
        if self.tuning.algorithm.queues() {
            self.tell_known(&key.clone(), Refund { key, charge }, now);
        } else {
            self.take_back(&key, charge, now);
        }
    }

    /// Gives back the charge of an unused turn to a key that has no actor.
    fn take_back(&mut self, key: &Key, charge: Charge, now: Moment) {
        match charge {
            Charge::Own(charge) => {
                let (rate, now) = (self.rates.of(key), self.counted_at(now));
                if let Some(account) = self.keys.get_mut(key).and_then(Known::parked_mut) {
                    account.refund(rate, charge, now);
                }
            }
            Charge::Store(charge) => {
                if let Some(zone) = self.shard.sharing() {
                    zone.refund(key, charge);
                }
            }
            Charge::Alone(_) | Charge::Nothing => {}
        }
    }

    /// Changes what a used turn was charged.
    pub(super) fn settle(&mut self, Settle { key, charge, cost }: &Settle, now: Moment) {
        match charge {
            Charge::Own(charge) => {
                let (rate, now) = (self.rates.of(key), self.counted_at(now));
                if let Some(account) = self.keys.get_mut(key).and_then(Known::parked_mut) {
                    account.settle(rate, *charge, *cost, now);
                }
            }
            Charge::Store(charge) => {
                if let Some(zone) = self.shard.sharing() {
                    zone.settle(key, *charge, *cost);
                }
            }
            Charge::Alone(_) | Charge::Nothing => {}
        }
    }

    /// The time by which accounts count at `now`: the wall clock's, where windows follow the calendar.
    pub(super) fn counted_at(&self, now: Moment) -> Moment {
        if self.tuning.algorithm.follows_calendar() {
            clock::to_wall(now)
        } else {
            now
        }
    }

    /// The account of a key that is used now; `None` if the zone is full.
    fn account(&mut self, key: &Key, now: Moment) -> Option<&mut Account> {
        let index = if let Some(index) = self.keys.find(key) {
            self.keys.touch(index, now);
            index
        } else if self.has_room() || self.evict() {
            let account = Account::new(self.tuning.algorithm);
            self.add(key, State::Parked(account), now)
        } else {
            return None;
        };
        self.keys[index].parked_mut()
    }
}

/// Turns a verdict into an answer. `account` is the key's state after the verdict, which counts by
/// `counted` when it is `now`.
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
            let outlook = Outlook::of(account, rate, limit, counted);
            Ok(Grant::at_once(charge, excess, outlook, now))
        }
    }
}
