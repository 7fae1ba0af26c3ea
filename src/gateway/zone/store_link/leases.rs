//! Leases: places of busy keys that are taken ahead from the store, and decide without it.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use foldhash::fast::RandomState;
use limit::{Algorithm, LeaseTerms, Leased, Limit, Moment, Rate};
use tokio::time::sleep;

use super::key_lease::{KeyLease, LeasingJoin};
use super::{Decision, StoreLink};
use crate::observe::metrics::StoreResult;
use crate::zone::join::Key;

/// Most keys of a zone on one worker whose requests are counted.
///
/// A busy key is soon among them, as those that are not used are forgotten.
const MAX_KEYS: usize = 1024;
/// Most places of a zone on one worker.
const MAX_PLACES: usize = 32_768;
/// After so many times the lease's length a key that was not used is forgotten.
const FORGOTTEN_AFTER: u32 = 4;
/// Least time between two looks for places whose lease is over.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// The leases of a zone on one worker, through all its settings.
///
/// While places are on their way here, the joins behind wait for them, in their order.
#[derive(Default)]
pub(super) struct Leases {
    keys: RefCell<HashMap<Key, KeyLease, RandomState>>,
    places: Cell<usize>,
    /// When unused keys were last looked for.
    swept: Cell<Moment>,
    /// Which settings of the zone are in force.
    settings: Cell<u64>,
}

impl Leases {
    /// The number of the settings that are in force from now on.
    pub(super) fn next_settings(&self) -> u64 {
        self.settings.set(self.settings.get() + 1);
        self.settings.get()
    }

    /// Whether no key is known here.
    pub(super) fn are_none(&self) -> bool {
        self.keys.borrow().is_empty()
    }

