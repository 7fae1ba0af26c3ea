//! What one gateway has borrowed from a pool of places that several gateways share.
//!
//! A pool has a maximum, and lends each gateway some of its places under a lease. The gateway starts
//! a request only on a place that it holds, and only before the end of the lease. It counts the
//! lease by its own clock from when it *sent* the call that renewed it, so the pool's lease never
//! ends first. A place that it was lent counts when it is told, one that it gives back before it
//! tells, so it never holds more than the pool has lent it.

#[cfg(test)]
mod properties;
mod said;
#[cfg(test)]
mod tests;
mod turn;
mod without;

use std::num::NonZeroU32;
use std::time::Duration;

use super::Moment;
pub use said::{KnownMembers, LentPlaces, PlaceNeeds, PoolCall, PoolCounts, PoolReply};
use turn::{RoundTrip, Turn};
pub use without::{Borrowing, WithoutPool};

/// How long a lease lasts in the pool.
#[cfg(test)]
const POOL_LEASE: Duration = Duration::from_millis(2400);
/// How long it lasts at a gateway: less, as clocks may go 2 % too fast or too slow.
const TERM: Duration = Duration::from_millis(2350);
/// Time between two calls of a gateway that wants nothing.
const RENEWED: Duration = Duration::from_millis(800);
/// Time between two calls of a gateway whose requests wait and that has no place at all.
const POLL_STARVED: Duration = Duration::from_millis(10);
/// The same for one that gets the next place that comes free.
const POLL_NEXT: Duration = Duration::from_millis(1);
/// Time between two calls while places are scarce, here or at others.
const POLL_SCARCE: Duration = Duration::from_millis(25);
/// Time between two calls of a gateway that has places that it does not use.
const POLL_IDLE: Duration = Duration::from_millis(200);
/// Least time between two calls.
const MIN_INTERVAL: Duration = Duration::from_millis(1);
/// Time between two calls that are not answered.
const RETRY: Duration = Duration::from_millis(50);
/// How long the most requests at once are remembered, at least.
const PEAK: Duration = Duration::from_secs(1);
/// The part that a gateway takes alone if nobody has told how many there are: a tenth.
const UNKNOWN: NonZeroU32 = NonZeroU32::new(10).unwrap();

/// What the pool last said of those who want its places.
#[derive(Clone, Copy, Debug, Default)]
struct Demand {
    /// Whether another gateway waits.
    others_wait: bool,
    /// Whether few places are free.
    is_scarce: bool,
}

/// What a gateway has borrowed from a pool, and when it calls.
///
/// Calls are in sequence: the next one is made after the answer to the last one, or its failure.
#[derive(Debug)]
pub struct Borrower {
    /// The pool's maximum by this gateway's file.
    most: usize,
    /// How long places of a gateway that vanished stay withheld.
    orphan: Duration,
    without: WithoutPool,
    /// How many gateways there are, by the file.
    expected: Option<NonZeroU32>,
    held: usize,
    /// As the pool knows it, unless an answer was lost.
    told_held: usize,
    /// How many it may keep, as the pool last said.
    keeps: usize,
    /// When the lease ends, by this gateway's clock.
    until: Moment,
    demand: Demand,
    is_alone: bool,
    number: u64,
    /// When the call that is under way was sent.
    under_way: Option<Moment>,
    /// When the last call was sent.
    last: Moment,
    /// Whether the last call failed.
    has_failed: bool,
    /// What the last call said that could be used, and the wish.
    told: (usize, usize),
    /// The most requests at once of the present span and of the one before.
    peaks: [usize; 2],
    peak_since: Moment,
    members: KnownMembers,
    counts: Option<PoolCounts>,
    is_leaving: bool,
    /// Since when it holds nothing and gets the next place that comes free.
    next_since: Option<Moment>,
    /// Its turn, if it has one place and had none before.
    turn: Option<Turn>,
    round_trip: RoundTrip,
}

impl Borrower {
    /// A gateway that holds nothing yet.
    #[must_use]
    pub fn new(
        most: usize,
        orphan: Duration,
        without: WithoutPool,
        expected: Option<NonZeroU32>,
    ) -> Self {
        Self {
            most,
            orphan,
            without,
            expected,
            held: 0,
            told_held: 0,
            keeps: usize::MAX,
            until: Moment::default(),
            demand: Demand::default(),
            is_alone: false,
            number: 0,
            under_way: None,
            last: Moment::default(),
            has_failed: false,
            told: (0, 0),
            peaks: [0; 2],
            peak_since: Moment::default(),
            members: KnownMembers::default(),
            counts: None,
            is_leaving: false,
            next_since: None,
            turn: None,
            round_trip: RoundTrip::default(),
        }
    }

    /// Takes over new settings.
    pub fn set(
        &mut self,
        most: usize,
        orphan: Duration,
        without: WithoutPool,
        expected: Option<NonZeroU32>,
    ) {
        (self.most, self.orphan) = (most, orphan);
        (self.without, self.expected) = (without, expected);
        // The pool has to know soon.
        self.told.1 = usize::MAX;
    }

