use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};
use std::rc::Rc;

use foldhash::fast::RandomState;
use limit::{Limit, Moment, Places, Terms, Ticket};

/// The places of the keys of all zones, with the requests that run and those that wait for one.
#[derive(Default)]
pub(super) struct KeyPlaces {
    keys: HashMap<Owner, Known, RandomState>,
    /// Whose places each running request holds.
    held: HashMap<u64, Vec<Owner>, RandomState>,
    /// When running requests end.
    ends: BinaryHeap<Reverse<(Moment, u64)>>,
    /// When the next waiter of a key has waited long enough.
    expiries: BTreeSet<(Moment, Owner)>,
}

/// A zone and a key in it.
type Owner = (usize, Rc<[u8]>);

#[derive(Default)]
struct Known {
    places: Places<u64>,
    /// Its entry in `expiries`.
    expires: Option<Moment>,
}

/// A place that a request needs before it may go on.
pub(super) struct PlaceRequest {
    pub(super) owner: Owner,
    pub(super) terms: Terms,
}

impl PlaceRequest {
    /// The place that a limit asks for, if it bounds the running requests.
    pub(super) fn of(zone: usize, key: &Rc<[u8]>, limit: Limit) -> Option<Self> {
        let terms = Terms {
            in_flight: limit.in_flight?,
            max_wait: limit.max_wait,
        };
        let owner = (zone, Rc::clone(key));
        Some(Self { owner, terms })
    }
}

impl KeyPlaces {
    /// Whether a request may neither run nor wait: `queued` others of its key wait for their time.
    pub(super) fn refuses(
        &self,
        wanted: &PlaceRequest,
        limit: Limit,
        waits: bool,
        queued: usize,
    ) -> bool {
        let known = self.keys.get(&wanted.owner);
        let is_free = self.is_free(wanted);
        let waiting = queued + known.map_or(0, |known| known.places.depth());
        let most = usize::try_from(limit.burst).unwrap_or(usize::MAX);
        (waits || !is_free) && waiting >= most
    }

    /// Whether a place is free.
    pub(super) fn is_free(&self, wanted: &PlaceRequest) -> bool {
        let known = self.keys.get(&wanted.owner);
        known.is_none_or(|known| known.places.is_free(wanted.terms.in_flight))
    }

    /// Takes a place for a request that joined then, or makes it wait for one. Whether it has one.
    pub(super) fn take(&mut self, wanted: &PlaceRequest, number: u64, joined: Moment) -> bool {
        let PlaceRequest { owner, terms } = wanted;
        let known = self.keys.entry(owner.clone()).or_default();
        let is_free = known.places.is_free(terms.in_flight);
        if is_free {
            known.places.take(Ticket(number));
            self.held.entry(number).or_default().push(owner.clone());
        } else {
            known.places.wait(*terms, Ticket(number), joined, number);
        }
        self.reschedule(owner);
        is_free
    }

    /// A request that holds places will end then.
    pub(super) fn end_at(&mut self, number: u64, at: Moment) {
        if self.held.contains_key(&number) {
            self.ends.push(Reverse((at, number)));
        }
    }

    /// When the next request ends, or has waited long enough.
    pub(super) fn due(&self) -> Option<Moment> {
        let end = self.ends.peek().map(|Reverse((at, _))| *at);
        let expiry = self.expiries.first().map(|(at, _)| *at);
        end.into_iter().chain(expiry).min()
    }

    /// Frees the places of requests that have ended by `now`. Returns who has one of them now.
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

    /// Frees the places of a request. Returns who has one of them now.
    pub(super) fn end(&mut self, number: u64) -> Vec<u64> {
        let mut granted = Vec::new();
        for owner in self.held.remove(&number).unwrap_or_default() {
            granted.extend(self.free(&owner, number));
        }
        granted
    }

    /// A request gives back a place that it was given. Returns who has it now.
    pub(super) fn give_back(&mut self, place: &PlaceRequest, number: u64) -> Vec<u64> {
        if let Some(held) = self.held.get_mut(&number) {
            held.retain(|owner| *owner != place.owner);
        }
        self.free(&place.owner, number)
    }

    fn free(&mut self, owner: &Owner, number: u64) -> Vec<u64> {
        let mut granted = Vec::new();
        let Some(known) = self.keys.get_mut(owner) else {
            return granted;
        };
        known.places.free(Ticket(number));
        while let Some(next) = known.places.take_next() {
            known.places.take(Ticket(next));
            self.held.entry(next).or_default().push(owner.clone());
            granted.push(next);
        }
        self.reschedule(owner);
        granted
    }

    /// Takes a request that has waited long enough by `now`.
    pub(super) fn take_expired(&mut self, now: Moment) -> Option<u64> {
        let (_, owner) = self.expiries.first().filter(|(at, _)| *at <= now)?.clone();
        let number = self.keys.get_mut(&owner)?.places.take_expired(now);
        self.reschedule(&owner);
        number
    }

    /// Updates when the next waiter of a key has waited long enough. Forgets a key without any
    /// request.
    fn reschedule(&mut self, owner: &Owner) {
        let Some(known) = self.keys.get_mut(owner) else {
            return;
        };
        let expires = known.places.expires();
        if let Some(before) = std::mem::replace(&mut known.expires, expires) {
            self.expiries.remove(&(before, owner.clone()));
        }
        self.expiries.extend(expires.map(|at| (at, owner.clone())));
        if known.places.running() + known.places.depth() == 0 {
            self.keys.remove(owner);
        }
    }
}