    /// Decides a join by a lease, lets it wait for one, or asks the store.
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
        let before = leased.lease.places();
        // Behind others that the store is deciding, so that the first to come is the first to go.
        let is_first = leased.under_way == 0;
        let decision = is_first.then(|| leased.take(limit, now)).flatten();
        self.counted(before, leased.lease.places());
        if let Some(decision) = decision {
            drop(keys);
            link.count(StoreResult::Leased);
            return pending.reply.send(Ok(decision));
        }
        let refill = self.refill(link, leased, &pending, now);
        drop(keys);
        link.charge_join(pending, Some(refill));
    }

    /// An ask for this join, and for places behind it.
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
        let room = MAX_PLACES.saturating_sub(self.places.get());
        let ahead = ahead.min(u32::try_from(room).unwrap_or(u32::MAX));
        leased.under_way += 1;
        leased.is_refilled |= ahead > 0;
        Refill {
            link: Rc::clone(link),
            key: Key::clone(key),
            limit,
            ahead,
            version: leased.version,
            is_told: false,
        }
    }

    fn counted(&self, before: usize, after: usize) {
        self.places.set(self.places.get() + after - before);
    }

    /// Takes in what the store said, and decides on those who waited for it.
    pub(super) fn refilled(&self, refill: &Refill, told: Option<Refilled>) {
        let (link, key) = (&refill.link, &refill.key);
        let now = link.batcher.now();
        let mut keys = self.keys.borrow_mut();
        let Some(leased) = keys.get_mut(key) else {
            return;
        };
        let before = leased.lease.places();
        // What is to be done once the leases are not borrowed any more.
        let (mut decided, mut given_back) = (Vec::new(), Vec::new());
        let mut asks: Vec<(LeasingJoin, Refill)> = Vec::new();
        leased.under_way = leased.under_way.saturating_sub(1);
        if refill.ahead > 0 {
            leased.is_refilled = false;
        }
        if let Some(told) = told {
            given_back = leased.take_in(refill, told);
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
            // The last of them takes places ahead for all who come next.
            for pending in std::mem::take(&mut leased.waiting) {
                if let Some((_, last)) = asks.last_mut() {
                    last.ahead = 0;
                }
                let refill = self.refill(link, leased, &pending, now);
                asks.push((pending, refill));
            }
            leased.is_refilled = asks.last().is_some_and(|(_, it)| it.ahead > 0);
        }
        self.counted(before, leased.lease.places());
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

    /// The store has told which rate a key has: places that were taken under another one go back.
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
        let before = leased.lease.places();
        let places = leased.lease.clear();
        leased.rate = Some(rate);
        self.counted(before, 0);
        drop(keys);
        link.give_back(&key, places, link.batcher.now());
    }

    /// What a key was charged is forgotten in the store, also for places that are here.
    pub(super) fn forget(&self, key: &[u8]) {
        if let Some(leased) = self.keys.borrow_mut().get_mut(key) {
            let before = leased.lease.places();
            leased.clear();
            leased.forgotten = leased.version;
            self.counted(before, 0);
        }
    }

    /// Gives all places back, also those that are on their way here.
    pub(super) fn release(&self, link: &Rc<StoreLink>) {
        let mut keys = self.keys.borrow_mut();
        let leased = keys.iter_mut();
        let all: Vec<_> = leased
            .map(|(key, leased)| (Key::clone(key), leased.clear()))
            .collect();
        self.places.set(0);
        drop(keys);
        let now = link.batcher.now();
        for (key, places) in all {
            link.give_back(&key, places, now);
        }
    }

    /// Gives back the places whose lease is over. Returns when the next one is, if there is one.
    fn end(&self, link: &Rc<StoreLink>, now: Moment) -> Option<Moment> {
        let mut keys = self.keys.borrow_mut();
        let (mut all, mut next) = (Vec::new(), None::<Moment>);
        for (key, leased) in keys.iter_mut() {
            let before = leased.lease.places();
            let ended = leased.lease.end(now);
            self.counted(before, leased.lease.places());
            if !ended.is_empty() {
                all.push((Key::clone(key), ended));
            }
            next = next.into_iter().chain(leased.lease.next_end()).min();
        }
        drop(keys);
        for (key, places) in all {
            link.give_back(&key, places, now);
        }
        next
    }

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
    /// How a key's leases are taken, at the rate that is in force for it.
    pub(super) fn terms(&self, key: &Key, rate: Option<Rate>) -> LeaseTerms {
        let of_file = || self.paces.of(key).rate();
        LeaseTerms {
            length: self.lease(),
            rate: rate.unwrap_or_else(of_file),
            algorithm: self.algorithm,
        }
    }

    /// How long places are taken ahead. An actor may not know the last settings yet: it takes none.
    pub(super) fn lease(&self) -> Duration {
        if self.settings == self.leases.settings.get() {
            self.lease
        } else {
            Duration::ZERO
        }
    }

    /// Gives back the places of a key that are not used. Those whose time has passed are lost.
    fn give_back(self: &Rc<Self>, key: &Key, places: Vec<Leased<Decision>>, now: Moment) {
        for place in places {
            let counts = match self.algorithm {
                Algorithm::TokenBucket => false,
                // What came in a window counts in the next one, too.
                Algorithm::SlidingWindowCounter => true,
                _ => now < place.usable_until,
            };
            if let Some(charge) = place.place.charge.filter(|_| counts) {
                self.refund(key, charge);
            }
        }
    }

    /// Gives all leased places back.
    pub(in crate::zone) fn release_leases(self: &Rc<Self>) {
        self.leases.release(self);
    }

    /// Completes when the store has all that was given back, or does not answer.
    pub(in crate::zone) async fn all_given_back(&self) {
        // Keys whose last request has just ended tell of it in a moment.
        sleep(LOOK_EVERY).await;
        while self.batcher.is_tidying() {
            sleep(LOOK_EVERY).await;
        }
    }

    /// Gives places back when their lease is over, for as long as there are any.
    fn watch_leases(self: &Rc<Self>) {
        if self.leases.places.get() == 0 || self.watches_leases.replace(true) {
            return;
        }
        let link = Rc::downgrade(self);
        actix_rt::spawn(async move {
            while let Some(link) = link.upgrade() {
                let now = link.batcher.now();
                let Some(next) = link.leases.end(&link, now) else {
                    return link.watches_leases.set(false);
                };
                let pause = next.since(now).max(link.lease / 8).max(LOOK_EVERY);
                drop(link);
                sleep(pause).await;
            }
        });
    }
}

/// What goes with an ask whose key has a lease: the places to take ahead, and where they go.
pub(super) struct Refill {
    pub(super) link: Rc<StoreLink>,
    pub(super) key: Key,
    pub(super) limit: Limit,
    /// How many places to take ahead.
    pub(super) ahead: u32,
    pub(super) version: u64,
    pub(super) is_told: bool,
}

/// What the store said to an ask: first to the request, then of each place that was asked for.
pub(super) struct Refilled {
    /// When it was asked.
    pub(super) asked: Moment,
    pub(super) decisions: Vec<Decision>,
}

impl Refill {
    pub(super) fn tell(mut self, told: Option<Refilled>) {
        self.is_told = true;
        self.link.leases.refilled(&self, told);
    }
}

/// Those who wait for the places never wait for nothing.
impl Drop for Refill {
    fn drop(&mut self) {
        if !self.is_told {
            self.link.leases.refilled(self, None);
        }
    }
}
