//! Simulated visitors who draw, poll, enter and leave.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::num::NonZeroU32;
use std::time::Duration;

use super::super::*;
use crate::{Moment, Rate};

pub(super) const KEYS: LotteryKeys = [1, 2, 3, 4, 5, 6];

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
    /// Percentage of visitors who never come back after they drew a number.
    pub(super) vanish: u64,
    /// Upper bound of the seconds that a response takes.
    pub(super) latency: f64,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Happening {
    Comes(usize),
    Asks(usize),
    IsActive(usize),
    Event,
}

/// Events of one visitor.
#[derive(Clone, Copy, Default)]
pub(super) struct Visit {
    pub(super) number: u64,
    pub(super) drew: Option<Moment>,
    pub(super) predicted: Option<Duration>,
    pub(super) called: Option<Moment>,
    pub(super) entered: Option<Moment>,
    pub(super) leaves: Moment,
    pub(super) vanishes: bool,
    pub(super) voided: bool,
}

pub(super) struct Run {
    pub(super) room: WaitingRoom,
    pub(super) now: Moment,
    pub(super) random: u64,
    pub(super) crowd: Crowd,
    pub(super) agenda: BinaryHeap<Reverse<(Moment, Happening)>>,
    pub(super) visits: Vec<Visit>,
    /// Largest number of visitors inside and called.
    pub(super) most: u64,
    /// Session-seconds in which a session was neither used nor reserved while a visitor waited.
    pub(super) wasted: f64,
    /// Session-seconds while a visitor waited.
    pub(super) offered: f64,
    /// Session-seconds of visitors who were called and had not arrived yet.
    pub(super) kept: f64,
    pub(super) polls: u64,
    pub(super) calls: Vec<Moment>,
}

pub(super) fn at(seconds: f64) -> Moment {
    Moment::from_nanos(1_000_000_000_000) + Duration::from_secs_f64(seconds)
}

pub(super) fn limits(sessions: u32, admit: &str, idle: u64, claim: u64) -> RoomLimits {
    RoomLimits {
        sessions: NonZeroU32::new(sessions),
        admit: Rate::parse_or_unlimited(admit).unwrap(),
        idle: Duration::from_secs(idle),
        claim: Duration::from_secs(claim),
        opens: None,
        is_paused: false,
    }
}

impl Run {
    pub(super) fn new(limits: RoomLimits, crowd: Crowd) -> Self {
        let mut run = Self {
            room: WaitingRoom::new(limits, at(0.0)),
            now: at(0.0),
            random: crowd.seed,
            crowd,
            agenda: BinaryHeap::new(),
            visits: Vec::new(),
            most: 0,
            wasted: 0.0,
            offered: 0.0,
            kept: 0.0,
            polls: 0,
            calls: Vec::new(),
        };
        for id in 0..crowd.visitors {
            let even = run.uniform();
            let uneven = 0.07 * (2.0 * std::f64::consts::TAU * even).sin();
            let comes = (even + if crowd.has_waves { uneven } else { 0.0 }) * crowd.come_within;
            let vanishes = run.next() % 100 < crowd.vanish;
            run.visits.push(Visit {
                vanishes,
                ..Visit::default()
            });
            run.plan(at(comes), Happening::Comes(id));
        }
        run
    }

    pub(super) fn next(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub(super) fn plan(&mut self, moment: Moment, happening: Happening) {
        self.agenda.push(Reverse((moment, happening)));
    }

    pub(super) fn ask_again(&mut self, id: usize, waiting: &WaitingVisitor) {
        assert!((2..=60).contains(&waiting.retry_after), "{waiting:?}");
        let late = self.uniform() * self.crowd.latency;
        let after = Duration::from_secs(waiting.retry_after) + Duration::from_secs_f64(late);
        self.plan(self.now + after, Happening::Asks(id));
    }

    pub(super) fn enter(&mut self, id: usize) {
        // Visits get longer and shorter in cycles of an hour.
        let turn = self.now.since(at(0.0)).as_secs_f64() / 3600.0 * std::f64::consts::TAU;
        let longer = 1.0 + self.crowd.swing * turn.sin();
        let stay = -self.uniform().max(1e-9).ln() * self.crowd.stay * longer;
        let (now, visit) = (self.now, &mut self.visits[id]);
        visit.entered = Some(now);
        visit.leaves = now + Duration::from_secs_f64(stay);
        self.plan(self.now, Happening::IsActive(id));
    }

    pub(super) fn visit(&mut self, id: usize) -> &mut Visit {
        &mut self.visits[id]
    }

    pub(super) fn step(&mut self, happening: Happening) {
        let now = self.now;
        match happening {
            Happening::Comes(id) => match self.room.draw(KEYS, now) {
                Drawn::Inside(number) => {
                    self.calls.push(now);
                    self.visit(id).number = number;
                    self.enter(id);
                }
                Drawn::Waits(number, waiting) => {
                    let visit = self.visit(id);
                    (visit.number, visit.drew) = (number, Some(now));
                    visit.predicted = waiting.wait;
                    if !visit.vanishes {
                        self.ask_again(id, &waiting);
                    }
                }
                Drawn::NoNumber => panic!("numbers are there"),
            },
            Happening::Asks(id) => {
                self.polls += 1;
                match self.room.poll(self.visits[id].number, KEYS, now) {
                    Polled::Inside(call) => {
                        self.visit(id).called = Some(call.at);
                        self.enter(id);
                    }
                    Polled::Waits(waiting) => self.ask_again(id, &waiting),
                    Polled::TooOften(_) => panic!("visitor {id} keeps to Retry-After"),
                    Polled::SentAway | Polled::Void => self.visit(id).voided = true,
                }
            }
            Happening::IsActive(id) => {
                let Visit { number, leaves, .. } = self.visits[id];
                assert!(self.room.touch(number, KEYS, now), "it is inside");
                let idle = self.room.limits().idle;
                let next = now + idle.mul_f64(0.3 + 0.6 * self.uniform());
                if next < leaves {
                    self.plan(next, Happening::IsActive(id));
                }
            }
            Happening::Event => self.room.advance(KEYS, now),
        }
    }

    /// Runs until no visitor waits or polls any more.
    pub(super) fn run(&mut self) {
        let (mut called, mut last) = (0, RoomState::default());
        while let Some(Reverse((moment, happening))) = self.agenda.pop() {
            // Between two requests the room advances at the exact instants.
            let due = self.room.next_event().filter(|due| *due <= moment);
            let (moment, happening) = match due {
                Some(due) => {
                    self.agenda.push(Reverse((moment, happening)));
                    (due.max(self.now), Happening::Event)
                }
                None => (moment, happening),
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
            self.step(happening);
            last = self.room.state();
            self.most = self.most.max(last.inside + last.called);
            let counts = self.room.counts();
            while called < counts.called {
                called += 1;
                self.calls.push(self.now);
            }
            if last.waiting + last.called > 0 && self.agenda.is_empty() {
                // The remaining visitors never come back: the room continues by itself.
                self.plan(self.now + Duration::from_secs(1), Happening::Event);
            }
        }
        self.now = self.now + self.room.limits().idle;
        self.room.advance(KEYS, self.now);
    }

    /// Returns the visitors who drew a number and arrived: the number, and the instant of the call.
    pub(super) fn called_in_order(&self) -> Vec<(u64, Moment)> {
        let visits = self.visits.iter();
        let called = visits.filter_map(|it| Some((it.number, it.called?)));
        let mut called: Vec<_> = called.collect();
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
