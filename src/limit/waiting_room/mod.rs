//! Waiting room in front of an origin: sessions, calls, and the queue.
//!
//! It is a counter, not a list. Each visitor who finds no free session draws the next number, and
//! the room calls the numbers in order. So a waiting visitor takes no memory, except near the
//! front, where the next poll of each visitor is remembered.
//!
//! - A *number* is drawn by each visitor who must wait. It is in the visitor's ticket.
//! - A *position* is the rank of a number in the order of calls. Both are equal, except that a
//!   [`Lottery`] shuffles the visitors who came before the opening.
//! - A *call* reserves a session for a visitor, until the visitor polls or the call expires.
//! - A *session* is a visitor inside. It expires when the visitor sends no request for `idle`.
//!
//! If a free session exists when a visitor comes, the visitor enters without waiting: see
//! [`WaitingRoom::draw`]. Files: `wait` predicts waits, `polls` remembers polls, `pace` measures
//! calls, `mirror` is a room that several gateways share.

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
pub use wait::WaitingVisitor;

use super::Moment;
use expiring::Expiring;
use gaps::Gaps;
use pace::Pace;
use polls::Polls;

/// Upper bound of visitors who are called and have not arrived yet.
const MAX_CALLED: u64 = 1 << 16;
/// Maximum of visitors inside, if no limit bounds them.
pub const MAX_SESSIONS: u32 = 1_000_000;
/// Upper bound of the lotteries in the life of a room.
const MAX_LOTTERIES: usize = 8;
/// Longest delay of a call for which later calls catch up.
const MAX_CATCH_UP: Duration = Duration::from_secs(1);

/// Room that bounds the visitors of an origin, and decides who is next.
#[derive(Debug)]
pub struct WaitingRoom {
    limits: RoomLimits,
    /// Whether the room has opened.
    is_open: bool,
    /// Last number that was drawn.
    drawn: u64,
    /// Numbers up to this one may be drawn: the next process begins above it.
    reserved: u64,
    /// Last position that was called.
    called: u64,
    /// Numbers that may never have been drawn.
    gaps: Gaps,
    /// Instant until which a poll may show that a number of a gap was drawn.
    ///
    /// The previous process was killed after it drew such a number.
    settled: Moment,
    lotteries: Vec<Lottery>,
    /// Calls of visitors who have not arrived yet, by position.
    calls: Expiring<Call>,
    /// Last request of each visitor inside, by number.
    sessions: Expiring<Moment>,
    polls: Polls,
    pace: Pace,
    /// Earliest instant of the next call.
    next_call: Moment,
    /// Whether, since the last call, calls were prevented by something else than the pace of
    /// `admit`: no waiting visitor, no free session, or a pause.
    was_blocked: bool,
    /// Numbers up to this one were sent away.
    emptied: u64,
    counts: RoomCounts,
}

impl WaitingRoom {
    /// Returns an empty room.
    pub fn new(limits: RoomLimits, now: Moment) -> Self {
        Self {
            is_open: limits.is_opening_over(now),
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
            was_blocked: true,
            emptied: 0,
            counts: RoomCounts::default(),
            limits,
        }
    }

