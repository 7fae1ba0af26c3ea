//! Leases: slots of busy keys that are taken ahead from the store, so that joins need no call.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use foldhash::fast::RandomState;
use limit::{Algorithm, LeaseTerms, Leased, Moment, Rate};
use tokio::time::sleep;

use super::key_lease::{KeyLease, LeasingJoin};
use super::refill::{Refill, Refilled};
use super::{Decision, StoreLink};
use crate::observe::metrics::StoreResult;
use crate::zone::join::Key;

/// Upper bound of the keys of a zone on one worker that may have a lease.
///
/// A busy key soon gets a lease, because unused keys are forgotten.
const MAX_KEYS: usize = 1024;
/// Upper bound of the leased slots of a zone on one worker.
const MAX_SLOTS: usize = 32_768;
/// Time after which an unused key is forgotten, as a multiple of the lease's length.
const FORGOTTEN_AFTER: u32 = 4;
/// Least time between two searches for expired leases.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// Leases of a zone on one worker. They outlive a change of the zone's settings.
///
/// While slots are on their way to this gateway, later joins wait for them in their order.
#[derive(Default)]
pub(super) struct Leases {
    /// Leases of the keys.
    keys: RefCell<HashMap<Key, KeyLease, RandomState>>,
    /// Number of leased slots of all keys.
    slots: Cell<usize>,
    /// Time of the last search for unused keys.
    swept: Cell<Moment>,
    /// Number of the settings in force.
    version: Cell<u64>,
}

impl Leases {
    /// Returns the number of new settings, which are in force from now on.
    pub(super) fn next_version(&self) -> u64 {
        self.version.set(self.version.get() + 1);
        self.version.get()
    }

    /// Returns whether no key is known here.
    pub(super) fn are_none(&self) -> bool {
        self.keys.borrow().is_empty()
    }

    /// Decides a join from a lease, lets it wait for a refill, or asks the store.
    pub(super) fn join(&self, link: &Rc<StoreLink>, pending: LeasingJoin) {
        let (now, limit) = (pending.since, pending.limit);
        let mut keys = self.keys.borrow_mut();
        self.forget_unused(link, &mut keys, now);
        if !link.lease().is_zero() && keys.len() < MAX_KEYS && !keys.contains_key(&pending.key) {
            let key = Key::clone(&pending.key);
            keys.insert(key, KeyLease::new(limit, now));
        }
        let Some(leased) = keys.get_mut(&pending.key) else {
            drop(keys);
            return link.charge_join(pending, None);
        };
        leased.used = now;
        leased.lease.arrive(link.lease(), limit, now);
        if leased.is_refilled {
            return leased.waiting.push_back(pending);
        }
        let before = leased.lease.slots();
        // Joins that the store is deciding go first, so that the order of arrival is kept.
        let is_first = leased.under_way == 0;
        let decision = is_first.then(|| leased.take(limit, now)).flatten();
        self.update_slot_count(before, leased.lease.slots());
        if let Some(decision) = decision {
            drop(keys);
            link.count(StoreResult::Leased);
            return pending.reply.send(Ok(decision));
        }
        let refill = self.refill(link, leased, &pending, now);
        drop(keys);
        link.charge_join(pending, Some(refill));
    }

    /// Returns the refill that goes with a join: the slots to take ahead behind it.
    fn refill(
        &self,
        link: &Rc<StoreLink>,
        leased: &mut KeyLease,
        pending: &LeasingJoin,
        now: Moment,
    ) -> Refill {
        let (key, limit) = (&pending.key, pending.limit);
        let ahead = leased
            .lease
            .ahead(&link.terms(key, leased.rate), limit, now);
        let room = MAX_SLOTS.saturating_sub(self.slots.get());
        let ahead = ahead.min(u32::try_from(room).unwrap_or(u32::MAX));
        leased.under_way += 1;
        leased.is_refilled |= ahead > 0;
        Refill {
            link: Rc::clone(link),
            key: Key::clone(key),
            limit,
            ahead,
            version: leased.version,
            is_answered: false,
        }
    }

    /// Updates the number of leased slots after that of one key has changed.
    fn update_slot_count(&self, before: usize, after: usize) {
        self.slots.set(self.slots.get() + after - before);
    }

    /// Adds the slots from the store's answer, and decides the joins that waited for them.
    pub(super) fn refilled(&self, refill: &Refill, reported: Option<Refilled>) {
        let (link, key) = (&refill.link, &refill.key);
        let now = link.batcher.now();
        let mut keys = self.keys.borrow_mut();
        let Some(leased) = keys.get_mut(key) else {
            return;
        };
        let before = leased.lease.slots();
        // Done after the leases are no longer borrowed.
        let (mut decided, mut given_back) = (Vec::new(), Vec::new());
        let mut asks: Vec<(LeasingJoin, Refill)> = Vec::new();
        leased.under_way = leased.under_way.saturating_sub(1);
        if refill.ahead > 0 {
            leased.is_refilled = false;
        }
        if let Some(reported) = reported {
            given_back = leased.add_refill(refill, reported);
        }
        if !leased.is_refilled {
            while let Some(first) = leased.waiting.pop_front() {
                if let Some(decision) = leased.take(first.limit, now) {
                    decided.push((first, decision));
                    continue;
                }
                leased.waiting.push_front(first);
                break;
            }
            // The last of these joins takes slots ahead for all later ones.
            for pending in std::mem::take(&mut leased.waiting) {
                if let Some((_, last)) = asks.last_mut() {
                    last.ahead = 0;
                }
                let refill = self.refill(link, leased, &pending, now);
                asks.push((pending, refill));
            }
            leased.is_refilled = asks.last().is_some_and(|(_, it)| it.ahead > 0);
        }
        self.update_slot_count(before, leased.lease.slots());
        drop(keys);
        for (pending, decision) in decided {
            link.count(StoreResult::Leased);
            pending.reply.send(Ok(decision));
        }
        for (pending, refill) in asks {
            link.charge_join(pending, Some(refill));
        }
        link.give_back(key, given_back, now);
        link.watch_leases();
    }

