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
    states: HashMap<ZoneKey, KeyState, RandomState>,
    /// Keys whose permits each running request holds.
    held: HashMap<u64, Vec<ZoneKey>, RandomState>,
    /// Instants at which running requests end.
    ends: BinaryHeap<Reverse<(Moment, u64)>>,
    /// Instants at which the next waiter of each key expires.
    expiries: BTreeSet<(Moment, ZoneKey)>,
}

/// Index of a zone, and a key in it.
type ZoneKey = (usize, Rc<[u8]>);

/// Permits of a key, with its running requests and waiters.
#[derive(Default)]
struct KeyState {
    permits: Permits<u64>,
    /// Instant of the key's entry in `expiries`.
    expires: Option<Moment>,
}

/// A permit that a request needs before it may continue.
pub(super) struct PermitRequest {
    pub(super) zone_key: ZoneKey,
    /// Number of permits of the key, and the maximum wait for one.
    pub(super) terms: Terms,
}

impl PermitRequest {
    /// Returns the permit that a limit requires, if it has `in_flight`.
    pub(super) fn of(zone: usize, key: &Rc<[u8]>, limit: Limit) -> Option<Self> {
        let terms = Terms {
            in_flight: limit.in_flight?,
            max_wait: limit.max_wait,
        };
        let zone_key = (zone, Rc::clone(key));
        Some(Self { zone_key, terms })
    }
}

impl SimulatedKeyPermits {
    /// Returns whether a request may neither run nor wait for a permit, so that it is rejected.
    ///
    /// `waits_for_slot`: the zone lets the request wait. `queued`: number of requests of its key
    /// that wait for a slot.
    pub(super) fn refuses(
        &self,
        requested: &PermitRequest,
        limit: Limit,
        waits_for_slot: bool,
        queued: usize,
    ) -> bool {
        let state = self.states.get(&requested.zone_key);
        let is_free = self.is_free(requested);
        let waiting = queued + state.map_or(0, |state| state.permits.depth());
        let max_waiting = usize::try_from(limit.burst).unwrap_or(usize::MAX);
        (waits_for_slot || !is_free) && waiting >= max_waiting
    }

    /// Returns whether a permit is free.
    pub(super) fn is_free(&self, requested: &PermitRequest) -> bool {
        let state = self.states.get(&requested.zone_key);
        state.is_none_or(|state| state.permits.is_free(requested.terms.in_flight))
    }

    /// Takes a permit, or queues the request for one. Returns whether it got a permit.
    ///
    /// `joined`: instant at which the request joined.
    pub(super) fn take(&mut self, requested: &PermitRequest, number: u64, joined: Moment) -> bool {
        let PermitRequest { zone_key, terms } = requested;
        let state = self.states.entry(zone_key.clone()).or_default();
        let is_free = state.permits.is_free(terms.in_flight);
        if is_free {
            state.permits.take(Ticket(number));
            self.held.entry(number).or_default().push(zone_key.clone());
        } else {
            state.permits.wait(*terms, Ticket(number), joined, number);
        }
        self.reschedule(zone_key);
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

    /// Frees all permits of a request. Returns the waiters that got one.
    pub(super) fn end(&mut self, number: u64) -> Vec<u64> {
        let held = self.held.remove(&number).unwrap_or_default().into_iter();
        held.flat_map(|zone_key| self.free(&zone_key, number))
            .collect()
    }

    /// Frees one of the permits of a request. Returns the waiters that got one.
    pub(super) fn give_back(&mut self, permit: &PermitRequest, number: u64) -> Vec<u64> {
        if let Some(held) = self.held.get_mut(&number) {
            held.retain(|zone_key| *zone_key != permit.zone_key);
        }
        self.free(&permit.zone_key, number)
    }

    /// Frees a permit of a key. Returns the waiters that got one.
    fn free(&mut self, zone_key: &ZoneKey, number: u64) -> Vec<u64> {
        let mut granted = Vec::new();
        let Some(state) = self.states.get_mut(zone_key) else {
            return granted;
        };
        state.permits.free(Ticket(number));
        while let Some(next) = state.permits.take_next() {
            state.permits.take(Ticket(next));
            self.held.entry(next).or_default().push(zone_key.clone());
            granted.push(next);
        }
        self.reschedule(zone_key);
        granted
    }

    /// Takes a waiter that has expired by `now`.
    pub(super) fn take_expired(&mut self, now: Moment) -> Option<u64> {
        let (_, zone_key) = self.expiries.first().filter(|(at, _)| *at <= now)?.clone();
        let number = self.states.get_mut(&zone_key)?.permits.take_expired(now);
        self.reschedule(&zone_key);
        number
    }

    /// Updates the next expiry of a key. Forgets a key without any request.
    fn reschedule(&mut self, zone_key: &ZoneKey) {
        let Some(state) = self.states.get_mut(zone_key) else {
            return;
        };
        let expires = state.permits.expires();
        if let Some(before) = std::mem::replace(&mut state.expires, expires) {
            self.expiries.remove(&(before, zone_key.clone()));
        }
        self.expiries
            .extend(expires.map(|at| (at, zone_key.clone())));
        if state.permits.running() + state.permits.depth() == 0 {
            self.states.remove(zone_key);
        }
    }
}
