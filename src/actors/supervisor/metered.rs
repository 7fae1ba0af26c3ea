//! Keys of the algorithms that let nobody wait. They need no actor: their supervisor decides at once.

use super::super::key::answer_rejected;
use std::rc::Rc;

use actix::{AsyncContext, Context, Handler};

use super::super::messages::{Answer, Charge, Grant, Join, Key, Outlook, Rejection};
use super::super::shared::{Shared, Told, Untold};
use super::{Parked, ZoneSupervisor};
use crate::config::OnStoreFailure;
use crate::limit::{self, Account, Excess, Moment, Verdict};
use crate::metrics::Rejected;

impl Handler<Told> for ZoneSupervisor {
    type Result = ();

    fn handle(&mut self, told: Told, _: &mut Context<Self>) {
        self.asked = self.asked.saturating_sub(1);
        let now = self.shard.pacer.now();
        self.told(told, now);
    }
}

impl ZoneSupervisor {
    /// Decides a join.
    pub(super) fn decide(&mut self, join: Join, now: Moment) {
        let rate = self.tuning.rate;
        let Some(account) = self.account(&join.key, now) else {
            return Self::reject(join, Rejected::Keys);
        };
        let verdict = account.decide(rate, join.limit, now);
        let charge = Charge::Own(limit::Charge::of_passing(now));
        self.answer(join, verdict, charge, now);
    }

    /// Has the store decide a join.
    pub(super) fn ask(&mut self, zone: &Rc<Shared>, join: Join, ctx: &mut Context<Self>) {
        self.asked += 1;
        zone.ask(join, ctx.address().recipient());
    }

    /// Goes by what the store decided, or by what the zone does without it.
    fn told(&mut self, Told { join, decision, .. }: Told, now: Moment) {
        let on_failure = self.shard.sharing().map(|zone| zone.on_failure);
        match (decision, on_failure.unwrap_or_default()) {
            (Ok(decision), _) => {
                let charge = decision.charge.map_or(Charge::Nothing, Charge::Store);
                let (own, in_force) = (self.tuning.rate, decision.in_force.rate);
                if let Some(account) = self.account(&join.key, now) {
                    *account = decision.account;
                    if in_force != own {
                        account.retune(in_force, own, now);
                    }
                }
                self.answer(join, decision.verdict, charge, now);
            }
            (Err(Untold), OnStoreFailure::Local) => self.decide(join, now),
            (Err(Untold), OnStoreFailure::Open) => {
                let excess = Excess::default();
                self.answer(join, Verdict::Pass { excess }, Charge::Nothing, now);
            }
            (Err(Untold), OnStoreFailure::Closed) => {
                answer_rejected(join.reply, Rejection::without_store());
            }
        }
    }

    /// Answers a join by its verdict; of its key the account is as it stands after it.
    fn answer(&mut self, join: Join, verdict: Verdict, charge: Charge, now: Moment) {
        let rate = self.tuning.rate;
        let excess = match verdict {
            Verdict::Reject(refusal) => {
                return answer_rejected(join.reply, refusal.into_rejection(now));
            }
            Verdict::Pass { excess } | Verdict::Delay { excess, .. } => excess,
        };
        let new = Account::new(self.tuning.algorithm);
        let account = self
            .parked
            .peek(&join.key)
            .map_or(&new, |known| &known.account);
        let remaining = account.remaining(rate, join.limit, now);
        let one_more = account.accepts_at(rate, join.limit, remaining, now);
        let grant = Grant {
            charge,
            due: None,
            excess,
            outlook: Outlook {
                remaining,
                one_more_in: one_more.since(now),
            },
        };
        if join.reply.send(Answer::Turn(grant)).is_err() {
            self.take_back(&join.key, charge, now);
        }
    }

    /// Gives back what a turn was charged that was not used.
    pub(super) fn take_back(&mut self, key: &Key, charge: Charge, now: Moment) {
        match charge {
            Charge::Own(charge) => {
                let rate = self.tuning.rate;
                if let Some(known) = self.parked.peek_mut(key) {
                    known.account.refund(rate, charge.at(), now);
                }
            }
            Charge::Store(charge) => {
                if let Some(zone) = self.shard.sharing() {
                    zone.refund(key, charge);
                }
            }
            Charge::Alone | Charge::Nothing => {}
        }
    }

    /// The account of a key that is used now; `None` where the zone has no room for one more.
    fn account(&mut self, key: &Key, now: Moment) -> Option<&mut Account> {
        if !self.parked.contains(key) {
            if !self.has_room() && !self.evict() {
                return None;
            }
            let account = Account::new(self.tuning.algorithm);
            let index = self.roll.add(Key::clone(key));
            let (key, used) = (Key::clone(key), now);
            self.parked.put(
                key,
                Parked {
                    account,
                    used,
                    index,
                },
            );
        }
        let known = self.parked.get_mut(key)?;
        known.used = now;
        Some(&mut known.account)
    }
}
