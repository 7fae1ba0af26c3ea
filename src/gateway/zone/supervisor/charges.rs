//! Later changes of a key's charges: refunds, corrections to the real cost, and forgetting them.
//!
//! If requests of the zone queue, the key's actor makes the change. Otherwise the supervisor does,
//! or the store if the zone is kept in one. An *account* is what was charged to a key.

use limit::Cost;
use tokio::sync::oneshot;

use super::keys::KnownKey;
use super::{Phase, ZoneSupervisor};
use crate::zone::answer::Charge;
use crate::zone::join::{Key, Waiters};

impl ZoneSupervisor {
    /// Refunds a charge: its admission was not used, or its request should not count.
    pub(in crate::zone) fn refund(&mut self, key: &Key, charge: Charge) {
        let now = self.shard.pacer.now();
        if self.tuning.zone.algorithm.queues() {
            return self.if_known(key, now, move |actor, now, _| actor.refund(charge, now));
        }
        match charge {
            Charge::Own(charge) => {
                let (rate, now) = (self.rates.charged_rate(key), self.account_time(now));
                if let Some(account) = self.keys.get_mut(key).and_then(KnownKey::parked_mut) {
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
            // A higher charge would delay the waiters, but the next process relies on their times.
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
                let (rate, now) = (self.rates.charged_rate(key), self.account_time(now));
                if let Some(account) = self.keys.get_mut(key).and_then(KnownKey::parked_mut) {
                    account.settle(rate, charge, cost, now);
                }
            }
            _ => {}
        }
    }

    /// Forgets the charges of a key.
    ///
    /// Sends the number of rejected waiters to `reply`; `None` if the key is unknown.
    pub(in crate::zone) fn forget(
        &mut self,
        key: &Key,
        waiters: Waiters,
        reply: oneshot::Sender<Option<usize>>,
    ) {
        let known = self.keys.find(key);
        if let Some(active) = known.and_then(|index| self.keys[index].active()) {
            return active.send(move |actor, now, _| actor.forget(waiters, reply, now));
        }
        let link = self.shard.store_link();
        if let Some(link) = &link {
            link.forget(key, None);
        }
        let parked = known.and_then(|index| self.remove(index));
        // The store may know a key that is unknown here, so with a store each key counts as known.
        let is_known = parked.is_some() || link.is_some();
        // The caller may have been dropped.
        let _unsent = reply.send(is_known.then_some(0));
    }
}
