//! Places of a key that a gateway takes from a store ahead of the requests that will use them.
//!
//! **Exactness.** A bucket gives each accepted request a place on its schedule, and places are one
//! interval apart. A request that is let through at `u` with the place of time `p` keeps the limit
//! if `u <= p <= u + burst * interval`: then no span `T` has more than `rate * T + burst + 1`. A
//! place that is taken at `t` has `t <= p <= t + burst * interval`, so whoever uses it later keeps
//! the second condition. The first one holds until `p` has passed, and then the place lapses. A
//! place in a window counts there whenever it is used, so it lapses with its window.
//!
//! **How many** are taken: half of what the requests of the last two spans of the lease's length
//! needed, the lesser of them. So a lease is nearly always used up before it ends, and a key that
//! was asked for once has none. No more are taken than are used in half of the time for which the
//! bucket has room without anybody waiting (or for which requests wait anyway). So the leases of
//! all gateways together take at most half of that room, and nobody waits or is refused for them
//! while less comes than the rate.
//!
//! **Refusals.** What the store has refused is refused here as well, until the moment at which it
//! would be accepted, at most for the lease's length. For a key that is used much, that moment
//! comes at once, and others take its place. Such a key is refused for up to a quarter of the time
//! in which its bucket would drain. Nothing of the rate is lost by that, as the next one who asks
//! takes all that was free meanwhile. This time is random, so that gateways do not ask always in
//! the same order.

mod demand;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

use super::{Algorithm, Cost, Delay, Limit, Moment, Rate};
use demand::Demand;

/// The places of one key that are taken ahead, and how many to take next.
///
/// `P` is what a place is used with. All moments are on the clock of the gateway.
#[derive(Clone, Debug)]
pub struct Lease<P> {
    /// The limit of the requests that use it. Others ask the store.
    limit: Limit,
    demand: Demand,
    /// In the order in which they are used.
    places: VecDeque<Leased<P>>,
    /// Places that nobody may use any more.
    over: Vec<Leased<P>>,
    refused: Option<(P, Moment)>,
    /// When the last place that the store has told about is over.
    reaches: Moment,
}

/// A place that was taken ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leased<P> {
    /// What it is used with.
    pub place: P,
    /// Requests before this moment may use it.
    pub usable_until: Moment,
    /// When the lease is over: then it is to be given back.
    pub ends: Moment,
}

/// What a lease says to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FromLease<P> {
    /// The request has this place.
    Place(P),
    /// The request is refused, as the store has refused another one.
    Refused(P),
}

/// How a zone decides, as far as it matters to its leases.
#[derive(Clone, Copy, Debug)]
pub struct LeaseTerms {
    /// How long places are taken ahead; zero: not at all.
    pub length: Duration,
    /// The rate of the key.
    pub rate: Rate,
    /// How the requests of the key are counted.
    pub algorithm: Algorithm,
}

/// Most places that one key takes ahead at once.
///
/// This bounds how long the store and the gateway work on one of them.
const MAX_AHEAD: u128 = 512;

impl<P: Clone> Lease<P> {
    /// A lease without places, for requests of this limit.
    pub fn new(limit: Limit, now: Moment) -> Self {
        Self {
            limit,
            demand: Demand::new(now),
            places: VecDeque::new(),
            over: Vec::new(),
            refused: None,
            reaches: Moment::default(),
        }
    }

    /// Counts a request that arrives. A limit that is not used any more gives way to another one.
    pub fn arrive(&mut self, length: Duration, limit: Limit, now: Moment) {
        if limit != self.limit && self.places.is_empty() && self.demand.is_none(length, now) {
            *self = Self {
                over: std::mem::take(&mut self.over),
                ..Self::new(limit, now)
            };
        }
        if limit == self.limit {
            self.demand.add(length, now);
        }
    }

    /// Decides a request by what is here; `None`: the store has to decide it.
    pub fn take(&mut self, limit: Limit, now: Moment) -> Option<FromLease<P>> {
        if limit != self.limit {
            return None;
        }
        while let Some(first) = self.places.pop_front() {
            if now < first.usable_until {
                return Some(FromLease::Place(first.place));
            }
            self.over.push(first);
        }
        let (refusal, until) = self.refused.as_ref()?;
        (now < *until).then(|| FromLease::Refused(refusal.clone()))
    }

