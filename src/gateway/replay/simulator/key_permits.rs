//! Permits of keys (`in_flight` of a limit) in a replay.
//!
//! A permit is the right to run one request of a key. Requests without a free permit wait for one.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};
use std::rc::Rc;

use foldhash::fast::RandomState;
use limit::{Limit, Moment, Permits, Terms, Ticket};

/// Permits of the keys of all zones, with running requests and waiters.
#[derive(Default)]
pub(super) struct SimulatedKeyPermits {
    keys: HashMap<Owner, Known, RandomState>,
    /// Keys whose permits each running request holds.
    held: HashMap<u64, Vec<Owner>, RandomState>,
    /// Instants at which running requests end.
    ends: BinaryHeap<Reverse<(Moment, u64)>>,
    /// Instants at which the next waiter of each key expires.
    expiries: BTreeSet<(Moment, Owner)>,
}

/// Index of a zone, and a key in it.
type Owner = (usize, Rc<[u8]>);

/// Permits of a key.
#[derive(Default)]
struct Known {
    permits: Permits<u64>,
    /// Entry of the key in `expiries`.
    expires: Option<Moment>,
}

/// A permit that a request needs before it may continue.
pub(super) struct PermitRequest {
    pub(super) owner: Owner,
    /// Limit of permits, and the maximum wait.
    pub(super) terms: Terms,
}

impl PermitRequest {
    /// Returns the permit that a limit requires, if it has `in_flight`.
    pub(super) fn of(zone: usize, key: &Rc<[u8]>, limit: Limit) -> Option<Self> {
        let terms = Terms {
            in_flight: limit.in_flight?,
            max_wait: limit.max_wait,
        };
        let owner = (zone, Rc::clone(key));
        Some(Self { owner, terms })
    }
}

impl SimulatedKeyPermits {
    /// Returns whether a request may neither run nor wait for a permit.
    ///
    /// `waits`: the request must wait for its slot. `queued`: number of requests of its key that
    /// wait for a slot.
    pub(super) fn refuses(
        &self,
        requested: &PermitRequest,
        limit: Limit,
        waits: bool,
        queued: usize,
    ) -> bool {
        let known = self.keys.get(&requested.owner);
        let is_free = self.is_free(requested);
        let waiting = queued + known.map_or(0, |known| known.permits.depth());
        let most = usize::try_from(limit.burst).unwrap_or(usize::MAX);
        (waits || !is_free) && waiting >= most
    }

    /// Returns whether a permit is free.
    pub(super) fn is_free(&self, requested: &PermitRequest) -> bool {
        let known = self.keys.get(&requested.owner);
        known.is_none_or(|known| known.permits.is_free(requested.terms.in_flight))
    }

    /// Takes a permit, or queues the request for one. Returns whether it got a permit.
    ///
    /// `joined`: instant at which the request joined.
    pub(super) fn take(&mut self, requested: &PermitRequest, number: u64, joined: Moment) -> bool {
        let PermitRequest { owner, terms } = requested;
        let known = self.keys.entry(owner.clone()).or_default();
        let is_free = known.permits.is_free(terms.in_flight);
        if is_free {
            known.permits.take(Ticket(number));
            self.held.entry(number).or_default().push(owner.clone());
        } else {
            known.permits.wait(*terms, Ticket(number), joined, number);
        }
        self.reschedule(owner);
        is_free
    }

    /// Schedules the end of a request that holds permits.
    pub(super) fn end_at(&mut self, number: u64, at: Moment) {
        if self.held.contains_key(&number) {
            self.ends.push(Reverse((at, number)));
        }
    }

    /// Returns the instant at which the next request ends or the next waiter expires.
    pub(super) fn due(&self) -> Option<Moment> {
        let end = self.ends.peek().map(|Reverse((at, _))| *at);
        let expiry = self.expiries.first().map(|(at, _)| *at);
        end.into_iter().chain(expiry).min()
    }

    /// Frees the permits of requests that have ended by `now`. Returns the waiters that got one.
    pub(super) fn take_ended(&mut self, now: Moment) -> Vec<u64> {
        let mut granted = Vec::new();
        while let Some(Reverse((at, number))) = self.ends.peek().copied()
            && at <= now
        {
            self.ends.pop();
            granted.extend(self.end(number));
        }
        granted
    }

    /// Frees the permits of a request. Returns the waiters that got one.
    pub(super) fn end(&mut self, number: u64) -> Vec<u64> {
        let held = self.held.remove(&number).unwrap_or_default();
        held.iter()
            .flat_map(|owner| self.free(owner, number))
            .collect()
    }

    /// Returns a permit that a request was given. Returns the waiters that got one.
    pub(super) fn give_back(&mut self, permit: &PermitRequest, number: u64) -> Vec<u64> {
        if let Some(held) = self.held.get_mut(&number) {
            held.retain(|owner| *owner != permit.owner);
        }
        self.free(&permit.owner, number)
    }

    /// Frees a permit of a key. Returns the waiters that got one.
    fn free(&mut self, owner: &Owner, number: u64) -> Vec<u64> {
        let mut granted = Vec::new();
        let Some(known) = self.keys.get_mut(owner) else {
            return granted;
        };
        known.permits.free(Ticket(number));
        while let Some(next) = known.permits.take_next() {
            known.permits.take(Ticket(next));
            self.held.entry(next).or_default().push(owner.clone());
            granted.push(next);
        }
        self.reschedule(owner);
        granted
    }

    /// Takes a waiter that has expired by `now`.
    pub(super) fn take_expired(&mut self, now: Moment) -> Option<u64> {
        let (_, owner) = self.expiries.first().filter(|(at, _)| *at <= now)?.clone();
        let number = self.keys.get_mut(&owner)?.permits.take_expired(now);
        self.reschedule(&owner);
        number
    }

    /// Updates the next expiry of a key. Forgets a key without any request.
    fn reschedule(&mut self, owner: &Owner) {
        let Some(known) = self.keys.get_mut(owner) else {
            return;
        };
        let expires = known.permits.expires();
        if let Some(before) = std::mem::replace(&mut known.expires, expires) {
            self.expiries.remove(&(before, owner.clone()));
        }
        self.expiries.extend(expires.map(|at| (at, owner.clone())));
        if known.permits.running() + known.permits.depth() == 0 {
            self.keys.remove(owner);
        }
    }
}
