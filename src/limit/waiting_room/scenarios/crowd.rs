//! Simulated visitors who draw a number, poll until they are called, enter, and leave.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::time::Duration;

use testing::Random;

use super::super::tests::{KEYS, at};
use super::super::*;
use crate::Moment;

/// Behaviour of visitors.
#[derive(Clone, Copy)]
pub(super) struct Crowd {
    pub(super) seed: u64,
    pub(super) visitors: usize,
    /// Seconds in which they arrive, at random.
    pub(super) come_within: f64,
    /// Whether they arrive in two waves rather than evenly.
    pub(super) has_waves: bool,
    /// Mean seconds inside, exponentially distributed.
    pub(super) stay: f64,
    /// Share by which visits get longer and shorter, in cycles of an hour.
    pub(super) swing: f64,
    /// Share of visitors who never poll after they drew a number.
    pub(super) vanish: f64,
    /// Upper bound of the seconds by which a poll is later than the room asked for.
    pub(super) latency: f64,
}

/// Event of a run, with the index of the visitor.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Comes(usize),
    Polls(usize),
    /// Sends a request from inside.
    IsActive(usize),
    /// The room calls visitors, or ends calls and sessions.
    RoomAdvances,
}

/// Record of one visitor.
#[derive(Clone, Copy, Default)]
pub(super) struct Visit {
    /// The number that was drawn; 0 before that.
    pub(super) number: u64,
    /// Instant at which a visitor who had to wait drew the number.
    pub(super) drew: Option<Moment>,
    /// Predicted wait at that instant.
    pub(super) predicted: Option<Duration>,
    /// Instant of the call.
    pub(super) called: Option<Moment>,
    pub(super) entered: Option<Moment>,
    /// Instant after which the visitor sends no requests from inside.
    pub(super) leaves: Moment,
    /// Whether the visitor never polls.
    pub(super) vanishes: bool,
    /// Whether the room did not know the number any more.
    pub(super) voided: bool,
}

/// A room and its visitors, on virtual time.
pub(super) struct Run {
    pub(super) room: WaitingRoom,
    pub(super) now: Moment,
    random: Random,
    crowd: Crowd,
    /// Later events, the first one first.
    agenda: BTreeSet<(Moment, Event)>,
    pub(super) visits: Vec<Visit>,
    /// Largest number of visitors inside and called.
    pub(super) most: u64,
    /// Session-seconds in which a session was neither used nor reserved while a visitor waited.
    pub(super) wasted: f64,
    /// Session-seconds while a visitor waited.
    pub(super) offered: f64,
    /// Session-seconds of visitors who were called and had not arrived yet.
    pub(super) kept: f64,
    /// Instants at which visitors were called, or entered without waiting.
    pub(super) calls: Vec<Moment>,
}

impl Run {
    pub(super) fn new(limits: RoomLimits, crowd: Crowd) -> Self {
        let mut run = Self {
            room: WaitingRoom::new(limits, at(0.0)),
            now: at(0.0),
            random: Random(crowd.seed),
            crowd,
            agenda: BTreeSet::new(),
            visits: Vec::new(),
            most: 0,
            wasted: 0.0,
            offered: 0.0,
            kept: 0.0,
            calls: Vec::new(),
        };
        for id in 0..crowd.visitors {
            let even = run.random.share();
            let uneven = 0.07 * (2.0 * std::f64::consts::TAU * even).sin();
            let comes = (even + if crowd.has_waves { uneven } else { 0.0 }) * crowd.come_within;
            let vanishes = run.random.share() < crowd.vanish;
            run.visits.push(Visit {
                vanishes,
                ..Visit::default()
            });
            run.plan(at(comes), Event::Comes(id));
        }
        run
    }

    fn plan(&mut self, moment: Moment, event: Event) {
        self.agenda.insert((moment, event));
    }

    /// Plans the next poll of a visitor who keeps to `Retry-After`.
    fn poll_later(&mut self, id: usize, waiting: &WaitingVisitor) {
        assert!((2..=60).contains(&waiting.retry_after), "{waiting:?}");
        let late = self.random.share() * self.crowd.latency;
        let after = Duration::from_secs(waiting.retry_after) + Duration::from_secs_f64(late);
        self.plan(self.now + after, Event::Polls(id));
    }

    fn enter(&mut self, id: usize) {
        // Visits get longer and shorter in cycles of an hour.
        let turn = self.now.since(at(0.0)).as_secs_f64() / 3600.0 * std::f64::consts::TAU;
        let longer = 1.0 + self.crowd.swing * turn.sin();
        let stay = -self.random.share().max(1e-9).ln() * self.crowd.stay * longer;
        let (now, visit) = (self.now, &mut self.visits[id]);
        visit.entered = Some(now);
        visit.leaves = now + Duration::from_secs_f64(stay);
        self.plan(self.now, Event::IsActive(id));
    }

