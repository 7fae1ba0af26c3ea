//! Slots of a key that a gateway takes from the store before requests need them.
//!
//! Several gateways share a key. Its bucket is in the store, which *grants* each request a slot, or
//! *refuses* it. A *lease* is a slot that a gateway takes in advance, for a short time: it saves
//! the next request a query.
//!
//! **Exactness.** A bucket gives each accepted request a slot on its schedule, and slots are one
//! interval apart. A request that passes at `u` with the slot of time `p` keeps the limit if
//! `u <= p <= u + burst * interval`: then no span `T` has more than `rate * T + burst + 1`. A slot
//! that is taken at `t` has `t <= p <= t + burst * interval`, so a later request keeps the second
//! condition. The first condition holds until `p` has passed, and then the slot expires. A slot in
//! a window counts there whenever it is used, so it expires with its window.
//!
//! **Number.** Let `n` be the smaller of the request counts of the last two intervals, each as long
//! as a lease. A gateway leases `n / 2` slots. So a lease is nearly always used up before it ends,
//! and a key that was requested once has none.
//!
//! The number is also at most half of the slots that are used during the *room* of the bucket. The
//! room is the time in which the bucket drains from the highest level at which a request neither
//! waits nor is refused. If a granted slot is later, the room lasts until that slot. So the leases
//! of all gateways together take at most half of the room. While less comes than the rate, no
//! request waits or is refused because of them.
//!
//! **Refusals.** After the store has refused a request, the gateway refuses here as well, until the
//! instant of the store's next acceptance, at most for the lease's length. For a busy key, that
//! instant comes at once, and other gateways take the slot. Such a key is refused for up to a
//! quarter of the time in which its bucket would drain. This loses nothing of the rate, because the
//! next request takes all slots that became free meanwhile. The duration is random, so that
//! gateways do not always send in the same order.

mod demand;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

use super::stable_hash::spread;
use super::{Algorithm, Cost, Delay, Limit, Moment, Rate};
use demand::RecentRequests;

/// Leased slots of one key, and the number to lease next.
///
/// `P` is a slot or a refusal, in the form that its user needs. All instants are on the clock of
/// the gateway.
#[derive(Clone, Debug)]
pub struct Lease<P> {
    /// Limit of the requests that use the lease. Requests with another limit go to the store.
    limit: Limit,
    demand: RecentRequests,
    /// Slots, in the order in which they are used.
    slots: VecDeque<Leased<P>>,
    /// Slots that may not be used any more, and are not returned yet.
    unusable: Vec<Leased<P>>,
    /// Refusal of the store, and the instant until which requests are refused because of it.
    refused: Option<(P, Moment)>,
    /// Instant until which the last granted slot is usable.
    granted_until: Moment,
}

/// Slot that was leased.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leased<P> {
    /// The slot, in the form that its user needs.
    pub slot: P,
    /// Instant before which a request may use it.
    pub usable_until: Moment,
    /// End of the lease: then the slot must be returned.
    pub ends: Moment,
}

/// Answer of a lease to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseAnswer<P> {
    /// The request has this slot.
    Slot(P),
    /// The request is refused, because the store has refused another one.
    Refused(P),
}

/// Parameters of a zone that concern its leases.
#[derive(Clone, Copy, Debug)]
pub struct LeaseTerms {
    /// Length of a lease; zero: no leases.
    pub length: Duration,
    /// Rate of the key.
    pub rate: Rate,
    /// Algorithm of the key.
    pub algorithm: Algorithm,
}

/// Upper bound of the slots that one key leases at once.
///
/// It bounds the time that the store and the gateway spend on one lease.
const MAX_AHEAD: u128 = 512;

impl<P: Clone> Lease<P> {
    /// Returns a lease without slots, for requests of this limit.
    pub fn new(limit: Limit, now: Moment) -> Self {
        Self {
            limit,
            demand: RecentRequests::new(now),
            slots: VecDeque::new(),
            unusable: Vec::new(),
            refused: None,
            granted_until: Moment::default(),
        }
    }

    /// Counts a request that arrives. Switches to its limit if the current one is no longer used.
    pub fn arrive(&mut self, length: Duration, limit: Limit, now: Moment) {
        if limit != self.limit && self.slots.is_empty() && self.demand.is_none(length, now) {
            *self = Self {
                unusable: std::mem::take(&mut self.unusable),
                ..Self::new(limit, now)
            };
        }
        if limit == self.limit {
            self.demand.add(length, now);
        }
    }

