//! What one gateway has borrowed from a pool of places that several gateways share.
//!
//! A pool has a maximum, and lends each gateway some of its places under a lease. The gateway starts
//! a request only on a place that it holds, and only before the end of the lease. It counts the
//! lease by its own clock from when it *sent* the call that renewed it, so the pool's lease never
//! ends first. A place that it was lent counts when it is told, one that it gives back before it
//! tells, so it never holds more than the pool has lent it.

mod calling;
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
pub use without::{Borrowing, PoolLimits, WithoutPool};

/// How long it lasts at a gateway: less, as clocks may go 2 % too fast or too slow.
const TERM: Duration = Duration::from_millis(2350);
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
    limits: PoolLimits,
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
    /// Most at once of all gateways, as the last call said.
    of_all: Option<usize>,
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
    pub fn new(limits: PoolLimits) -> Self {
        Self {
            limits,
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
            of_all: None,
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
    pub fn set(&mut self, limits: PoolLimits) {
        self.limits = limits;
        // The pool has to know soon.
        self.told.1 = usize::MAX;
    }

    /// From now on it keeps no place that is not in use.
    pub fn leave(&mut self) {
        self.is_leaving = true;
    }

    /// How many requests may be at the origin for one more to start now.
    pub fn bound(&self, now: Moment) -> usize {
        match self.borrowing() {
            Borrowing::Alone(part) => part,
            Borrowing::Pool if now < self.until => self.held,
            Borrowing::Pool => 0,
        }
    }

    /// How it gets its places.
    pub fn borrowing(&self) -> Borrowing {
        if !self.is_alone || self.limits.without == WithoutPool::Closed {
            return Borrowing::Pool;
        }
        let known = self.counts.and_then(|it| NonZeroU32::new(it.gateways));
        let gateways = known.or(self.limits.gateways).unwrap_or(UNKNOWN).get();
        let all = self.of_all.unwrap_or(self.limits.most);
        let part = all / usize::try_from(gateways).unwrap_or(usize::MAX);
        Borrowing::Alone(part.max(1))
    }

    /// Whether its lease has ended and the pool cannot be reached.
    pub fn is_out(&self) -> bool {
        self.is_alone
    }

    /// When its lease ends.
    pub fn until(&self) -> Moment {
        self.until
    }

    /// What a gate may do with the places now.
    pub fn lent(&self, now: Moment) -> LentPlaces {
        let turn = self.turn.filter(|_| self.keeps == 0 && self.held <= 1);
        LentPlaces {
            places: self.bound(now),
            until: turn.map(Turn::until),
            among: self.contenders(),
        }
    }

    /// How long before it is used a place has to be asked for.
    pub fn ahead(&self) -> Duration {
        self.round_trip.ahead()
    }

    /// Places that it holds.
    pub fn held(&self) -> usize {
        self.held
    }

    /// The state of the pool, as last told.
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

    /// How long after its lease what it holds is certainly withheld for it, by its own clock.
    fn withheld(&self) -> Duration {
        // Clocks may go 2 % too fast or too slow.
        self.limits.orphan.saturating_sub(self.limits.orphan / 50)
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
        // Another maximum of the file is told as such.
        self.of_all = needs.of_all.filter(|of_all| *of_all < self.limits.most);
        PoolCall {
            number: self.number,
            held: self.held,
            in_use: needs.in_use,
            of_all: self.of_all,
            usable,
            wish,
            weight: needs.weight.max(1),
            members: is_member.then_some(self.members).unwrap_or_default(),
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
            self.turn = Some(Turn::new(now, self.round_trip.usual()));
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
        if reply.counts.is_recovering {
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
