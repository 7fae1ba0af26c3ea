use std::collections::HashMap;
use std::time::Duration;

use super::{
    Lottery, MAX_SESSIONS, Polled, RoomCounts, RoomLimits, RoomState, Waiting, WaitingRoom,
};
use crate::Moment;

/// Most calls that are recorded at once: of more the pace is known well enough.
const MAX_RECORDED: u64 = 10_000;

/// A waiting room that is kept in a store, as one of several gateways knows it.
///
/// Those who wait are answered from what the store said last. Whoever draws, or may be called, is
/// asked about.
#[derive(Debug)]
pub struct RoomMirror {
    /// With the counters of the store. It calls nobody.
    room: WaitingRoom,
    inside: u64,
    called: u64,
    sessions: HashMap<u64, KnownSession>,
    swept: Moment,
    /// Whether the store was ever reached.
    is_known: bool,
    is_out: bool,
}

/// A session that was seen here.
#[derive(Clone, Copy, Debug)]
struct KnownSession {
    seen: Moment,
    /// When the store was last told.
    told: Moment,
}

/// What the store says of a room.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoomSnapshot {
    /// The last number that was drawn.
    pub drawn: u64,
    /// The last place that was called.
    pub called: u64,
    /// The numbers up to this one were sent away.
    pub emptied: u64,
    /// Visitors inside.
    pub inside: u64,
    /// Visitors who were called and have not come yet.
    pub pending: u64,
    /// Whether it has opened.
    pub is_open: bool,
    /// What has happened.
    pub counts: RoomCounts,
    /// The first one first.
    pub lotteries: Vec<Lottery>,
}

/// Whether a visitor is inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MirrorTouch {
    /// It is.
    Inside,
    /// It is, and the store should know that it asked.
    Tell,
    /// The store knows.
    Ask,
}

/// What a visitor with a ticket gets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MirrorPoll {
    /// This. The store should know when the visitor at a place near the front asks again.
    Answer(Polled, Option<(u64, Duration)>),
    /// The store knows what becomes of the visitor at this place.
    Ask(u64),
}

impl RoomMirror {
    /// A room of which nothing is known yet.
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

    /// Takes other limits from now on.
    pub fn retune(&mut self, limits: RoomLimits, now: Moment) {
        let before = std::mem::replace(&mut self.room.limits, limits);
        if (before.sessions, before.admit) != (limits.sessions, limits.admit) {
            let pace = self.room.pace_after(&before);
            self.room.pace.expect(pace, now);
        }
    }

    /// Takes another opening.
    pub fn reschedule(&mut self, opens: Option<Moment>) {
        self.room.reschedule(opens);
    }

    /// The limits in force here.
    pub fn limits(&self) -> &RoomLimits {
        &self.room.limits
    }

    /// The last number and the last called place that are known.
    pub fn known(&self) -> (u64, u64) {
        (self.room.drawn, self.room.called)
    }

    /// The lotteries that are known.
    pub fn lotteries(&self) -> &[Lottery] {
        &self.room.lotteries
    }

    /// Whether the store was ever reached.
    pub fn is_known(&self) -> bool {
        self.is_known
    }

    /// Whether the store does not answer.
    pub fn is_out(&self) -> bool {
        self.is_out
    }

    /// The store does not answer: nobody is called, and those inside stay.
    pub fn lose(&mut self) {
        self.is_out = true;
    }

    /// Follows what the store says.
    pub fn follow(&mut self, told: RoomSnapshot, now: Moment) {
        let room = &mut self.room;
        let is_calling = room.is_open && !room.limits.is_paused && !self.is_out;
        room.pace.pass(now, is_calling && room.waiting() > 0);
        if self.is_known {
            let called = told.counts.called.saturating_sub(room.counts.called);
            (0..called.min(MAX_RECORDED)).for_each(|_| room.pace.called(now));
        }
        // What was lost at the store is not forgotten here.
        room.drawn = told.drawn.max(room.drawn);
        room.called = told.called.max(room.called).min(room.drawn);
        room.emptied = told.emptied;
        room.is_open = told.is_open;
        room.counts = told.counts;
        room.lotteries = told.lotteries;
        (self.inside, self.called) = (told.inside, told.pending);
        (self.is_known, self.is_out) = (true, false);
        let idle = room.limits.idle;
        if now.since(self.swept) >= idle / 2 {
            self.swept = now;
            self.sessions
                .retain(|_, session| now.since(session.seen) < idle);
        }
    }

    /// A visitor with a session asks.
    pub fn touch(&mut self, number: u64, now: Moment) -> MirrorTouch {
        let idle = self.room.limits.idle;
        if let Some(session) = self.sessions.get_mut(&number)
            && now.since(session.seen) < idle
        {
            session.seen = now.max(session.seen);
            if now.since(session.told) < idle / 10 {
                return MirrorTouch::Inside;
            }
            session.told = now;
            return MirrorTouch::Tell;
        }
        if self.is_out {
            return MirrorTouch::Inside;
        }
        MirrorTouch::Ask
    }

    /// A visitor is inside.
    pub fn begin(&mut self, number: u64, now: Moment) {
        if self.sessions.len() < MAX_SESSIONS as usize {
            let (seen, told) = (now, now);
            self.sessions.insert(number, KnownSession { seen, told });
        }
    }

    /// A visitor is not inside.
    pub fn end(&mut self, number: u64) {
        self.sessions.remove(&number);
    }