    /// Decides on a request locally; `None`: the store must decide.
    pub fn take(&mut self, limit: Limit, now: Moment) -> Option<LeaseAnswer<P>> {
        if limit != self.limit {
            return None;
        }
        while let Some(first) = self.slots.pop_front() {
            if now < first.usable_until {
                return Some(LeaseAnswer::Slot(first.slot));
            }
            self.unusable.push(first);
        }
        let (refusal, until) = self.refused.as_ref()?;
        (now < *until).then(|| LeaseAnswer::Refused(refusal.clone()))
    }

    /// Returns the number of slots to take in advance, together with the slot of a request.
    ///
    /// `limit` is that of the request.
    pub fn ahead(&self, terms: &LeaseTerms, limit: Limit, now: Moment) -> u32 {
        let may_lease = limit == self.limit && limit.cost == Cost::ONE && !limit.is_unlimited();
        if !may_lease || !self.slots.is_empty() {
            return 0;
        }
        let used = u128::from(self.demand.steady(terms.length, now));
        let room = self.room(terms, now).min(terms.length).as_nanos();
        let used_in_room = (used * room).checked_div(terms.length.as_nanos());
        let ahead = (used_in_room.unwrap_or(0) / 2).min(MAX_AHEAD);
        u32::try_from(ahead).unwrap_or(0)
    }

    /// Returns the duration for which the bucket has room without waiting or refusals.
    fn room(&self, terms: &LeaseTerms, now: Moment) -> Duration {
        let granted = self.granted_until.since(now);
        if terms.algorithm.has_windows() {
            return if granted.is_zero() {
                terms.rate.period()
            } else {
                granted
            };
        }
        let free = match self.limit.delay {
            Delay::Above(delay) if terms.algorithm.queues() => {
                delay.min(self.limit.ceiling(terms.rate))
            }
            _ => self.limit.ceiling(terms.rate),
        };
        terms.rate.time_for(free.into()).max(granted)
    }

    /// Records until when a slot is usable that the store has just granted to a request.
    pub fn note_granted(&mut self, usable_until: Moment) {
        self.granted_until = self.granted_until.max(usable_until);
    }

    /// Adds a slot behind the others.
    pub fn add(&mut self, slot: Leased<P>) {
        self.note_granted(slot.usable_until);
        self.slots.push_back(slot);
    }

    /// Returns the instant until which requests are refused, after the store has refused one.
    ///
    /// The request was sent at `sent`. The store would accept another one at `retry_at`, and the
    /// bucket would drain in `drains_in`.
    pub fn refusal_end(
        &self,
        terms: &LeaseTerms,
        sent: Moment,
        retry_at: Moment,
        drains_in: Duration,
    ) -> Moment {
        let retry = retry_at.since(sent);
        let is_busy = self.demand.steady(terms.length, sent) > 1;
        // Windows do not drain: a quarter of the period stands for that time.
        let drain_time = if terms.algorithm.has_windows() {
            terms.rate.period() / 4
        } else {
            drains_in
        };
        let longest = (drain_time / 4).min(terms.length);
        let pause = if is_busy {
            // Half of the longest pause, and up to the whole of it.
            (longest / 2).mul_f64(1.0 + spread(sent.as_nanos()))
        } else {
            Duration::ZERO
        };
        sent + retry.max(pause).min(terms.length)
    }

    /// Refuses requests of this limit until this instant.
    pub fn refuse(&mut self, limit: Limit, refusal: P, until: Moment) {
        if limit == self.limit {
            self.refused = Some((refusal, until));
        }
    }

    /// Removes all slots whose lease has ended, the last one first.
    pub fn end(&mut self, now: Moment) -> Vec<Leased<P>> {
        let mut ended = std::mem::take(&mut self.unusable);
        while self.slots.front().is_some_and(|it| it.ends <= now) {
            ended.extend(self.slots.pop_front());
        }
        ended.reverse();
        ended
    }

    /// Returns the next instant at which a slot must be returned; `None` without slots.
    pub fn next_end(&self) -> Option<Moment> {
        let first = self.unusable.first().or(self.slots.front())?;
        Some(first.ends)
    }

    /// Removes all slots, the last one first. Ends local refusals.
    pub fn clear(&mut self) -> Vec<Leased<P>> {
        self.refused = None;
        let mut all = std::mem::take(&mut self.unusable);
        all.extend(self.slots.drain(..));
        all.reverse();
        all
    }

    /// Returns the number of slots, usable or not.
    pub fn slots(&self) -> usize {
        self.slots.len() + self.unusable.len()
    }
}
