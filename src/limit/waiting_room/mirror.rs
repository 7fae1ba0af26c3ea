//! Mirror: a waiting room that is kept in a store, as one of several gateways knows it.
//!
//! A visitor without a free session draws a *number*, which is in the visitor's *ticket*, and polls
//! with it. Its *position* is its rank in the order of calls. A *call* reserves a *session* for the
//! visitor. See the parent module.

use std::collections::HashMap;
use std::time::Duration;

use super::{
    Lottery, MAX_SESSIONS, Polled, RoomCounts, RoomLimits, RoomState, WaitingRoom, WaitingVisitor,
};
use crate::Moment;

/// Upper bound of the calls that are recorded for the pace at once. More would not change it much.
const MAX_RECORDED: u64 = 10_000;

/// Waiting room that is kept in a store, as one of several gateways knows it.
///
/// Waiting visitors are answered from the last reply of the store. For a visitor who draws a
/// number, or may have been called, the gateway queries the store.
#[derive(Debug)]
pub struct RoomMirror {
    /// Local room with the counters of the store. It never calls visitors.
    room: WaitingRoom,
    /// Number of visitors inside, as last reported.
    inside: u64,
    /// Number of visitors who were called and have not arrived yet, as last reported.
    called: u64,
    /// Sessions that were seen here, by number.
    sessions: HashMap<u64, KnownSession>,
    /// Instant at which expired sessions were last removed.
    swept: Moment,
    /// Whether the store was ever reached.
    is_known: bool,
    /// Whether the store is unreachable.
    is_out: bool,
}

/// Session that was seen here.
#[derive(Clone, Copy, Debug)]
struct KnownSession {
    /// Instant of the last request.
    seen: Moment,
    /// Instant at which the session was last reported to the store.
    reported: Moment,
}

/// State of a room, as the store reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
pub struct RoomSnapshot {
    /// Last number that was drawn.
    pub drawn: u64,
    /// Last position that was called.
    pub called: u64,
    /// Numbers up to this one were sent away.
    pub emptied: u64,
    /// Visitors inside.
    pub inside: u64,
    /// Visitors who were called and have not arrived yet.
    pub pending: u64,
    /// Whether the room has opened.
    #[cfg_attr(feature = "serde", serde(rename = "open"))]
    pub is_open: bool,
    /// Totals.
    pub counts: RoomCounts,
    /// Lotteries, the first one first.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub lotteries: Vec<Lottery>,
}

/// Answer to a request of a visitor with a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MirrorTouch {
    /// The visitor is inside.
    Inside,
    /// The visitor is inside, and the request must be reported to the store.
    Report,
    /// Only the store knows.
    Query,
}

/// Answer to a visitor with a ticket.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MirrorPoll {
    /// The result. For a visitor near the front also the position and the time until the next poll,
    /// which the caller must report to the store.
    Answer(Polled, Option<(u64, Duration)>),
    /// Only the store knows the state of the visitor at this position.
    Query(u64),
}

impl RoomMirror {
    /// Returns a room whose state is not known yet.
    pub fn new(limits: RoomLimits, now: Moment) -> Self {
        Self {
            room: WaitingRoom::new(limits, now),
            inside: 0,
            called: 0,
            sessions: HashMap::new(),
            swept: now,
            is_known: false,
            is_out: false,
        }
    }

    /// Applies other limits from now on.
    pub fn retune(&mut self, limits: RoomLimits, now: Moment) {
        let before = std::mem::replace(&mut self.room.limits, limits);
        if (before.sessions, before.admit) != (limits.sessions, limits.admit) {
            let pace = self.room.pace_after(&before);
            self.room.pace.expect(pace, now);
        }
    }

    /// Changes the opening.
    pub fn reschedule(&mut self, opens: Option<Moment>) {
        self.room.reschedule(opens);
    }

    /// Returns the local room: its limits, its lotteries, positions, and the totals of all
    /// gateways.
    pub fn room(&self) -> &WaitingRoom {
        &self.room
    }

    /// Returns the last drawn number and the last called position that are known.
    pub fn drawn_and_called(&self) -> (u64, u64) {
        (self.room.drawn, self.room.called)
    }