    /// A visitor with a ticket asks.
    pub fn poll(&mut self, number: u64, now: Moment) -> MirrorPoll {
        let place = self.room.place(number);
        let is_sure = self.is_known && number <= self.room.drawn && place > self.room.called;
        if !is_sure && !self.is_out {
            return MirrorPoll::Ask(place);
        }
        if number > self.room.drawn {
            // Of a number that was drawn in an outage only the order is known.
            return MirrorPoll::Answer(Polled::Waits(self.tell_behind(1, number, now)), None);
        }
        let place = place.max(self.room.called + 1);
        if let Err(due) = self.room.polls.poll(number, now) {
            let waiting = self.room.waiting_until(place, due, now);
            return MirrorPoll::Answer(Polled::TooOften(waiting), None);
        }
        let waiting = self.tell(number, now);
        let after = Duration::from_secs(waiting.retry_after);
        let is_near = place - self.room.called <= super::polls::REMEMBERED as u64;
        let told = (is_near && !self.is_out).then_some((place, after));
        MirrorPoll::Answer(Polled::Waits(waiting), told)
    }

    /// What a visitor is told that has just drawn a number, or was not called yet.
    pub fn tell(&mut self, number: u64, now: Moment) -> Waiting {
        self.room.tell(number, now)
    }

    /// What a visitor is told that is the `nth` behind all who wait.
    pub fn tell_behind(&self, nth: u64, number: u64, now: Moment) -> Waiting {
        self.room.behind(nth, number, now)
    }

    /// What a visitor gets that the store has not called, after [`follow`](Self::follow).
    pub fn not_called(&mut self, number: u64, now: Moment) -> Polled {
        if number == 0 || number > self.room.drawn {
            return Polled::Void;
        }
        if self.room.place(number) > self.room.called {
            return Polled::Waits(self.tell(number, now));
        }
        if number <= self.room.emptied {
            Polled::SentAway
        } else {
            Polled::Void
        }
    }

    /// The place in line of a number.
    pub fn place(&self, number: u64) -> u64 {
        self.room.place(number)
    }

    /// What has happened, at all gateways.
    pub fn counts(&self) -> RoomCounts {
        self.room.counts
    }

    /// Who is where, at all gateways.
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
    use super::*;
    use crate::Rate;

    fn at(seconds: u64) -> Moment {
        Moment::default() + Duration::from_secs(1_000_000 + seconds)
    }

    fn mirror() -> RoomMirror {
        let limits = RoomLimits {
            sessions: None,
            admit: Rate::UNLIMITED,
            idle: Duration::from_secs(100),
            claim: Duration::from_secs(10),
            opens: None,
            is_paused: false,
        };
        RoomMirror::new(limits, at(0))
    }

    fn told(drawn: u64, called: u64) -> RoomSnapshot {
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
        let found = mirror.poll(5, at(0));
        assert_eq!(found, MirrorPoll::Ask(5), "nothing is known");
        mirror.follow(told(10, 4), at(1));
        let MirrorPoll::Answer(Polled::Waits(waiting), Some((5, after))) = mirror.poll(5, at(1))
        else {
            panic!("it waits");
        };
        assert_eq!(
            (waiting.position, after.as_secs()),
            (Some(1), waiting.retry_after)
        );
        let found = mirror.poll(4, at(1));
        assert_eq!(found, MirrorPoll::Ask(4), "it may be called");
        let found = mirror.poll(11, at(1));
        assert_eq!(found, MirrorPoll::Ask(11), "another gateway gave it");
        mirror.follow(told(10, 5), at(2));
        assert_eq!(mirror.poll(5, at(2)), MirrorPoll::Ask(5));
        assert_eq!(mirror.not_called(5, at(2)), Polled::Void);
        assert!(matches!(mirror.not_called(6, at(2)), Polled::Waits(_)));
    }

    #[test]
    fn a_session_is_asked_about_once_and_told_from_time_to_time() {
        let mut mirror = mirror();
        mirror.follow(told(10, 10), at(0));
        assert_eq!(mirror.touch(3, at(0)), MirrorTouch::Ask);
        mirror.begin(3, at(0));
        assert_eq!(mirror.touch(3, at(9)), MirrorTouch::Inside);
        assert_eq!(mirror.touch(3, at(10)), MirrorTouch::Tell);
        assert_eq!(mirror.touch(3, at(11)), MirrorTouch::Inside);
        assert_eq!(mirror.touch(3, at(111)), MirrorTouch::Ask, "it was idle");
        mirror.begin(3, at(111));
        mirror.end(3);
        assert_eq!(mirror.touch(3, at(112)), MirrorTouch::Ask);
    }

    #[test]
    fn in_an_outage_nobody_is_called_and_those_inside_stay() {
        let mut mirror = mirror();
        mirror.follow(told(10, 4), at(0));
        mirror.lose();
        assert_eq!(mirror.touch(3, at(1)), MirrorTouch::Inside);
        for number in [2, 5, 11] {
            let polled = mirror.poll(number, at(1));
            let is_answered = matches!(polled, MirrorPoll::Answer(Polled::Waits(_), None));
            assert!(is_answered, "{number}");
        }
        mirror.follow(told(11, 4), at(2));
        assert!(!mirror.is_out());
    }

    #[test]
    fn what_the_store_lost_is_not_forgotten() {
        let mut mirror = mirror();
        mirror.follow(told(10, 4), at(0));
        mirror.follow(told(8, 2), at(1));
        assert_eq!(mirror.known(), (10, 4));
    }
}
