//! The bucket of a key and the requests that wait for it, in order of departure.
//!
//! Each accepted request raises the *level* of the bucket by its cost (its *charge*), and the level
//! leaks at the rate. A request whose level is above its `delay` waits; with `nodelay`, none waits.
//! Positions are on the *tick line*: time in units in which the interval between two requests is a
//! whole number. The *tail* is the position at which the bucket will be empty.
//!
//! The bucket decides whether a request passes, waits or is rejected: see `bucket`. `lane` keeps
//! the waiters, `ledger` records which charges can be refunded in full, and `settle` changes
//! charges after a departure.

mod charge;
mod lane;
mod ledger;
#[cfg(test)]
mod model;
#[cfg(test)]
mod properties;
mod settle;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use super::bucket::{Bucket, line, moment};
use super::stable_hash::MixingHasher;
use super::{Cost, Delay, Limit, Moment, Rate, Verdict};
pub use charge::Charge;
use lane::Lane;
use ledger::Ledger;

/// Identifies one join at one queue.
///
/// The caller chooses it. Waiters at the same time must have different tickets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// A waiter that is removed from the queue because it is due.
#[derive(Debug)]
pub struct Departure<W, C = Charge> {
    /// Instant at which the waiter was due: now or earlier.
    pub due: Moment,
    /// Charge of the waiter.
    pub charge: C,
    /// The waiter.
    pub waiter: W,
}

/// The bucket of a key and its waiters, in order of departure.
///
/// A waiter leaves when the level that it made on arrival has leaked down to its `delay`. Requests
/// with the same `delay` wait in one *lane*: first in, first out, at least one interval apart. A
/// queue has one lane for each delay in use by the routes of its zone: nearly always one.
#[derive(Clone, Debug)]
pub struct Queue<W> {
    rate: Rate,
    bucket: Bucket,
    /// One lane for each `delay` that waiters have.
    lanes: Vec<Lane<W>>,
    /// Arrival number of each waiter. Clients cannot choose tickets, so a mixing hash is enough.
    arrivals: HashMap<Ticket, u64, BuildHasherDefault<MixingHasher>>,
    /// Arrival number of the next accepted request. Numbers increase in order of arrival.
    next_arrival: u64,
    /// Total charge of the waiters.
    costs: u64,
    /// Knows which charges can be refunded in full.
    ledger: Ledger,
    /// Instant at which the last accepted request joined.
    last_joined: Moment,
    /// Instant at which this queue began. Charges of earlier requests have no arrival number here.
    opened: Moment,
    /// Instant of the last change of the rate.
    retuned: Moment,
    /// Charges with a lower arrival number are forgiven: they are not refunded any more.
    ///
    /// Only a waiter that leaves before it is due still returns its charge.
    forgiven: u64,
}

impl<W> Queue<W> {
    /// Creates an empty queue that continues from `bucket` at `now`.
    pub fn new(rate: Rate, bucket: Bucket, now: Moment) -> Self {
        Self {
            rate,
            bucket,
            lanes: Vec::new(),
            arrivals: HashMap::default(),
            next_arrival: 0,
            costs: 0,
            ledger: Ledger::default(),
            last_joined: now,
            opened: now,
            retuned: now,
            forgiven: 0,
        }
    }

    /// Creates a queue that continues from `bucket` at `now`.
    ///
    /// `last` is the instant at which the last request was charged. If that request cost 1 and
    /// found the bucket empty, it counts as a request of this queue: its charge,
    /// [`Charge::of_passing`], can be refunded here.
    pub fn resumed(rate: Rate, bucket: Bucket, last: Moment, now: Moment) -> Self {
        let mut queue = Self::new(rate, bucket, now);
        // Only such a request leaves the tail at its own instant, if the rate has not changed
        // since.
        if bucket.tail() == line(rate, last) {
            (queue.opened, queue.last_joined, queue.retuned) = (last, last, last);
            queue.ledger.charge(queue.next_arrival, 0);
            queue.next_arrival += 1;
        }
        queue
    }

    /// Returns the bucket in its current state.
    pub fn bucket(&self) -> Bucket {
        self.bucket
    }

    /// Returns the effective rate.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// Returns the number of waiters.
    pub fn depth(&self) -> usize {
        self.arrivals.len()
    }

    /// Returns the total charge of the waiters.
    pub fn costs(&self) -> u64 {
        self.costs
    }

    /// Returns when the oldest waiter joined. `None`: there are no waiters.
    pub fn oldest(&self) -> Option<Moment> {
        self.lanes.iter().filter_map(Lane::oldest).min()
    }

    /// Returns the first waiter of each lane. One of them is the oldest waiter.
    pub fn first_waiters(&self) -> impl Iterator<Item = &W> {
        self.lanes.iter().filter_map(|lane| lane.waiters().next())
    }