    /// Follows the rate that the store reported for a key.
    ///
    /// Slots that were taken under another rate go back.
    pub(super) fn follow(&self, link: &Rc<StoreLink>, key: &[u8], rate: Rate) {
        let mut keys = self.keys.borrow_mut();
        let Some((key, leased)) = keys.get_key_value(key) else {
            return;
        };
        if leased.rate.is_none_or(|known| known == rate) {
            return;
        }
        let key = Key::clone(key);
        let Some(leased) = keys.get_mut(&key) else {
            return;
        };
        let before = leased.lease.slots();
        let slots = leased.lease.clear();
        leased.rate = Some(rate);
        self.update_slot_count(before, 0);
        drop(keys);
        link.give_back(&key, slots, link.batcher.now());
    }

    /// Removes a key's slots, because the store has forgotten its charges.
    pub(super) fn forget(&self, key: &[u8]) {
        if let Some(leased) = self.keys.borrow_mut().get_mut(key) {
            let before = leased.lease.slots();
            leased.clear();
            leased.forgotten = leased.version;
            self.update_slot_count(before, 0);
        }
    }

    /// Gives back all slots, including slots in transit.
    pub(super) fn release(&self, link: &Rc<StoreLink>) {
        let mut keys = self.keys.borrow_mut();
        let leased = keys.iter_mut();
        let all: Vec<_> = leased
            .map(|(key, leased)| (Key::clone(key), leased.clear()))
            .collect();
        self.slots.set(0);
        drop(keys);
        let now = link.batcher.now();
        for (key, slots) in all {
            link.give_back(&key, slots, now);
        }
    }

    /// Gives back the slots of expired leases. Returns when the next lease expires, if any.
    fn end(&self, link: &Rc<StoreLink>, now: Moment) -> Option<Moment> {
        let mut keys = self.keys.borrow_mut();
        let (mut all, mut next) = (Vec::new(), None::<Moment>);
        for (key, leased) in keys.iter_mut() {
            let before = leased.lease.slots();
            let ended = leased.lease.end(now);
            self.update_slot_count(before, leased.lease.slots());
            if !ended.is_empty() {
                all.push((Key::clone(key), ended));
            }
            next = next.into_iter().chain(leased.lease.next_end()).min();
        }
        drop(keys);
        for (key, slots) in all {
            link.give_back(&key, slots, now);
        }
        next
    }

    /// Forgets keys that were not used for several lease lengths.
    fn forget_unused(
        &self,
        link: &StoreLink,
        keys: &mut HashMap<Key, KeyLease, RandomState>,
        now: Moment,
    ) {
        let span = link.lease() * FORGOTTEN_AFTER;
        if now.since(self.swept.get()) >= span {
            keys.retain(|_, leased| !leased.is_idle() || now.since(leased.used) < span);
            self.swept.set(now);
        }
    }
}

impl StoreLink {
    /// Returns the terms of a key's lease, at the rate in force for it.
    pub(super) fn terms(&self, key: &Key, rate: Option<Rate>) -> LeaseTerms {
        let of_file = || self.sharing.paces.of(key).rate();
        LeaseTerms {
            length: self.lease(),
            rate: rate.unwrap_or_else(of_file),
            algorithm: self.settings.algorithm,
        }
    }

    /// Returns the length of a lease; zero for an actor with outdated settings, which takes none.
    pub(super) fn lease(&self) -> Duration {
        if self.version == self.leases.version.get() {
            self.settings.lease
        } else {
            Duration::ZERO
        }
    }

    /// Gives back unused slots of a key. Slots whose time has passed are lost.
    fn give_back(self: &Rc<Self>, key: &Key, slots: Vec<Leased<Decision>>, now: Moment) {
        for slot in slots {
            let counts = match self.settings.algorithm {
                Algorithm::TokenBucket => false,
                // The count of a window also matters in the next window.
                Algorithm::SlidingWindowCounter => true,
                _ => now < slot.usable_until,
            };
            if let Some(charge) = slot.slot.charge.filter(|_| counts) {
                self.refund(key, charge);
            }
        }
    }

    /// Gives back all leased slots.
    pub(in crate::zone) fn release_leases(self: &Rc<Self>) {
        self.leases.release(self);
    }

    /// Completes when the store has received all that was given back, or does not answer.
    pub(in crate::zone) async fn all_given_back(&self) {
        // Keys whose last request has just ended report it after a moment.
        sleep(LOOK_EVERY).await;
        while self.batcher.is_tidying() {
            sleep(LOOK_EVERY).await;
        }
    }

    /// Starts a task that gives slots back when their lease expires. It ends with the last slot.
    fn watch_leases(self: &Rc<Self>) {
        if self.leases.slots.get() == 0 || self.watches_leases.replace(true) {
            return;
        }
        let link = Rc::downgrade(self);
        actix_rt::spawn(async move {
            while let Some(link) = link.upgrade() {
                let now = link.batcher.now();
                let Some(next) = link.leases.end(&link, now) else {
                    return link.watches_leases.set(false);
                };
                let pause = next.since(now).max(link.settings.lease / 8).max(LOOK_EVERY);
                drop(link);
                sleep(pause).await;
            }
        });
    }
}