    /// Applies other limits from now on.
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
        self.is_open &= limits.is_opening_over(now);
        self.advance(keys, now);
    }

    /// Changes the opening. A room that is open stays open.
    pub fn reschedule(&mut self, opens: Option<Moment>) {
        self.limits.opens = opens;
    }

    /// Returns the pace to expect, scaled from the pace under the limits before.
    fn pace_after(&self, before: &RoomLimits) -> f64 {
        let scaled = match (before.sessions, self.limits.sessions) {
            (Some(before), Some(after)) => {
                self.pace.per_second() * f64::from(after.get()) / f64::from(before.get())
            }
            _ => self.limits.expected_pace(),
        };
        scaled.min(self.limits.admit.per_second())
    }

    /// Lets a visitor without a ticket enter, or draws a number for the visitor.
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
            self.was_blocked = true;
            return Drawn::Inside(number);
        }
        self.counts.drew += 1;
        Drawn::Waits(number, self.answer(number, now))
    }

    /// Answers a visitor with a ticket.
    pub fn poll(&mut self, number: u64, keys: LotteryKeys, now: Moment) -> Polled {
        self.advance(keys, now);
        if number == 0 || number > self.drawn {
            return Polled::Void;
        }
        let position = self.position(number);
        if position <= self.called {
            let Some(call) = self.calls.take(position) else {
                return self.void(number);
            };
            self.counts.came += 1;
            self.sessions.insert(number, now, now + self.limits.idle);
            return Polled::Inside(call);
        }
        if let Err(due) = self.polls.poll(number, now) {
            return Polled::TooOften(self.waiting_until(position, due, now));
        }
        Polled::Waits(self.answer(number, now))
    }

    /// Returns the result of a visitor whose number is not waiting and not called.
    fn void(&self, number: u64) -> Polled {
        if number <= self.emptied {
            Polled::SentAway
        } else {
            Polled::Void
        }
    }

    /// Records a request of a visitor with a session. Returns whether the visitor is inside.
    pub fn touch(&mut self, number: u64, keys: LotteryKeys, now: Moment) -> bool {
        self.advance(keys, now);
        let session = self.sessions.get_mut(number);
        session.map(|seen| *seen = now.max(*seen)).is_some()
    }

    /// Calls `count` visitors at any pace, as far as sessions are free. Returns their number.
    pub fn call(&mut self, count: u64, keys: LotteryKeys, now: Moment) -> u64 {
        self.advance(keys, now);
        let mut called = 0;
        while called < count && self.is_open && self.waiting() > 0 && self.has_free_session() {
            called += u64::from(self.call_next(now));
        }
        called
    }

    /// Sends all visitors away who wait or are called. Sessions continue. Returns their number.
    pub fn empty(&mut self, keys: LotteryKeys, now: Moment) -> u64 {
        self.advance(keys, now);
        let count = self.waiting() + self.calls.len();
        self.called = self.drawn;
        self.emptied = self.drawn;
        self.calls = Expiring::default();
        self.counts.sent_away += count;
        count
    }

    /// Expires sessions and calls, opens the room, and calls the next visitors.
    pub fn advance(&mut self, keys: LotteryKeys, now: Moment) {
        let is_calling = self.is_open && !self.limits.is_paused;
        self.pace.pass(now, is_calling && self.waiting() > 0);
        if !self.is_open && self.limits.is_opening_over(now) {
            self.open(keys, now);
        }
        let idle = self.limits.idle;
        self.counts.left += self.sessions.expire(now, |seen| *seen + idle);
        self.counts.lost += self.calls.expire(now, |call| call.until);
        while self.may_call(now) {
            self.call_next(now);
        }
    }

    /// Opens the room, and gives all waiting visitors random positions.
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
        self.was_blocked = true;
    }

    /// Returns the instant of the next change without a request.
    pub fn next_event(&self) -> Option<Moment> {
        let opens = self.limits.opens.filter(|_| !self.is_open);
        let call = (self.has_waiter_to_call() && self.has_free_session()).then(|| {
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

    /// Returns the effective limits.
    pub fn limits(&self) -> &RoomLimits {
        &self.limits
    }

    /// Returns the totals.
    pub fn counts(&self) -> RoomCounts {
        self.counts
    }

    /// Returns the state as of the last [`advance`](Self::advance).
    pub fn state(&self) -> RoomState {
        RoomState {
            waiting: self.waiting(),
            called: self.calls.len(),
            inside: self.sessions.len(),
            pace: self.pace.per_second(),
            is_open: self.is_open,
        }
    }

    /// Returns the lotteries that were drawn, the first one first.
    pub fn lotteries(&self) -> &[Lottery] {
        &self.lotteries
    }

    /// Makes numbers up to this one available.
    pub fn reserve(&mut self, number: u64) {
        self.reserved = number;
    }

    /// Returns the last number that was drawn.
    pub fn drawn(&self) -> u64 {
        self.drawn
    }

    fn waiting(&self) -> u64 {
        (self.drawn - self.called).saturating_sub(self.gaps.count_between(self.called, self.drawn))
    }

    /// Returns whether the room calls visitors, and not all numbers were called.
    fn has_waiter_to_call(&self) -> bool {
        self.is_open && !self.limits.is_paused && self.called < self.drawn
    }

    fn has_free_session(&self) -> bool {
        let taken = self.sessions.len() + self.calls.len();
        self.calls.len() < MAX_CALLED && taken < self.limits.max_sessions()
    }

    /// Returns whether one more visitor may enter now.
    fn may_admit(&self, now: Moment) -> bool {
        let is_open = self.is_open && !self.limits.is_paused;
        is_open && self.has_free_session() && self.next_call <= now
    }

    /// Returns whether the next visitor must be called now.
    fn may_call(&mut self, now: Moment) -> bool {
        let is_blocked = !self.has_waiter_to_call()
            || !self.has_free_session()
            || (now < self.settled && self.is_next_unsure());
        self.was_blocked |= is_blocked;
        !is_blocked && self.next_call <= now
    }

    /// Returns whether the next number may never have been drawn.
    fn is_next_unsure(&self) -> bool {
        let number = self.number(self.called + 1);
        self.gaps.contains(number) && !self.polls.has_polled(number)
    }

    /// Calls the next number. Returns whether a visitor had it.
    fn call_next(&mut self, now: Moment) -> bool {
        let is_unsure = self.is_next_unsure();
        self.called += 1;
        let position = self.called;
        if is_unsure {
            self.gaps.forget_to(position);
            return false;
        }
        let from = now.max(self.polls.due(self.number(position)));
        let call = Call {
            at: now,
            until: from + self.limits.claim,
        };
        self.calls.insert(position, call, call.until);
        self.counts.called += 1;
        self.pace.called(now);
        // A session that became free is filled at once, and the pace continues from there.
        let earliest = if self.was_blocked {
            now
        } else {
            now.before(MAX_CATCH_UP)
        };
        self.space_next_call(earliest);
        self.was_blocked = false;
        true
    }

    /// Schedules the next call an interval of `admit` after one that was due at `earliest`.
    ///
    /// Without `admit`, only sessions bound the calls, and `next_call` stays in the past. Each
    /// worker reads the clock itself, so the next visitor may come at a slightly earlier instant
    /// than this one.
    fn space_next_call(&mut self, earliest: Moment) {
        let interval = self.limits.interval();
        if !interval.is_zero() {
            self.next_call = self.next_call.max(earliest) + interval;
        }
    }

    /// Returns the position of a number.
    pub fn position(&self, number: u64) -> u64 {
        let lotteries = self.lotteries.iter();
        lotteries.fold(number, |position, lottery| lottery.position(position))
    }

    /// Returns the number at a position.
    fn number(&self, position: u64) -> u64 {
        let lotteries = self.lotteries.iter().rev();
        lotteries.fold(position, |position, lottery| lottery.number(position))
    }
}
