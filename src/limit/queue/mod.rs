mod lane;
mod ledger;
#[cfg(test)]
mod model;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use super::bucket::{Bucket, line, moment};
use super::{Delay, Limit, Moment, Rate, Verdict};
use lane::Lane;
use ledger::Ledger;

/// Names one join at one queue. Whoever joins chooses it; no two that wait at the same time share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ticket(pub u64);

/// What an accepted request was charged, to be shown when the charge is given back unused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charge {
    place: u64,
    at: Moment,
}

impl Charge {
    /// What a request was charged that no queue knows of: it came and went on at `at`.
    #[must_use]
    pub fn of_passing(at: Moment) -> Self {
        Self { place: 0, at }
    }

    /// When the request joined.
    #[must_use]
    pub fn at(&self) -> Moment {
        self.at
    }
}

/// A waiter whose turn has come.
#[derive(Debug)]
pub struct Departure<W, C = Charge> {
    /// When it was due; at or before now.
    pub due: Moment,
    /// What it was charged.
    pub charge: C,
    /// The waiter itself.
    pub waiter: W,
}

/// A key's bucket and those who wait at it, in their order of departure.
///
/// Whoever waits leaves when the level that it found has leaked down to its `delay`. Requests with the same
/// `delay` wait in one *lane*: first in, first out, at least one interval apart. A queue has as many lanes as the
/// routes that share its zone have delays in use: nearly always one.
#[derive(Clone, Debug)]
pub struct Queue<W> {
    rate: Rate,
    bucket: Bucket,
    lanes: Vec<Lane<W>>,
    seats: HashMap<Ticket, Charge>,
    /// The place of the next accepted request; places count up in order of arrival.
    next: u64,
    /// Which charges can be given back whole.
    ledger: Ledger,
    /// When the last accepted request came.
    last: Moment,
    /// Whoever was charged before has no place here.
    opened: Moment,
    /// Since when the rate has been the same.
    retuned: Moment,
    /// Whoever was charged at a place before this and does not wait has been forgiven: nothing is left to give back.
    forgiven: u64,
}

impl<W> Queue<W> {
    /// An empty queue that goes on from `bucket` at `now`.
    #[must_use]
    pub fn new(rate: Rate, bucket: Bucket, now: Moment) -> Self {
        Self {
            rate,
            bucket,
            lanes: Vec::new(),
            seats: HashMap::new(),
            next: 0,
            ledger: Ledger::default(),
            last: now,
            opened: now,
            retuned: now,
            forgiven: 0,
        }
    }

    /// The bucket as it stands.
    #[must_use]
    pub fn bucket(&self) -> Bucket {
        self.bucket
    }