    /// Lets the next event of the agenda happen, if it is before `until`.
    pub(super) fn step_before(&mut self, until: Moment) -> bool {
        let Some((moment, event)) = self.agenda.pop_first() else {
            return false;
        };
        if moment >= until {
            self.agenda.insert((moment, event));
            return false;
        }
        self.now = self.now.max(moment);
        self.handle(event);
        true
    }

    fn handle(&mut self, event: Event) {
        let now = self.now;
        match event {
            Event::Comes(id) => match self.room.draw(KEYS, now) {
                Drawn::Inside(number) => {
                    self.calls.push(now);
                    self.visits[id].number = number;
                    self.enter(id);
                }
                Drawn::Waits(number, waiting) => {
                    let visit = &mut self.visits[id];
                    (visit.number, visit.drew) = (number, Some(now));
                    visit.predicted = waiting.wait;
                    if !visit.vanishes {
                        self.poll_later(id, &waiting);
                    }
                }
                Drawn::NoNumber => panic!("numbers are there"),
            },
            Event::Polls(id) => match self.room.poll(self.visits[id].number, KEYS, now) {
                Polled::Inside(call) => {
                    self.visits[id].called = Some(call.at);
                    self.enter(id);
                }
                Polled::Waits(waiting) => self.poll_later(id, &waiting),
                Polled::TooOften(_) => panic!("visitor {id} keeps to Retry-After"),
                Polled::SentAway | Polled::Void => self.visits[id].voided = true,
            },
            Event::IsActive(id) => {
                let Visit { number, leaves, .. } = self.visits[id];
                assert!(self.room.touch(number, KEYS, now), "it is inside");
                let idle = self.room.limits().idle;
                let next = now + idle.mul_f64(0.3 + 0.6 * self.random.share());
                if next < leaves {
                    self.plan(next, Event::IsActive(id));
                }
            }
            Event::RoomAdvances => self.room.advance(KEYS, now),
        }
    }

    /// Runs until no visitor waits or polls any more.
    pub(super) fn run(&mut self) {
        let (mut called, mut last) = (0, RoomState::default());
        while let Some((moment, event)) = self.agenda.pop_first() {
            // Between two requests the room advances at the exact instants.
            let due = self.room.next_event().filter(|due| *due <= moment);
            let (moment, event) = match due {
                Some(due) => {
                    self.agenda.insert((moment, event));
                    (due.max(self.now), Event::RoomAdvances)
                }
                None => (moment, event),
            };
            let passed = moment.since(self.now).as_secs_f64();
            self.kept += passed * last.called as f64;
            let sessions = self.room.limits().sessions.map_or(0, NonZeroU32::get);
            if last.waiting > 0 && sessions > 0 {
                let taken = last.inside + last.called;
                self.offered += passed * f64::from(sessions);
                self.wasted += passed * u64::from(sessions).saturating_sub(taken) as f64;
            }
            self.now = self.now.max(moment);
            self.handle(event);
            last = self.room.state();
            self.most = self.most.max(last.inside + last.called);
            let counts = self.room.counts();
            while called < counts.called {
                called += 1;
                self.calls.push(self.now);
            }
            if last.waiting + last.called > 0 && self.agenda.is_empty() {
                // The remaining visitors never come back: the room continues by itself.
                self.plan(self.now + Duration::from_secs(1), Event::RoomAdvances);
            }
        }
        self.now = self.now + self.room.limits().idle;
        self.room.advance(KEYS, self.now);
    }

    /// Returns the visitors who drew a number and arrived: the number, and the instant of the call.
    pub(super) fn called_in_order(&self) -> Vec<(u64, Moment)> {
        let called = |visit: &Visit| Some((visit.number, visit.called?));
        let mut called: Vec<_> = self.visits.iter().filter_map(called).collect();
        called.sort_unstable();
        called
    }

    /// Returns predicted and actual waits of visitors who drew after `after` seconds and arrived.
    pub(super) fn waits(&self, after: f64) -> Vec<(f64, f64)> {
        let visits = self.visits.iter().filter(|it| it.drew >= Some(at(after)));
        let waits = visits.filter_map(|it| {
            let happened = it.called?.since(it.drew?);
            Some((it.predicted?.as_secs_f64(), happened.as_secs_f64()))
        });
        waits.collect()
    }
}
