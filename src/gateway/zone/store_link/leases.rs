//! Leases: slots of busy keys, taken in advance from the store, so that joins need no call.
//!
//! A *slot* is a departure time. A *refill* requests slots for a lease. It goes with a join that
//! the store decides: the slots are those behind the join's own slot.

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
/// Minimum pause between two searches, for expired leases or for unsent refunds.
const MIN_PAUSE: Duration = Duration::from_millis(1);

/// Leases of a zone on one worker. They outlive a change of the zone's settings.
///
/// While slots are in transit to this gateway, later joins of the key wait for them, in order.
#[derive(Default)]
pub(super) struct Leases {
    /// Leases of the keys.
    keys: RefCell<HashMap<Key, KeyLease, RandomState>>,
    /// Number of leased slots of all keys.
    slots: Cell<usize>,
    /// Time of the last search for unused keys.
    swept: Cell<Moment>,
    /// Version of the settings in force.
    version: Cell<u64>,
}

impl Leases {
    /// Begins a new version of the settings, which is in force from now on. Returns the version.
    pub(super) fn begin_version(&self) -> u64 {
        self.version.set(self.version.get() + 1);
        self.version.get()
    }

    /// Returns whether no key has a lease.
    pub(super) fn are_none(&self) -> bool {
        self.keys.borrow().is_empty()
    }

    /// Decides a join from a lease, lets it wait for a refill, or asks the store.
    pub(super) fn join(&self, link: &Rc<StoreLink>, pending: LeasingJoin) {
        let (now, limit) = (pending.since, pending.limit);
        let mut keys = self.keys.borrow_mut();
        self.forget_unused(link, &mut keys, now);
        let may_lease = !link.lease_length().is_zero() && keys.len() < MAX_KEYS;
        if may_lease && !keys.contains_key(&pending.key) {
            let key = Key::clone(&pending.key);
            keys.insert(key, KeyLease::new(limit, now));
        }
        let Some(key_lease) = keys.get_mut(&pending.key) else {
            drop(keys);
            return link.charge_join(pending, None);
        };
        key_lease.used = now;
        key_lease.lease.arrive(link.lease_length(), limit, now);
        if key_lease.is_refilling {
            return key_lease.waiting.push_back(pending);
        }
        // Joins that the store is deciding go first, so that the order of arrival is kept.
        let is_first = key_lease.joins_at_store == 0;
        let take = |key_lease: &mut KeyLease| key_lease.take(limit, now);
        let by_lease = is_first.then(|| self.change(key_lease, take)).flatten();
        if let Some(decision) = by_lease {
            drop(keys);
            link.count(StoreResult::Leased);
            return pending.reply.send(Ok(decision));
        }
        let refill = self.refill(link, key_lease, &pending, now);
        drop(keys);
        link.charge_join(pending, Some(refill));
    }

    /// Begins the refill that goes with a join. It may request no slots.
    fn refill(
        &self,
        link: &Rc<StoreLink>,
        key_lease: &mut KeyLease,
        pending: &LeasingJoin,
        now: Moment,
    ) -> Refill {
        let (key, limit) = (&pending.key, pending.limit);
        let terms = link.terms(key, key_lease.rate);
        let max_ahead = MAX_SLOTS.saturating_sub(self.slots.get());
        let max_ahead = u32::try_from(max_ahead).unwrap_or(u32::MAX);
        let ahead = key_lease.lease.ahead(&terms, limit, now).min(max_ahead);
        key_lease.joins_at_store += 1;
        key_lease.is_refilling |= ahead > 0;
        Refill {
            link: Rc::clone(link),
            key: Key::clone(key),
            limit,
            ahead,
            version: key_lease.version,
            is_answered: false,
        }
    }

    /// Changes the lease of a key, and updates the number of all leased slots.
    fn change<T>(&self, key_lease: &mut KeyLease, change: impl FnOnce(&mut KeyLease) -> T) -> T {
        let before = key_lease.lease.slots();
        let result = change(key_lease);
        let after = key_lease.lease.slots();
        self.slots.set(self.slots.get() + after - before);
        result
    }

    /// Adds the slots of a refill, and decides the joins that waited for them.
    ///
    /// `reported`: the store's answer; `None` if there is none.
    pub(super) fn complete_refill(&self, refill: &Refill, reported: Option<Refilled>) {
        let (link, key) = (&refill.link, &refill.key);
        let now = link.batcher.now();
        let mut keys = self.keys.borrow_mut();
        let Some(key_lease) = keys.get_mut(key) else {
            return;
        };
        key_lease.joins_at_store = key_lease.joins_at_store.saturating_sub(1);
        if refill.ahead > 0 {
            key_lease.is_refilling = false;
        }
        let (unused, decided) = self.change(key_lease, |key_lease| {
            let unused = reported.map(|reported| key_lease.add_refill(refill, reported));
            (unused.unwrap_or_default(), key_lease.decide_waiting(now))
        });
        let mut undecided: Vec<(LeasingJoin, Refill)> = Vec::new();
        if !key_lease.is_refilling {
            // The store must decide the remaining joins. Only the last one brings slots for the
            // lease, so that they are behind the slots of all these joins.
            for pending in std::mem::take(&mut key_lease.waiting) {
                if let Some((_, earlier)) = undecided.last_mut() {
                    earlier.ahead = 0;
                }
                let refill = self.refill(link, key_lease, &pending, now);
                undecided.push((pending, refill));
            }
            key_lease.is_refilling = undecided.last().is_some_and(|(_, it)| it.ahead > 0);
        }
        // The calls below may borrow the leases.
        drop(keys);
        for (pending, decision) in decided {
            link.count(StoreResult::Leased);
            pending.reply.send(Ok(decision));
        }
        for (pending, refill) in undecided {
            link.charge_join(pending, Some(refill));
        }
        link.give_back(key, unused, now);
        link.watch_leases();
    }