    /// Returns whether the store was ever reached.
    pub fn is_known(&self) -> bool {
        self.is_known
    }

    /// Returns whether the store is unreachable.
    pub fn is_out(&self) -> bool {
        self.is_out
    }

    /// Records that the store is unreachable: no visitor is called, and sessions continue.
    pub fn lose(&mut self) {
        self.is_out = true;
    }

    /// Applies the reported state of the store.
    pub fn follow(&mut self, reported: RoomSnapshot, now: Moment) {
        let room = &mut self.room;
        let is_calling = room.is_open && !room.limits.is_paused && !self.is_out;
        room.pace.pass(now, is_calling && room.waiting() > 0);
        if self.is_known {
            let called = reported.counts.called.saturating_sub(room.counts.called);
            (0..called.min(MAX_RECORDED)).for_each(|_| room.pace.called(now));
        }
        // State that the store has lost is not forgotten here.
        room.drawn = reported.drawn.max(room.drawn);
        room.called = reported.called.max(room.called).min(room.drawn);
        room.emptied = reported.emptied;
        room.is_open = reported.is_open;
        room.counts = reported.counts;
        room.lotteries = reported.lotteries;
        (self.inside, self.called) = (reported.inside, reported.pending);
        (self.is_known, self.is_out) = (true, false);
        let idle = room.limits.idle;
        if now.since(self.swept) >= idle / 2 {
            self.swept = now;
            self.sessions
                .retain(|_, session| now.since(session.seen) < idle);
        }
    }

    /// Records a request of a visitor with a session.
    pub fn touch(&mut self, number: u64, now: Moment) -> MirrorTouch {
        let idle = self.room.limits.idle;
        if let Some(session) = self.sessions.get_mut(&number)
            && now.since(session.seen) < idle
        {
            session.seen = now.max(session.seen);
            if now.since(session.reported) < idle / 10 {
                return MirrorTouch::Inside;
            }
            session.reported = now;
            return MirrorTouch::Report;
        }
        if self.is_out {
            MirrorTouch::Inside
        } else {
            MirrorTouch::Query
        }
    }

    /// Adds a session.
    pub fn begin(&mut self, number: u64, now: Moment) {
        if self.sessions.len() < MAX_SESSIONS as usize {
            let session = KnownSession {
                seen: now,
                reported: now,
            };
            self.sessions.insert(number, session);
        }
    }

    /// Removes a session.
    pub fn end(&mut self, number: u64) {
        self.sessions.remove(&number);
    }

    /// Answers a poll of a visitor with a ticket.
    pub fn poll(&mut self, number: u64, now: Moment) -> MirrorPoll {
        let position = self.room.position(number);
        // The number was drawn and its position was not called, as of the last reply.
        let is_sure = self.is_known && number <= self.room.drawn && position > self.room.called;
        if !is_sure && !self.is_out {
            return MirrorPoll::Query(position);
        }
        if number > self.room.drawn {
            // The number was drawn at another gateway. In an outage its position is not known.
            return MirrorPoll::Answer(Polled::Waits(self.answer_behind(1, number, now)), None);
        }
        // In an outage, a visitor who may have been called continues to wait as the first one.
        let position = position.max(self.room.called + 1);
        if let Err(due) = self.room.polls.poll(number, now) {
            let waiting = self.room.waiting_until(position, due, now);
            return MirrorPoll::Answer(Polled::TooOften(waiting), None);
        }
        let waiting = self.answer(number, now);
        let after = Duration::from_secs(waiting.retry_after);
        let is_near = position - self.room.called <= super::polls::REMEMBERED as u64;
        let reported = (is_near && !self.is_out).then_some((position, after));
        MirrorPoll::Answer(Polled::Waits(waiting), reported)
    }

    /// Returns the answer to a visitor who has just drawn a number, or was not called yet.
    pub fn answer(&mut self, number: u64, now: Moment) -> WaitingVisitor {
        self.room.answer(number, now)
    }

    /// Returns the answer to the visitor at `nth` position behind all waiting visitors.
    pub fn answer_behind(&self, nth: u64, number: u64, now: Moment) -> WaitingVisitor {
        self.room.behind(nth, number, now)
    }