    /// The rate in force.
    #[must_use]
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// How many wait.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.seats.len()
    }

    /// When the one who has waited longest joined, if anybody waits.
    #[must_use]
    pub fn oldest(&self) -> Option<Moment> {
        self.lanes.iter().filter_map(Lane::oldest).min()
    }

    /// Those who wait, lane by lane, each lane in its order.
    pub fn waiters(&self) -> impl Iterator<Item = &W> {
        self.lanes.iter().flat_map(Lane::waiters)
    }

    /// Judges a request and charges it unless it is rejected, but gives it no place to wait.
    ///
    /// Those who are due by `now` must have been [taken](Self::take_due) before: their time is over, and a new
    /// request is judged by what is left. The charge is `None` where the request was rejected.
    pub fn charge(&mut self, limit: Limit, now: Moment) -> (Verdict, Option<Charge>) {
        debug_assert!(
            self.due().is_none_or(|due| due > now),
            "those who are due leave before others join"
        );
        let verdict = self.bucket.decide(self.rate, limit, now);
        if let Verdict::Reject(_) = verdict {
            return (verdict, None);
        }
        let charge = Charge {
            place: self.next,
            at: now,
        };
        self.next += 1;
        self.last = now;
        let level = (self.bucket.tail() - line(self.rate, now)) / self.rate.ticks_per_request();
        self.ledger
            .charge(charge.place, usize::try_from(level).unwrap_or(usize::MAX));
        (verdict, Some(charge))
    }

    /// Gives the request that was charged last its place to wait, which its verdict told it to.
    pub fn seat(&mut self, charge: Charge, delay: u32, ticket: Ticket, waiter: W) {
        let (tail, request) = (self.bucket.tail(), self.rate.ticks_per_request());
        self.lane(delay, tail - request)
            .push(tail, request, charge, ticket, waiter);
        self.seats.insert(ticket, charge);
    }

    /// [Judges](Self::charge) a request; where the verdict is to wait, `waiter` is made and [takes its
    /// place](Self::seat).
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

    /// When the next waiter is due, if any waits.
    #[must_use]
    pub fn due(&self) -> Option<Moment> {
        self.first().map(|(due, _)| due)
    }

    /// Takes the next waiter that is due at `now`, if there is one.
    pub fn take_due(&mut self, now: Moment) -> Option<Departure<W>> {
        let (due, found) = self.first().filter(|(due, _)| *due <= now)?;
        let lane = &mut self.lanes[found];
        let (charge, ticket, waiter) = lane.pop(self.rate.ticks_per_request())?;
        if lane.is_empty() {
            self.lanes.remove(found);
        }
        self.seats.remove(&ticket);
        Some(Departure {
            due,
            charge,
            waiter,
        })
    }

    /// Takes out a waiter that leaves before its turn: its charge is given back and those behind it move up, as
    /// if it had never come. `None` where it does not wait (any more).
    ///
    /// One whom a [refund](Self::refund) has made due before now is not waiting any more, and is to be taken first:
    /// where it leaves all the same, its charge is given back as a refund.
    pub fn leave(&mut self, ticket: Ticket) -> Option<W> {
        let charge = self.seats.remove(&ticket)?;
        let rest = self.rest(charge, self.last);
        let left = self
            .lanes
            .iter_mut()
            .find_map(|lane| lane.leave(charge.place, self.rate.ticks_per_request()));
        self.lanes.retain(|lane| !lane.is_empty());
        self.give_back(charge, rest);
        left
    }

    /// Gives back the charge of a turn that was not used; those behind it move up.
    ///
    /// Exactly as if the request had never come, as long as each later one, given back since or not, made a level
    /// of at least one request. Else part of the charge has leaked into the void, and only what certainly has not
    /// is given back: one request less what leaked since it joined. So never more than if it had never come; and
    /// nothing where only an earlier queue or an earlier rate could tell how much.
    ///
    /// Those behind it may become due before now: they are to be taken at once.
    pub fn refund(&mut self, charge: Charge, now: Moment) {
        if charge.place < self.forgiven {
            return;
        }
        let rest = self.rest(charge, now);
        self.give_back(charge, rest);
    }

    /// How many ticks of a charge have certainly not leaked into the void by `now`.
    fn rest(&self, charge: Charge, now: Moment) -> i128 {
        let request = self.rate.ticks_per_request();
        if charge.at < self.opened {
            return 0;
        }
        // While somebody waits the bucket is never empty, unless a refund moved their turn into the past.
        let seen = line(self.rate, self.last.max(self.retuned));
        let waits = |lane: &Lane<W>| {
            lane.head(request)
                .is_some_and(|(position, head)| head <= charge.place && position > seen)
        };
        if self.ledger.is_whole(charge.place) || self.lanes.iter().any(waits) {
            return request;
        }
        // A part moves all who wait, so nobody may wait who came before.
        if charge.at < self.retuned
            || self
                .lanes
                .iter()
                .any(|lane| lane.waits_before(charge.place))
        {
            return 0;
        }
        let leaked = line(self.rate, now) - line(self.rate, charge.at);
        (request - leaked).clamp(0, request)
    }

    fn give_back(&mut self, charge: Charge, ticks: i128) {
        if ticks == 0 {
            return;
        }
        let request = self.rate.ticks_per_request();
        self.bucket.refund(ticks);
        self.ledger.release(charge.place);
        for lane in &mut self.lanes {
            if ticks == request {
                lane.move_up_behind(charge.place, request);
            } else {
                lane.move_up(ticks);
            }
        }
    }

    /// Changes the rate from `now` on. What has leaked has leaked; all who wait are re-paced, in their order.
    pub fn retune(&mut self, rate: Rate, now: Moment) {
        self.bucket.retune(self.rate, rate, now);
        for lane in &mut self.lanes {
            lane.retune(self.rate, rate, now);
        }
        self.rate = rate;
        self.retuned = now;
    }

    /// Forgets what was charged for others than those who wait. These move up to where they would be if they alone had
    /// come, but no closer than their pace allows: the first of them leaves within one interval, the others in their
    /// order behind it. Whoever joins later with the same `delay` leaves after them; so of a `delay` as much stays
    /// charged as keeps them apart, until they have left.
    ///
    /// Those who are due by `now` must have been [taken](Self::take_due) before.
    pub fn forget(&mut self, now: Moment) {
        self.forgiven = self.next;
        self.ledger = Ledger::default();
        let mut places: Vec<u64> = self.lanes.iter().flat_map(Lane::places).collect();
        places.sort_unstable();
        let request = self.rate.ticks_per_request();
        // Those of all lanes are whole requests apart from each other.
        let tails = self.lanes.iter().map(|lane| lane.tail_before_head(request));
        let Some(mut base) = tails.min() else {
            self.bucket = Bucket::new();
            return;
        };
        for (level, place) in places.iter().enumerate() {
            self.ledger.charge(*place, level);
        }
        for lane in &mut self.lanes {
            lane.renumber(base, |place| {
                places.partition_point(|other| *other <= place)
            });
        }
        let heads = self.lanes.iter().filter_map(|lane| lane.head(request));
        let first = heads.map(|(position, _)| position).min().unwrap_or(base);
        // Whole requests, so that they stay in step.
        let early = (first - line(self.rate, now) - 1)
            .div_euclid(request)
            .max(0)
            * request;
        for lane in &mut self.lanes {
            lane.move_up(early);
        }
        base -= early;
        let count = i128::try_from(places.len()).unwrap_or(i128::MAX);
        self.bucket = Bucket::until(base + count * request);
    }

    /// Sends all who wait away, in their order; the bucket keeps their charges.
    pub fn dismiss(&mut self) -> Vec<W> {
        let mut gone = Vec::with_capacity(self.depth());
        while let Some((_, found)) = self.first() {
            let lane = &mut self.lanes[found];
            gone.extend(
                lane.pop(self.rate.ticks_per_request())
                    .map(|(_, _, waiter)| waiter),
            );
            if lane.is_empty() {
                self.lanes.remove(found);
            }
        }
        self.seats.clear();
        gone
    }

    /// The lane whose head is due first, and when. Of two at the same moment, the one who came first.
    fn first(&self) -> Option<(Moment, usize)> {
        let request = self.rate.ticks_per_request();
        let heads = self.lanes.iter().enumerate().filter_map(|(index, lane)| {
            let (position, place) = lane.head(request)?;
            Some((moment(self.rate, position), place, index))
        });
        heads.min().map(|(due, _, index)| (due, index))
    }

    fn lane(&mut self, delay: u32, tail: i128) -> &mut Lane<W> {
        let found = self
            .lanes
            .iter()
            .position(|lane| lane.delay() == delay)
            .unwrap_or_else(|| {
                self.lanes.push(Lane::new(delay, tail));
                self.lanes.len() - 1
            });
        &mut self.lanes[found]
    }
}
