//! A run of visitors before a room, on a virtual clock.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use super::crowd::VisitorCrowd;
use super::tally::RoomTally;
use super::visit::SimulatedVisit;
use crate::limit::{Call, Drawn, LotteryKeys, Moment, Polled, RoomLimits, Waiting, WaitingRoom};
use crate::tools::random::Random;

/// Of the lottery at the opening.
const KEYS: LotteryKeys = [1, 2, 3, 4, 5, 6];

/// How long after the last arrival or the opening a run ends, whoever waits then.
const MAX_WAIT: Duration = Duration::from_secs(24 * 3600);

/// A visitor asks again at most so long after `Retry-After` has passed.
const MAX_LATENCY: Duration = Duration::from_secs(1);

/// A visitor asks for a page at least once in this share of `idle`.
const ACTIVE: f64 = 0.9;

/// What a run gave.
#[derive(Debug)]
pub(super) struct RoomResult {
    /// In the order of their arrivals.
    pub(super) visits: Vec<SimulatedVisit>,
    pub(super) tally: RoomTally,
}

/// What a visitor does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Act {
    Comes(usize),
    Polls(usize),
    AsksInside(usize),
    /// The room does something without a visitor.
    Room,
}

/// Visitors before a room, until all are through.
#[derive(Debug)]
pub(super) struct RoomRun<'a> {
    room: WaitingRoom,
    crowd: &'a VisitorCrowd,
    random: Random,
    now: Moment,
    end: Moment,
    visits: Vec<SimulatedVisit>,
    /// How many of the visits have begun.
    arrived: usize,
    agenda: BinaryHeap<Reverse<(Moment, Act)>>,
    tally: RoomTally,
}

impl<'a> RoomRun<'a> {
    pub(super) fn new(limits: RoomLimits, crowd: &'a VisitorCrowd) -> Self {
        let mut random = Random(1);
        let arrivals = crowd.arrivals(&mut random);
        let visit = |came| SimulatedVisit {
            came,
            number: 0,
            returns: random.share() >= crowd.leave,
            told: None,
            called: None,
            entered: None,
            left: None,
        };
        let begin = VisitorCrowd::BEGIN;
        let last = crowd.within.max(crowd.early.unwrap_or_default());
        Self {
            room: WaitingRoom::new(limits, begin),
            visits: arrivals.into_iter().map(visit).collect(),
            crowd,
            random,
            now: begin,
            end: begin + last + MAX_WAIT,
            arrived: 0,
            agenda: BinaryHeap::new(),
            tally: RoomTally::new(limits.sessions),
        }
    }

    /// Runs until nobody waits or is inside, or until the end.
    pub(super) fn run(mut self) -> RoomResult {
        while let Some((moment, act)) = self.next() {
            if moment > self.end {
                break;
            }
            self.now = self.now.max(moment);
            self.tally.pass(self.now);
            self.act(act);
            self.tally
                .observe(self.now, self.room.state(), self.room.counts());
        }
        RoomResult {
            visits: self.visits,
            tally: self.tally,
        }
    }

    /// What is next. The room goes before visitors of the same moment.
    fn next(&mut self) -> Option<(Moment, Act)> {
        let planned = self.agenda.peek().map(|Reverse(planned)| *planned);
        let arrival = self.visits.get(self.arrived);
        let arrival = arrival.map(|visit| (visit.came, Act::Comes(self.arrived)));
        let due = self.room.next_event().map(|due| (due, Act::Room));
        let earlier = |one: (Moment, Act), other: (Moment, Act)| {
            if other.0 < one.0 { other } else { one }
        };
        let next = [due, planned, arrival]
            .into_iter()
            .flatten()
            .reduce(earlier)?;
        if Some(next) == arrival {
            self.arrived += 1;
        } else if Some(next) == planned {
            self.agenda.pop();
        }
        Some(next)
    }

    fn act(&mut self, act: Act) {
        match act {
            Act::Comes(id) => self.draw(id),
            Act::Polls(id) => {
                self.tally.polled(self.now);
                match self.room.poll(self.visits[id].number, KEYS, self.now) {
                    Polled::Inside(call) => self.enter(id, Some(call)),
                    Polled::Waits(waiting) | Polled::TooOften(waiting) => {
                        self.ask_again(id, &waiting);
                    }
                    Polled::SentAway | Polled::Void => {
                        self.tally.late += 1;
                        self.draw(id);
                    }
                }
            }
            Act::AsksInside(id) => {
                let number = self.visits[id].number;
                let _is_inside = self.room.touch(number, KEYS, self.now);
                self.stay(id);
            }
            Act::Room => self.room.advance(KEYS, self.now),
        }
    }

    fn draw(&mut self, id: usize) {
        match self.room.draw(KEYS, self.now) {
            Drawn::Inside(number) => {
                self.visits[id].number = number;
                self.enter(id, None);
            }
            Drawn::Waits(number, waiting) => {
                let visit = &mut self.visits[id];
                (visit.number, visit.told) = (number, waiting.wait);
                if visit.returns {
                    self.ask_again(id, &waiting);
                }
            }
            // A room that keeps nothing has all numbers.
            Drawn::NoNumber => {}
        }
    }

    fn ask_again(&mut self, id: usize, waiting: &Waiting) {
        let late = MAX_LATENCY.mul_f64(self.random.share());
        let again = self.now + Duration::from_secs(waiting.retry_after) + late;
        self.agenda.push(Reverse((again, Act::Polls(id))));
    }

    fn enter(&mut self, id: usize, call: Option<Call>) {
        let left = self.now + self.crowd.stay(&mut self.random);
        let visit = &mut self.visits[id];
        visit.called = call.map(|call| call.at);
        visit.entered = Some(self.now);
        visit.left = Some(left);
        self.tally.entered(self.now, visit);
        self.stay(id);
    }

    /// Plans the next request of a visitor inside, or records that there is none.
    fn stay(&mut self, id: usize) {
        let Some(left) = self.visits[id].left.filter(|left| *left > self.now) else {
            self.tally.left();
            return;
        };
        let next = self.now + self.room.limits().idle.mul_f64(ACTIVE);
        let next = (next.min(left), Act::AsksInside(id));
        self.agenda.push(Reverse(next));
    }
}