    /// Returns the result of a visitor who was not called, after [`follow`](Self::follow).
    pub fn not_called(&mut self, number: u64, now: Moment) -> Polled {
        if number == 0 || number > self.room.drawn {
            return Polled::Void;
        }
        if self.room.position(number) > self.room.called {
            return Polled::Waits(self.answer(number, now));
        }
        self.room.void(number)
    }

    /// Returns the current state over all gateways.
    pub fn state(&self) -> RoomState {
        RoomState {
            waiting: self.room.waiting(),
            called: self.called,
            inside: self.inside,
            pace: self.room.pace.per_second(),
            is_open: self.room.is_open,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::limits;
    use super::*;
    use crate::fixtures::{START, secs};

    fn at(seconds: u64) -> Moment {
        START + secs(seconds)
    }

    /// Returns a room in which a session ends after 100 s.
    fn mirror() -> RoomMirror {
        RoomMirror::new(limits(0, "none", 100, 10), at(0))
    }

    /// Returns a report of the store: the last number that was drawn, and the last one called.
    fn reported(drawn: u64, called: u64) -> RoomSnapshot {
        RoomSnapshot {
            drawn,
            called,
            is_open: true,
            ..RoomSnapshot::default()
        }
    }

    #[test]
    fn those_who_wait_are_answered_here_and_others_are_asked_about() {
        let mut mirror = mirror();
        assert_eq!(
            mirror.poll(5, at(0)),
            MirrorPoll::Query(5),
            "nothing is known"
        );
        mirror.follow(reported(10, 4), at(1));
        let MirrorPoll::Answer(Polled::Waits(waiting), Some((5, after))) = mirror.poll(5, at(1))
        else {
            panic!("it waits");
        };
        assert_eq!(waiting.position, Some(1));
        assert_eq!(after.as_secs(), waiting.retry_after);
        assert_eq!(
            mirror.poll(4, at(1)),
            MirrorPoll::Query(4),
            "it may be called"
        );
        let found = mirror.poll(11, at(1));
        assert_eq!(found, MirrorPoll::Query(11), "another gateway gave it");
        mirror.follow(reported(10, 5), at(2));
        assert_eq!(mirror.poll(5, at(2)), MirrorPoll::Query(5));
        assert_eq!(mirror.not_called(5, at(2)), Polled::Void);
        assert!(matches!(mirror.not_called(6, at(2)), Polled::Waits(_)));
    }

    #[test]
    fn a_session_is_queried_once_and_reported_periodically() {
        let mut mirror = mirror();
        mirror.follow(reported(10, 10), at(0));
        assert_eq!(mirror.touch(3, at(0)), MirrorTouch::Query);
        mirror.begin(3, at(0));
        assert_eq!(mirror.touch(3, at(9)), MirrorTouch::Inside);
        assert_eq!(mirror.touch(3, at(10)), MirrorTouch::Report);
        assert_eq!(mirror.touch(3, at(11)), MirrorTouch::Inside);
        assert_eq!(mirror.touch(3, at(111)), MirrorTouch::Query, "it was idle");
        mirror.begin(3, at(111));
        mirror.end(3);
        assert_eq!(mirror.touch(3, at(112)), MirrorTouch::Query);
    }

    #[test]
    fn in_an_outage_nobody_is_called_and_those_inside_stay() {
        let mut mirror = mirror();
        mirror.follow(reported(10, 4), at(0));
        mirror.lose();
        assert_eq!(mirror.touch(3, at(1)), MirrorTouch::Inside);
        for number in [2, 5, 11] {
            let polled = mirror.poll(number, at(1));
            let is_answered = matches!(polled, MirrorPoll::Answer(Polled::Waits(_), None));
            assert!(is_answered, "{number}");
        }
        mirror.follow(reported(11, 4), at(2));
        assert!(!mirror.is_out());
    }

    #[test]
    fn what_the_store_lost_is_not_forgotten() {
        let mut mirror = mirror();
        mirror.follow(reported(10, 4), at(0));
        mirror.follow(reported(8, 2), at(1));
        assert_eq!(mirror.drawn_and_called(), (10, 4));
    }
}
