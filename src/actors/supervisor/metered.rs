//! Keys of the algorithms that let nobody wait. They need no actor: their supervisor decides at once.

use super::super::key::answer_rejected;
use super::super::messages::{Answer, Grant, Join, Key, Outlook};
use super::{Parked, ZoneSupervisor};
use crate::limit::{Account, Charge, Moment, Verdict};
use crate::metrics::Rejected;

impl ZoneSupervisor {
    /// Decides a join.
    pub(super) fn decide(&mut self, join: Join, now: Moment) {
        let rate = self.tuning.rate;
        let Some(account) = self.account(&join.key, now) else {
            return Self::reject(join, Rejected::Keys);
        };
        let excess = match account.decide(rate, join.limit, now) {
            Verdict::Reject(refusal) => {
                return answer_rejected(join.reply, refusal.into_rejection(now));
            }
            Verdict::Pass { excess } | Verdict::Delay { excess, .. } => excess,
        };
        let remaining = account.remaining(rate, join.limit, now);
        let one_more = account.accepts_at(rate, join.limit, remaining, now);
        let charge = Charge::of_passing(now);
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
        let rate = self.tuning.rate;
        if let Some(known) = self.parked.peek_mut(key) {
            known.account.refund(rate, charge.at(), now);
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