    /// From now on it keeps no place that is not in use.
    pub fn leave(&mut self) {
        self.is_leaving = true;
    }

    /// How many requests may be at the origin for one more to start now.
    #[must_use]
    pub fn bound(&self, now: Moment) -> usize {
        match self.borrowing() {
            Borrowing::Alone(part) => part,
            Borrowing::Pool if now < self.until => self.held,
            Borrowing::Pool => 0,
        }
    }

    /// How it gets its places.
    #[must_use]
    pub fn borrowing(&self) -> Borrowing {
        if !self.is_alone || self.without == WithoutPool::Closed {
            return Borrowing::Pool;
        }
        let known = self.counts.and_then(|it| NonZeroU32::new(it.gateways));
        let gateways = known.or(self.expected).unwrap_or(UNKNOWN).get();
        let part = self.most / usize::try_from(gateways).unwrap_or(usize::MAX);
        Borrowing::Alone(part.max(1))
    }

    /// Whether its lease has ended and the pool cannot be reached.
    #[must_use]
    pub fn is_out(&self) -> bool {
        self.is_alone
    }

    /// When its lease ends.
    #[must_use]
    pub fn until(&self) -> Moment {
        self.until
    }

    /// What a gate may do with the places now.
    #[must_use]
    pub fn lent(&self, now: Moment) -> LentPlaces {
        let turn = self.turn.filter(|_| self.keeps == 0 && self.held <= 1);
        LentPlaces {
            places: self.bound(now),
            until: turn.map(Turn::until),
            go_round: self.is_contended(),
        }
    }

    /// How long before it is used a place has to be asked for.
    #[must_use]
    pub fn ahead(&self) -> Duration {
        self.round_trip.ahead()
    }