    /// Adopts the rate that the store reported for a key.
    ///
    /// Slots that were taken under another rate are given back.
    pub(super) fn adopt_rate(&self, link: &Rc<StoreLink>, key: &[u8], rate: Rate) {
        let mut keys = self.keys.borrow_mut();
        let Some(key_lease) = keys.get_mut(key) else {
            return;
        };
        if key_lease.rate.is_none_or(|known| known == rate) {
            return;
        }
        key_lease.rate = Some(rate);
        let slots = self.change(key_lease, |key_lease| key_lease.lease.clear());
        drop(keys);
        link.give_back(key, slots, link.batcher.now());
    }

    /// Removes a key's slots, because the store has forgotten its charges.
    pub(super) fn forget(&self, key: &[u8]) {
        if let Some(key_lease) = self.keys.borrow_mut().get_mut(key) {
            self.change(key_lease, KeyLease::clear);
            key_lease.forgotten = key_lease.version;
        }
    }

    /// Gives back all slots, including slots in transit.
    pub(super) fn release(&self, link: &Rc<StoreLink>) {
        let mut keys = self.keys.borrow_mut();
        let leases = keys.iter_mut();
        let given_back = leases.map(|(key, key_lease)| (Key::clone(key), key_lease.clear()));
        let given_back: Vec<_> = given_back.collect();
        self.slots.set(0);
        drop(keys);
        let now = link.batcher.now();
        for (key, slots) in given_back {
            link.give_back(&key, slots, now);
        }
    }

    /// Gives back the slots of expired leases. Returns when the next lease expires, if any.
    fn end_expired(&self, link: &Rc<StoreLink>, now: Moment) -> Option<Moment> {
        let mut keys = self.keys.borrow_mut();
        let (mut given_back, mut next) = (Vec::new(), None::<Moment>);
        for (key, key_lease) in keys.iter_mut() {
            let ended = self.change(key_lease, |key_lease| key_lease.lease.end(now));
            if !ended.is_empty() {
                given_back.push((Key::clone(key), ended));
            }
            next = next.into_iter().chain(key_lease.lease.next_end()).min();
        }
        drop(keys);
        for (key, slots) in given_back {
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
        let span = link.lease_length() * FORGOTTEN_AFTER;
        if now.since(self.swept.get()) >= span {
            keys.retain(|_, key_lease| !key_lease.is_idle() || now.since(key_lease.used) < span);
            self.swept.set(now);
        }
    }
}

impl StoreLink {
    /// Returns the terms of a key's lease, at the rate in force for it.
    pub(super) fn terms(&self, key: &Key, rate: Option<Rate>) -> LeaseTerms {
        let file_rate = || self.sharing.paces.of(key).rate();
        LeaseTerms {
            length: self.lease_length(),
            rate: rate.unwrap_or_else(file_rate),
            algorithm: self.settings.algorithm,
        }
    }

    /// Returns the length of a lease; zero if the settings are outdated, so that none is taken.
    pub(super) fn lease_length(&self) -> Duration {
        if self.version == self.leases.version.get() {
            self.settings.lease
        } else {
            Duration::ZERO
        }
    }

    /// Gives back unused slots of a key to the store. Slots that nobody can use any more are lost.
    fn give_back(self: &Rc<Self>, key: &[u8], slots: Vec<Leased<Decision>>, now: Moment) {
        for slot in slots {
            let can_be_refunded = match self.settings.algorithm {
                Algorithm::TokenBucket => false,
                // The count of a window also matters in the next window, so it is always refunded.
                Algorithm::SlidingWindowCounter => true,
                _ => now < slot.usable_until,
            };
            if let Some(charge) = slot.slot.charge.filter(|_| can_be_refunded) {
                self.refund(key, charge);
            }
        }
    }

    /// Gives back all leased slots.
    pub(in crate::zone) fn release_leases(self: &Rc<Self>) {
        self.leases.release(self);
    }

    /// Waits until the store has received all refunds and returned permits, or does not answer.
    pub(in crate::zone) async fn all_given_back(&self) {
        // A key whose last request has just ended calls the store after a moment.
        sleep(MIN_PAUSE).await;
        while self.batcher.is_busy() {
            sleep(MIN_PAUSE).await;
        }
    }

    /// Starts a task that gives slots back when their lease expires, until none are left.
    fn watch_leases(self: &Rc<Self>) {
        if self.leases.slots.get() == 0 || self.watches_leases.replace(true) {
            return;
        }
        let link = Rc::downgrade(self);
        actix_rt::spawn(async move {
            while let Some(link) = link.upgrade() {
                let now = link.batcher.now();
                let Some(next) = link.leases.end_expired(&link, now) else {
                    return link.watches_leases.set(false);
                };
                // At most eight searches in the length of a lease.
                let pause = next.since(now).max(link.settings.lease / 8).max(MIN_PAUSE);
                drop(link);
                sleep(pause).await;
            }
        });
    }
}