    /// Returns all waiters, lane by lane, in the order of each lane.
    pub fn waiters(&self) -> impl Iterator<Item = &W> {
        self.lanes.iter().flat_map(Lane::waiters)
    }

    /// Returns the due instant of each waiter, lane by lane, if no waiter leaves before.
    pub fn schedule(&self) -> impl Iterator<Item = (Moment, &W)> {
        let request = self.rate.ticks_per_request();
        let lanes = self.lanes.iter();
        let positions = lanes.flat_map(move |lane| lane.positions(request));
        positions.map(|(position, waiter)| (moment(self.rate, position), waiter))
    }

    /// Returns all waiters for changes, lane by lane, in the order of each lane.
    pub fn waiters_mut(&mut self) -> impl Iterator<Item = &mut W> {
        self.lanes.iter_mut().flat_map(Lane::waiters_mut)
    }

    /// Decides on a request, and charges it unless it is rejected. Does not make it wait.
    ///
    /// All waiters that are due by `now` must have been [taken](Self::take_due) before, because the
    /// verdict depends on the waiters that remain. The charge is `None` if the request is rejected.
    pub fn charge(&mut self, limit: Limit, now: Moment) -> (Verdict, Option<Charge>) {
        debug_assert!(
            self.due().is_none_or(|due| due > now),
            "due waiters are taken before others join"
        );
        let verdict = self.bucket.decide(self.rate, limit, now);
        if let Verdict::Reject(_) = verdict {
            return (verdict, None);
        }
        let charge = Charge {
            arrival: self.next_arrival,
            at: now,
            cost: limit.cost,
        };
        self.next_arrival += 1;
        self.last_joined = now;
        // The ledger records the level that the request found, in whole requests. That is how far
        // ahead of `now` a request of cost 1 leaves the tail.
        let request = self.rate.ticks_per_request();
        let level = self.tail_before(limit.cost) - line(self.rate, now);
        // At an unlimited rate no request has ticks, and the level never rises.
        let level = level.checked_div(request).unwrap_or_default();
        self.ledger
            .charge(charge.arrival, usize::try_from(level).unwrap_or(usize::MAX));
        (verdict, Some(charge))
    }

    /// Makes the last charged request wait, as its verdict says.
    pub fn seat(&mut self, charge: Charge, delay: u32, ticket: Ticket, waiter: W) {
        let (tail, request) = (self.tail_before(charge.cost), self.rate.ticks_per_request());
        self.lane(delay, tail - request)
            .push(tail, request, charge, ticket, waiter);
        self.arrivals.insert(ticket, charge.arrival);
        self.costs += u64::from(charge.cost.get());
    }

    /// [Decides](Self::charge) on a request.
    ///
    /// If it has to wait, creates `waiter` and [adds](Self::seat) it.
    pub fn join(
        &mut self,
        limit: Limit,
        ticket: Ticket,
        now: Moment,
        waiter: impl FnOnce() -> W,
    ) -> (Verdict, Option<Charge>) {
        let (verdict, charge) = self.charge(limit, now);
        if let (Verdict::Delay { .. }, Some(charge), Delay::Above(delay)) =
            (verdict, charge, limit.delay)
        {
            self.seat(charge, delay, ticket, waiter());
        }
        (verdict, charge)
    }

    /// Returns when the next waiter is due. `None`: there are no waiters.
    pub fn due(&self) -> Option<Moment> {
        self.first().map(|(due, _)| due)
    }

    /// Removes and returns the next waiter that is due at `now`, if there is one.
    pub fn take_due(&mut self, now: Moment) -> Option<Departure<W>> {
        let (due, found) = self.first().filter(|(due, _)| *due <= now)?;
        let lane = &mut self.lanes[found];
        let (charge, ticket, waiter) = lane.pop(self.rate.ticks_per_request())?;
        if lane.is_empty() {
            self.lanes.remove(found);
        }
        self.arrivals.remove(&ticket);
        self.costs -= u64::from(charge.cost.get());
        Some(Departure {
            due,
            charge,
            waiter,
        })
    }

    /// Removes a waiter before it is due. `None`: no such waiter, or it has left.
    ///
    /// Its charge is refunded and the waiters behind it move up, as if it had never joined.
    ///
    /// A [refund](Self::refund) may have made the waiter due before now. Then the caller must take
    /// it instead. If the caller removes it all the same, its charge is returned as a refund.
    pub fn leave(&mut self, ticket: Ticket) -> Option<W> {
        let (nth, index) = self.find(ticket)?;
        self.arrivals.remove(&ticket);
        let charge = self.lanes[nth].charge(index);
        self.costs -= u64::from(charge.cost.get());
        // As of the last join. Time since then does not change by how much the charge moved the
        // tail.
        let refund = self.refundable(charge, charge.cost, self.last_joined);
        let waiter = self.lanes[nth].leave(index, self.rate.ticks_per_request());
        self.lanes.retain(|lane| !lane.is_empty());
        self.give_back(charge.arrival, charge.cost, refund);
        waiter
    }