    /// How many places to take beside that of a request with this limit.
    pub fn ahead(&self, terms: &LeaseTerms, limit: Limit, now: Moment) -> u32 {
        let is_for_it = limit == self.limit && limit.cost == Cost::ONE && !limit.is_unlimited();
        if !is_for_it || !self.places.is_empty() {
            return 0;
        }
        let used = u128::from(self.demand.steady(terms.length, now));
        let room = self.room(terms, now).min(terms.length).as_nanos();
        let twice = (used * room).checked_div(terms.length.as_nanos());
        let ahead = (twice.unwrap_or(0) / 2).min(MAX_AHEAD);
        u32::try_from(ahead).unwrap_or(0)
    }

    /// For how long the bucket has room without anybody waiting for it, or being refused.
    fn room(&self, terms: &LeaseTerms, now: Moment) -> Duration {
        let told = self.reaches.since(now);
        if terms.algorithm.has_windows() {
            return if told.is_zero() {
                terms.rate.period()
            } else {
                told
            };
        }
        let free = match self.limit.delay {
            Delay::Above(delay) if terms.algorithm.queues() => {
                delay.min(self.limit.ceiling(terms.rate))
            }
            _ => self.limit.ceiling(terms.rate),
        };
        terms.rate.time_for(free.into()).max(told)
    }

    /// Notes until when a place that the store has just given out may be used.
    pub fn reaches(&mut self, usable_until: Moment) {
        self.reaches = self.reaches.max(usable_until);
    }

    /// Adds a place behind the others.
    pub fn add(&mut self, place: Leased<P>) {
        self.reaches(place.usable_until);
        self.places.push_back(place);
    }

    /// Until when requests are refused, of which the store has just refused one.
    ///
    /// It was asked at `asked`, would accept another one at `retry_at`, and the bucket would drain
    /// in `drains_in`.
    pub fn refuses_until(
        &self,
        terms: &LeaseTerms,
        asked: Moment,
        retry_at: Moment,
        drains_in: Duration,
    ) -> Moment {
        let retry = retry_at.since(asked);
        let is_busy = self.demand.steady(terms.length, asked) > 1;
        let whole = if terms.algorithm.has_windows() {
            terms.rate.period() / 4
        } else {
            drains_in
        };
        let most = (whole / 4).min(terms.length);
        let pause = if is_busy {
            some_of(most, asked)
        } else {
            Duration::ZERO
        };
        asked + retry.max(pause).min(terms.length)
    }

    /// Refuses requests of this limit until then.
    pub fn refuse(&mut self, limit: Limit, refusal: P, until: Moment) {
        if limit == self.limit {
            self.refused = Some((refusal, until));
        }
    }

    /// Takes out all places whose lease is over, the last one first.
    pub fn end(&mut self, now: Moment) -> Vec<Leased<P>> {
        let mut ended = std::mem::take(&mut self.over);
        while self.places.front().is_some_and(|it| it.ends <= now) {
            ended.extend(self.places.pop_front());
        }
        ended.reverse();
        ended
    }

    /// When the lease of the next place is over; `None` if there are no places.
    pub fn next_end(&self) -> Option<Moment> {
        let first = self.over.first().or(self.places.front())?;
        Some(first.ends)
    }

    /// Takes out all places, the last one first. Nothing is refused here any more.
    pub fn clear(&mut self) -> Vec<Leased<P>> {
        self.refused = None;
        let mut all = std::mem::take(&mut self.over);
        all.extend(self.places.drain(..));
        all.reverse();
        all
    }

    /// How many places are here.
    pub fn places(&self) -> usize {
        self.places.len() + self.over.len()
    }
}

/// A part of a span, from half of it on, that differs from moment to moment.
fn some_of(span: Duration, now: Moment) -> Duration {
    // Multiplicative hashing: neighbouring moments get numbers that are far apart.
    let hash = now.as_nanos().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 48;
    let half = span / 2;
    half + half.mul_f64(f64::from(u16::try_from(hash).unwrap_or(0)) / f64::from(u16::MAX))
}
