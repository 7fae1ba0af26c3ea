//! The waiting room before an origin: who is inside, who is called, and who waits.
//!
//! It is a counter, not a list. Each visitor who finds no place draws the next number, and the room
//! calls the numbers in order. So a visitor who waits takes no memory, but for the first ones in
//! line, whose next poll is known.

mod answers;
mod expiring;
mod gaps;
mod limits;
mod lottery;
mod mirror;
mod pace;
mod polls;
mod saved;
mod wait;

#[cfg(test)]
mod scenarios;
#[cfg(test)]
mod tests;

use std::time::Duration;

pub use answers::{Call, Drawn, Polled, RoomCounts, RoomState};
pub use limits::RoomLimits;
pub use lottery::{Lottery, LotteryKeys};
pub use mirror::{MirrorPoll, MirrorTouch, RoomMirror, RoomSnapshot};
pub use saved::SavedRoom;
pub use wait::Waiting;

use super::Moment;
use expiring::Expiring;
use gaps::Gaps;
use pace::Pace;
use polls::Polls;

/// Most visitors who are called and have not come yet.
const MAX_CALLED: u64 = 1 << 16;
/// Most visitors inside, if nothing else bounds them.
pub const MAX_SESSIONS: u32 = 1_000_000;
/// Most lotteries in the life of a room.
const MAX_LOTTERIES: usize = 8;
/// Calls that are late are made up for, as far as they are not later than this.
const MAX_CATCH_UP: Duration = Duration::from_secs(1);

/// What bounds the visitors of an origin, and decides who is the next.
#[derive(Debug)]
pub struct WaitingRoom {
    limits: RoomLimits,
    /// Whether it has opened.
    is_open: bool,
    /// The last number that was drawn.
    drawn: u64,
    /// Numbers up to this one may be drawn: the next process begins above it.
    reserved: u64,
    /// The last place that was called.
    called: u64,
    /// Numbers that may never have been drawn.
    gaps: Gaps,
    /// Until when visitors from before the process was killed may say that they drew a number of
    /// a gap.
    settled: Moment,
    lotteries: Vec<Lottery>,
    /// The visitors who were called and have not come yet, by their places in line.
    calls: Expiring<Call>,
    /// When each visitor inside asked last, by number.
    sessions: Expiring<Moment>,
    polls: Polls,
    pace: Pace,
    /// Not before this is the next one called.
    next_call: Moment,
    /// Whether something else than the pace has kept the room from calling.
    is_idle: bool,
    /// The numbers up to this one were sent away.
    emptied: u64,
    counts: RoomCounts,
}

impl WaitingRoom {
    /// An empty room.
    pub fn new(limits: RoomLimits, now: Moment) -> Self {
        Self {
            is_open: limits.opens.is_none_or(|opens| opens <= now),
            drawn: 0,
            reserved: u64::MAX,
            called: 0,
            gaps: Gaps::default(),
            settled: now,
            lotteries: Vec::new(),
            calls: Expiring::default(),
            sessions: Expiring::default(),
            polls: Polls::default(),
            pace: Pace::new(limits.expected_pace(), now),
            next_call: now,
            is_idle: true,
            emptied: 0,
            counts: RoomCounts::default(),
            limits,
        }
    }

    /// Takes other limits from now on.
    pub fn retune(&mut self, limits: RoomLimits, keys: LotteryKeys, now: Moment) {
        self.advance(keys, now);
        let before = std::mem::replace(&mut self.limits, limits);
        if before.idle != limits.idle {
            self.sessions.reschedule(|seen| *seen + limits.idle);
        }
        if (before.sessions, before.admit) != (limits.sessions, limits.admit) {
            self.pace.expect(self.pace_after(&before), now);
            self.next_call = self.next_call.min(now + limits.interval());
        }
        if limits.opens.is_some_and(|opens| now < opens) {
            self.is_open = false;
        }
        self.advance(keys, now);
    }

    /// Takes another opening. A room that is open stays open.
    pub fn reschedule(&mut self, opens: Option<Moment>) {
        self.limits.opens = opens;
    }