    /// Places that it holds.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held
    }

    /// The state of the pool, as last told.
    #[must_use]
    pub fn counts(&self) -> Option<PoolCounts> {
        self.counts
    }

    /// Notes that a request has started: so many are at the origin now.
    pub fn started(&mut self, in_use: usize) {
        self.peaks[0] = self.peaks[0].max(in_use);
    }

    /// Notes that a request has ended. Its place is given back if the gateway may not keep it.
    pub fn ended(&mut self, in_use: usize, now: Moment) {
        if in_use == 0
            && let Some(turn) = &mut self.turn
        {
            turn.ended(now);
        }
        self.held = self.held.min(self.may_keep(in_use, None, now));
    }

    /// How many of its places it may keep: one of which others wait for until its turn ends.
    fn may_keep(&self, in_use: usize, slot: Option<Moment>, now: Moment) -> usize {
        let keeps = self.keeps.max(in_use);
        if keeps == 0 && self.turn.is_some_and(|turn| now < turn.ends(slot)) {
            return 1;
        }
        keeps
    }

    /// When the next call is due; `None` while one is under way.
    #[must_use]
    pub fn due(&self, needs: PlaceNeeds) -> Option<Moment> {
        if self.under_way.is_some() {
            return None;
        }
        if self.number == 0 {
            return Some(self.last);
        }
        if self.is_leaving && self.is_done(needs) {
            return (self.told_held > 0).then(|| self.last + MIN_INTERVAL);
        }
        let due = self.last + self.pause(needs);
        let looks = needs.looks.map(|looks| looks.max(self.last + MIN_INTERVAL));
        let due = looks.map_or(due, |looks| due.min(looks));
        let is_idle = self.held > 0 && self.keeps == 0 && needs.in_use == 0;
        match self.turn.filter(|_| is_idle) {
            Some(turn) => Some(due.min(turn.ends(needs.slot)).max(self.last + MIN_INTERVAL)),
            None => Some(due),
        }
    }

    fn is_done(&self, needs: PlaceNeeds) -> bool {
        self.is_leaving && needs.in_use == 0 && needs.waiting == 0
    }

    /// Whether it leaves, and the pool knows that it holds only what is in use.
    #[must_use]
    pub fn is_gone(&self, needs: PlaceNeeds) -> bool {
        let told = self.told_held.max(self.held);
        self.is_leaving && self.under_way.is_none() && told <= needs.in_use
    }

    fn pause(&self, needs: PlaceNeeds) -> Duration {
        let usable = needs.usable();
        if self.has_failed {
            return RETRY;
        }
        if self.demand.others_wait && self.told_held > self.held {
            return MIN_INTERVAL;
        }
        if usable > self.held {
            // The first one that waits is not kept waiting.
            return if self.told.0 <= self.held {
                MIN_INTERVAL
            } else if let Some(since) = self.next_since {
                // A place that did not come free for long need not be taken at once.
                (self.last.since(since) / 50).clamp(POLL_NEXT, POLL_STARVED)
            } else if self.held == 0 {
                POLL_STARVED
            } else {
                POLL_SCARCE
            };
        }
        if self.gives_back(needs) || self.held == 0 && self.told.0 > usable {
            return MIN_INTERVAL;
        }
        let has_turn = self.turn.is_some() && self.held == 1;
        if self.held > self.keeps.max(needs.in_use) && !has_turn && self.demand.others_wait {
            return MIN_INTERVAL;
        }
        if self.told_held > self.held || self.held > self.keeps.max(needs.in_use) {
            return POLL_SCARCE;
        }
        if self.demand.others_wait {
            return POLL_SCARCE;
        }
        let wish = self.wish(needs);
        if wish > self.told.1 && needs.in_use >= self.held || self.told.1 == usize::MAX {
            return POLL_SCARCE;
        }
        match self.held > needs.in_use {
            true if self.demand.is_scarce => POLL_SCARCE,
            true => POLL_IDLE,
            false if needs.in_use > 0 && self.is_contended() => POLL_SCARCE,
            false if needs.in_use > 0 && self.demand.is_scarce => POLL_IDLE,
            false => RENEWED,
        }
    }

    /// Whether its place can be of use to another before its own next slot.
    fn gives_back(&self, needs: PlaceNeeds) -> bool {
        needs.is_between_slots && self.held > needs.in_use && self.is_contended()
    }

    /// Whether there are more gateways than places: any of them may come to wait for this one.
    fn is_contended(&self) -> bool {
        let more = |it: PoolCounts| usize::try_from(it.gateways).is_ok_and(|all| all > it.of);
        self.counts.is_some_and(more)
    }

    fn wish(&self, needs: PlaceNeeds) -> usize {
        let usable = needs.usable();
        if self.is_leaving || self.gives_back(needs) {
            return usable;
        }
        let peak = self.peaks[0].max(self.peaks[1]);
        let spare = (peak / 4).max(2);
        let wish = usable.max(peak).saturating_add(spare);
        wish.min(needs.most.max(usable))
    }

    /// How long after its lease what it holds is certainly withheld for it, by its own clock.
    fn withheld(&self) -> Duration {
        // Clocks may go 2 % too fast or too slow.
        self.orphan - self.orphan / 50
    }

    /// The next call, which is sent now. What is given back with it is not used from now on.
    pub fn call(&mut self, needs: PlaceNeeds, now: Moment) -> PoolCall {
        if now.since(self.peak_since) >= PEAK {
            self.peaks = [needs.in_use, self.peaks[0]];
            self.peak_since = now;
        }
        if now >= self.until + self.withheld() {
            // What it had was lent to others meanwhile. A pool that has forgotten that would take its word.
            self.held = self.held.min(needs.in_use);
        }
        let (usable, wish) = (needs.usable(), self.wish(needs));
        let may_keep = self.may_keep(needs.in_use, needs.slot, now);
        let keeps = wish.min(may_keep).max(needs.in_use);
        self.held = self.held.min(keeps);
        let is_member = now < self.until || (self.held > 0 && now < self.until + self.withheld());
        self.number += 1;
        (self.under_way, self.last) = (Some(now), now);
        self.told = (usable, wish);
        PoolCall {
            number: self.number,
            held: self.held,
            in_use: needs.in_use,
            usable,
            wish,
            weight: needs.weight.max(1),
            members: if is_member {
                self.members
            } else {
                KnownMembers::default()
            },
            leaves: self.is_leaving,
        }
    }

    /// The pool answered the call that is under way.
    pub fn answered(&mut self, reply: &PoolReply, needs: PlaceNeeds, now: Moment) {
        let Some(sent) = self.under_way.take() else {
            return;
        };
        self.round_trip.note(now.since(sent));
        if reply.lent != 1 {
            self.turn = None;
        } else if self.told_held == 0 {
            self.turn = Some(Turn::new(now, self.round_trip.get()));
        }
        (self.told_held, self.keeps) = (reply.lent, reply.keeps);
        // What others want, or is lent twice, is not used once more.
        self.held = reply.lent.min(self.may_keep(needs.in_use, needs.slot, now));
        self.until = self.until.max(sent + TERM);
        let is_next = reply.lent == 0 && reply.keeps > 0;
        self.next_since = is_next.then(|| self.next_since.unwrap_or(sent));
        self.demand = Demand {
            others_wait: reply.others_wait,
            is_scarce: reply.is_scarce,
        };
        (self.members, self.counts) = (reply.members, Some(reply.counts));
        (self.has_failed, self.is_alone) = (false, false);
        if reply.is_recovering {
            // It tells the pool at short intervals, and is lent something as soon as it can be.
            self.demand.is_scarce = true;
        }
    }

    /// From now on the pool is reached another way, and a call that is under way is not answered.
    ///
    /// The lease goes on: the next call says what is held, and has the next number.
    pub fn reconnect(&mut self) {
        self.under_way = None;
        (self.has_failed, self.last) = (true, Moment::default());
    }

    /// The call that is under way was not answered. What it would have been lent, it does not hold.
    pub fn failed(&mut self) {
        let Some(sent) = self.under_way.take() else {
            return;
        };
        self.has_failed = true;
        // Only who has asked since its lease ended knows that nobody answers: it may have stood still.
        self.is_alone = sent >= self.until;
    }
}