    /// Returns the index of a waiter's lane, and its index there. `None`: there is no such waiter.
    fn find(&self, ticket: Ticket) -> Option<(usize, usize)> {
        let arrival = *self.arrivals.get(&ticket)?;
        let mut lanes = self.lanes.iter().enumerate();
        lanes.find_map(|(nth, lane)| Some((nth, lane.index(arrival)?)))
    }

    /// Returns the tail that the bucket would have if the last request had cost 1.
    ///
    /// `cost` is the actual cost of the last request.
    fn tail_before(&self, cost: Cost) -> i128 {
        self.bucket.tail() - i128::from(cost.above_one()) * self.rate.ticks_per_request()
    }

    /// Changes the rate from `now` on.
    ///
    /// Leaked charges stay leaked. All waiters get new due instants and keep their order.
    pub fn retune(&mut self, rate: Rate, now: Moment) {
        self.bucket.retune(self.rate, rate, now);
        for lane in &mut self.lanes {
            lane.retune(self.rate, rate, now);
        }
        self.rate = rate;
        self.retuned = now;
    }

    /// Forgives all charges except the charges of the waiters.
    ///
    /// The waiters move up as if no other request had come, but stay an interval apart. The first
    /// leaves within one interval, the others after it in their order. A request that joins later
    /// with the same `delay` leaves after them. So enough stays charged for each `delay` to keep
    /// the waiters apart.
    ///
    /// All waiters that are due by `now` must have been [taken](Self::take_due) before.
    pub fn forget(&mut self, now: Moment) {
        self.forgiven = self.next_arrival;
        self.ledger = Ledger::default();
        let mut charges: Vec<Charge> = self.lanes.iter().flat_map(Lane::charges).collect();
        charges.sort_unstable_by_key(|charge| charge.arrival);
        let request = self.rate.ticks_per_request();
        // Base of the new positions: the earliest tail that the head of any lane found. Each waiter
        // has a whole number of requests as its distance from it.
        let tails = self.lanes.iter().map(|lane| lane.tail_before_head(request));
        let Some(mut base) = tails.min() else {
            self.bucket = Bucket::new();
            return;
        };
        // The level that each waiter would have found: the total cost of the waiters before it.
        let (mut levels, mut total) = (Vec::with_capacity(charges.len()), 0_u64);
        for charge in &charges {
            let level = usize::try_from(total).unwrap_or(usize::MAX);
            self.ledger.charge(charge.arrival, level);
            levels.push(total);
            total += u64::from(charge.cost.get());
        }
        for lane in &mut self.lanes {
            lane.renumber(base, |arrival| {
                let index = charges.partition_point(|charge| charge.arrival < arrival);
                levels.get(index).map_or(total, |level| level + 1)
            });
        }
        let heads = self.lanes.iter().filter_map(|lane| lane.head(request));
        let first = heads.map(|(position, _)| position).min().unwrap_or(base);
        // Moves all up until the first leaves within one interval, by whole requests, so that the
        // lanes stay whole requests apart.
        let early = (first - line(self.rate, now) - 1).div_euclid(request);
        let early = early.max(0) * request;
        for lane in &mut self.lanes {
            lane.shift(-early);
        }
        base -= early;
        self.bucket = Bucket::until(base + i128::from(total) * request);
    }

    /// Removes and returns all waiters in order. The bucket keeps their charges.
    pub fn reject_all(&mut self) -> Vec<W> {
        let mut rejected = Vec::with_capacity(self.depth());
        while let Some((_, found)) = self.first() {
            let lane = &mut self.lanes[found];
            let left = lane.pop(self.rate.ticks_per_request());
            rejected.extend(left.map(|(_, _, waiter)| waiter));
            if lane.is_empty() {
                self.lanes.remove(found);
            }
        }
        self.arrivals.clear();
        self.costs = 0;
        rejected
    }

    /// Returns the lane whose head is due first: the due instant, and the index of the lane.
    ///
    /// If two heads are due at the same instant, the head that joined first wins.
    fn first(&self) -> Option<(Moment, usize)> {
        let request = self.rate.ticks_per_request();
        let heads = self.lanes.iter().enumerate().filter_map(|(index, lane)| {
            let (position, arrival) = lane.head(request)?;
            Some((moment(self.rate, position), arrival, index))
        });
        heads.min().map(|(due, _, index)| (due, index))
    }

    /// Returns the lane of a `delay`. Creates it at the position `tail` if there is none.
    fn lane(&mut self, delay: u32, tail: i128) -> &mut Lane<W> {
        let found = self.lanes.iter().position(|lane| lane.delay == delay);
        let found = found.unwrap_or_else(|| {
            self.lanes.push(Lane::new(delay, tail));
            self.lanes.len() - 1
        });
        &mut self.lanes[found]
    }
}