    /// The pace to expect, from that under other limits.
    fn pace_after(&self, before: &RoomLimits) -> f64 {
        let (had, has) = (before.sessions, self.limits.sessions);
        let measured = self.pace.per_second();
        let scaled = match (had, has) {
            (Some(had), Some(has)) => measured * f64::from(has.get()) / f64::from(had.get()),
            _ => self.limits.expected_pace(),
        };
        scaled.min(self.limits.admit.per_second())
    }

    /// Lets a visitor in who has no ticket, or gives it a number.
    pub fn draw(&mut self, keys: LotteryKeys, now: Moment) -> Drawn {
        self.advance(keys, now);
        if self.drawn >= self.reserved {
            return Drawn::NoNumber;
        }
        self.drawn += 1;
        let number = self.drawn;
        if self.called + 1 == number && self.may_admit(now) {
            self.called = number;
            self.counts.walked_in += 1;
            self.sessions.insert(number, now, now + self.limits.idle);
            self.space_next_call(now);
            self.is_idle = true;
            return Drawn::Inside(number);
        }
        self.counts.drew += 1;
        Drawn::Waits(number, self.tell(number, now))
    }

    /// Answers a visitor with a ticket.
    pub fn poll(&mut self, number: u64, keys: LotteryKeys, now: Moment) -> Polled {
        self.advance(keys, now);
        if number == 0 || number > self.drawn {
            return Polled::Void;
        }
        let place = self.place(number);
        if place <= self.called {
            let Some(call) = self.calls.take(place) else {
                return if number <= self.emptied {
                    Polled::SentAway
                } else {
                    Polled::Void
                };
            };
            self.counts.came += 1;
            self.sessions.insert(number, now, now + self.limits.idle);
            return Polled::Inside(call);
        }
        if let Err(due) = self.polls.poll(number, now) {
            return Polled::TooOften(self.waiting_until(place, due, now));
        }
        Polled::Waits(self.tell(number, now))
    }

    /// Records that a visitor with a session asks. Returns whether it is inside.
    pub fn touch(&mut self, number: u64, keys: LotteryKeys, now: Moment) -> bool {
        self.advance(keys, now);
        let session = self.sessions.get_mut(number);
        session.map(|seen| *seen = now.max(*seen)).is_some()
    }

    /// Calls so many of those who wait, whatever the pace is, as far as there are places. Returns
    /// how many.
    pub fn call(&mut self, count: u64, keys: LotteryKeys, now: Moment) -> u64 {
        self.advance(keys, now);
        let mut called = 0;
        while called < count && self.is_open && self.waiting() > 0 && self.has_place() {
            called += u64::from(self.call_next(now));
        }
        called
    }

    /// Sends all away who wait or are called. Those inside stay. Returns how many.
    pub fn empty(&mut self, keys: LotteryKeys, now: Moment) -> u64 {
        self.advance(keys, now);
        let count = self.waiting() + self.calls.len();
        self.called = self.drawn;
        self.emptied = self.drawn;
        self.calls = Expiring::default();
        self.counts.sent_away += count;
        count
    }

    /// Ends what is over, and calls those whose turn it is.
    pub fn advance(&mut self, keys: LotteryKeys, now: Moment) {
        let is_calling = self.is_open && !self.limits.is_paused;
        self.pace.pass(now, is_calling && self.waiting() > 0);
        if !self.is_open && self.limits.opens.is_none_or(|opens| opens <= now) {
            self.open(keys, now);
        }
        let idle = self.limits.idle;
        self.counts.left += self.sessions.expire(now, |seen| *seen + idle);
        self.counts.lost += self.calls.expire(now, |call| call.until);
        while self.may_call(now) {
            self.call_next(now);
        }
    }

    /// Opens: all who wait have a random place from now on.
    fn open(&mut self, keys: LotteryKeys, now: Moment) {
        self.is_open = true;
        let count = self.drawn - self.called;
        if count > 1 && self.lotteries.len() < MAX_LOTTERIES {
            self.lotteries.push(Lottery {
                first: self.called,
                count,
                keys,
            });
        }
        self.next_call = self.next_call.max(now);
        self.is_idle = true;
    }

    /// When something happens without a request.
    pub fn next_event(&self) -> Option<Moment> {
        let opens = self.limits.opens.filter(|_| !self.is_open);
        let waits = self.is_open && !self.limits.is_paused && self.called < self.drawn;
        let call = (waits && self.has_place()).then(|| {
            if self.is_next_unsure() {
                self.next_call.max(self.settled)
            } else {
                self.next_call
            }
        });
        let checks = [self.calls.next_check(), self.sessions.next_check()];
        let events = [opens, call].into_iter().chain(checks);
        events.flatten().min()
    }

    /// The limits in force.
    pub fn limits(&self) -> &RoomLimits {
        &self.limits
    }

    /// What has happened.
    pub fn counts(&self) -> RoomCounts {
        self.counts
    }

    /// Who is where, as of the last [`advance`](Self::advance).
    pub fn state(&self) -> RoomState {
        RoomState {
            waiting: self.waiting(),
            called: self.calls.len(),
            inside: self.sessions.len(),
            pace: self.pace.per_second(),
            is_open: self.is_open,
        }
    }

    /// The lotteries that were drawn, the first one first.
    pub fn lotteries(&self) -> &[Lottery] {
        &self.lotteries
    }

    /// Makes numbers up to this one available.
    pub fn reserve(&mut self, number: u64) {
        self.reserved = number;
    }

    /// The last number that was drawn.
    pub fn drawn(&self) -> u64 {
        self.drawn
    }

    fn waiting(&self) -> u64 {
        (self.drawn - self.called).saturating_sub(self.gaps.ahead(self.called, self.drawn))
    }

    fn has_place(&self) -> bool {
        let taken = self.sessions.len() + self.calls.len();
        self.calls.len() < MAX_CALLED && taken < self.limits.places()
    }

    /// Whether one more may be let in now.
    fn may_admit(&self, now: Moment) -> bool {
        let is_open = self.is_open && !self.limits.is_paused;
        is_open && self.has_place() && self.next_call <= now
    }

    /// Whether the next one is to be called now.
    fn may_call(&mut self, now: Moment) -> bool {
        let nobody_is = !self.is_open || self.limits.is_paused || self.called == self.drawn;
        let is_blocked =
            nobody_is || !self.has_place() || (now < self.settled && self.is_next_unsure());
        self.is_idle |= is_blocked;
        !is_blocked && self.next_call <= now
    }

    /// Whether the next number may never have been drawn.
    fn is_next_unsure(&self) -> bool {
        let number = self.number(self.called + 1);
        self.gaps.has(number) && !self.polls.has(number)
    }

    /// Calls the next number. Returns whether there was anyone with it.
    fn call_next(&mut self, now: Moment) -> bool {
        let is_unsure = self.is_next_unsure();
        self.called += 1;
        let place = self.called;
        if is_unsure {
            self.gaps.forget_to(place);
            return false;
        }
        let from = now.max(self.polls.due(self.number(place)));
        let call = Call {
            at: now,
            until: from + self.limits.claim,
        };
        self.calls.insert(place, call, call.until);
        self.counts.called += 1;
        self.pace.called(now);
        // A place that came free is filled at once, and the pace goes on from there.
        let earliest = if self.is_idle {
            now
        } else {
            now.before(MAX_CATCH_UP)
        };
        self.space_next_call(earliest);
        self.is_idle = false;
        true
    }

    /// Keeps the next call an interval of `admit` after one that was due at `earliest`.
    ///
    /// Without `admit`, only places bound the calls. The moment must not then: workers read the
    /// clock each for itself, so the next visitor's may be microseconds before this one's.
    fn space_next_call(&mut self, earliest: Moment) {
        let interval = self.limits.interval();
        if !interval.is_zero() {
            self.next_call = self.next_call.max(earliest) + interval;
        }
    }

    /// The place in line of a number.
    fn place(&self, number: u64) -> u64 {
        let lotteries = self.lotteries.iter();
        lotteries.fold(number, |place, lottery| lottery.place(place))
    }

    /// The number at a place in line.
    fn number(&self, place: u64) -> u64 {
        let lotteries = self.lotteries.iter().rev();
        lotteries.fold(place, |place, lottery| lottery.number(place))
    }
}
