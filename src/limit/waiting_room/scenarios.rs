//! Crowds of visitors before a room, on a virtual clock.
#![expect(clippy::cast_precision_loss, reason = "the numbers are small")]

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::num::NonZeroU32;
use std::time::Duration;

use super::*;
use crate::limit::{Moment, Rate};

const KEYS: LotteryKeys = [1, 2, 3, 4, 5, 6];

/// How visitors behave.
#[derive(Clone, Copy)]
struct Crowd {
    seed: u64,
    visitors: usize,
    /// Seconds in which they come, at random.
    come_within: f64,
    /// Whether they come in two waves rather than evenly.
    has_waves: bool,
    /// Mean seconds inside, exponentially distributed.
    stay: f64,
    /// The share by which visits get longer and shorter in turns of an hour.
    swing: f64,
    /// How many of a hundred never come back after they drew a number.
    vanish: u64,
    /// Seconds that a response takes at most.
    latency: f64,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    Comes(usize),
    Asks(usize),
    IsActive(usize),
    Event,
}

/// What happened to one visitor.
#[derive(Clone, Copy, Default)]
struct Visit {
    number: u64,
    drew: Option<Moment>,
    told: Option<Duration>,
    called: Option<Moment>,
    entered: Option<Moment>,
    leaves: Moment,
    vanishes: bool,
    voided: bool,
}

struct Run {
    room: WaitingRoom,
    now: Moment,
    random: u64,
    crowd: Crowd,
    agenda: BinaryHeap<Reverse<(Moment, Happening)>>,
    visits: Vec<Visit>,
    /// The most inside and called at once.
    most: u64,
    /// Place-seconds in which a place was neither taken nor kept while somebody waited.
    wasted: f64,
    /// Place-seconds while somebody waited.
    offered: f64,
    /// Place-seconds of those who were called and had not come yet.
    kept: f64,
    polls: u64,
    calls: Vec<Moment>,
}

fn at(seconds: f64) -> Moment {
    Moment::from_nanos(1_000_000_000_000) + Duration::from_secs_f64(seconds)
}

fn limits(sessions: u32, admit: &str, idle: u64, claim: u64) -> RoomLimits {
    RoomLimits {
        sessions: NonZeroU32::new(sessions),
        admit: match admit {
            "none" => Rate::UNLIMITED,
            rate => rate.parse().unwrap(),
        },
        idle: Duration::from_secs(idle),
        claim: Duration::from_secs(claim),
        opens: None,
        is_paused: false,
    }
}

impl Run {
    fn new(limits: RoomLimits, crowd: Crowd) -> Self {
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

    fn next(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn plan(&mut self, moment: Moment, happening: Happening) {
        self.agenda.push(Reverse((moment, happening)));
    }

    fn ask_again(&mut self, id: usize, waiting: &Waiting) {
        assert!((2..=60).contains(&waiting.retry_after), "{waiting:?}");
        let late = self.uniform() * self.crowd.latency;
        let after = Duration::from_secs(waiting.retry_after) + Duration::from_secs_f64(late);
        self.plan(self.now + after, Happening::Asks(id));
    }

    fn enter(&mut self, id: usize) {
        // Visits get longer and shorter in turns of an hour.
        let turn = self.now.since(at(0.0)).as_secs_f64() / 3600.0 * std::f64::consts::TAU;
        let longer = 1.0 + self.crowd.swing * turn.sin();
        let stay = -self.uniform().max(1e-9).ln() * self.crowd.stay * longer;
        let (now, visit) = (self.now, &mut self.visits[id]);
        visit.entered = Some(now);
        visit.leaves = now + Duration::from_secs_f64(stay);
        self.plan(self.now, Happening::IsActive(id));
    }

    fn visit(&mut self, id: usize) -> &mut Visit {
        &mut self.visits[id]
    }

    fn step(&mut self, happening: Happening) {
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
                    visit.told = waiting.wait;
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

    /// Runs until nobody waits or asks any more.
    fn run(&mut self) {
        let (mut called, mut last) = (0, RoomState::default());
        while let Some(Reverse((moment, happening))) = self.agenda.pop() {
            // Between two requests the room does what is due, to the moment.
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
                // Those who are left never come back: the room goes on by itself.
                self.plan(self.now + Duration::from_secs(1), Happening::Event);
            }
        }
        self.now = self.now + self.room.limits().idle;
        self.room.advance(KEYS, self.now);
    }

    /// All who drew a number and came: by number, when they were called.
    fn called_in_order(&self) -> Vec<(u64, Moment)> {
        let visits = self.visits.iter();
        let called = visits.filter_map(|it| Some((it.number, it.called?)));
        let mut called: Vec<_> = called.collect();
        called.sort_unstable();
        called
    }

    /// The told and the true wait of all who drew a number after so many seconds, and came.
    fn waits(&self, after: f64) -> Vec<(f64, f64)> {
        let visits = self.visits.iter().filter(|it| it.drew >= Some(at(after)));
        let waits = visits.filter_map(|it| {
            let happened = it.called?.since(it.drew?);
            Some((it.told?.as_secs_f64(), happened.as_secs_f64()))
        });
        waits.collect()
    }
}

const SALE: Crowd = Crowd {
    seed: 7,
    visitors: 20_000,
    come_within: 600.0,
    has_waves: false,
    stay: 30.0,
    swing: 0.0,
    vanish: 30,
    latency: 1.0,
};

#[test]
fn twenty_thousand_visitors_enter_in_their_order_and_never_more_than_there_are_places() {
    let mut run = Run::new(limits(500, "none", 10, 5), SALE);
    run.run();
    let called = run.called_in_order();
    assert!(called.windows(2).all(|pair| pair[0].1 <= pair[1].1));
    assert!(run.most <= 500, "{}", run.most);
    for visit in &run.visits {
        assert!(!visit.voided, "who keeps to Retry-After loses no turn");
        assert_eq!(
            visit.entered.is_some(),
            !visit.vanishes || visit.drew.is_none()
        );
    }
    let counts = run.room.counts();
    let vanished = run.visits.iter().filter(|it| it.entered.is_none()).count() as u64;
    assert_eq!(
        (counts.lost, counts.came + vanished),
        (vanished, counts.drew)
    );
    assert_eq!(
        counts.walked_in + counts.came,
        counts.left,
        "all have left in the end"
    );
    assert_eq!(run.room.state().waiting, 0);
    // A place is free for no time while somebody waits.
    assert!(
        run.wasted < run.offered * 0.001,
        "{} of {}",
        run.wasted,
        run.offered
    );
    // For one who never comes it is kept for 5 s, for others until they ask: 2 s and the latency.
    let allowed = counts.lost as f64 * 5.0 + counts.came as f64 * 1.5;
    assert!(run.kept < allowed * 1.01, "{} of {allowed}", run.kept);
}

#[test]
fn new_visitors_come_at_the_pace_of_admit() {
    let mut run = Run::new(
        limits(0, "10r/s", 60, 10),
        Crowd {
            visitors: 3000,
            come_within: 100.0,
            ..SALE
        },
    );
    run.run();
    for pair in run.calls.windows(2) {
        let apart = pair[1].since(pair[0]);
        assert!(apart >= Duration::from_millis(100), "{apart:?}");
    }
    let took = run.calls[2999].since(run.calls[0]);
    let ideal = Duration::from_millis(299_900);
    assert!(
        took >= ideal && took < ideal + Duration::from_secs(5),
        "{took:?}"
    );
}

/// The load changes: visits get longer and shorter by 10 %, and visitors come in two waves.
#[test]
fn most_are_told_how_long_they_will_wait() {
    let (mut errors, mut longest) = (Vec::new(), 0.0);
    for seed in 0..4 {
        let crowd = Crowd {
            seed,
            visitors: 12_000,
            come_within: 1800.0,
            vanish: 20,
            has_waves: true,
            swing: 0.1,
            ..SALE
        };
        let mut run = Run::new(limits(100, "none", 10, 5), crowd);
        run.run();
        for (told, happened) in run.waits(600.0) {
            errors.push((told - happened).abs() / happened.max(2.0));
            longest = happened.max(longest);
        }
    }
    errors.sort_by(f64::total_cmp);
    let share =
        |most: f64| errors.iter().filter(|it| **it <= most).count() as f64 / errors.len() as f64;
    let shares = [0.1, 0.25].map(share);
    println!(
        "of {}, up to {longest:.0} s: {shares:.3?} within 10 % and 25 %",
        errors.len()
    );
    assert!(shares[0] >= 0.5 && shares[1] >= 0.9, "{shares:?}");
}

#[test]
fn a_crowd_before_the_opening_has_a_random_order_and_those_behind_their_own() {
    let opening = RoomLimits {
        opens: Some(at(300.0)),
        ..limits(50, "none", 10, 10)
    };
    let mut run = Run::new(
        opening,
        Crowd {
            visitors: 2000,
            come_within: 400.0,
            stay: 5.0,
            ..SALE
        },
    );
    run.run();
    let count = run.room.lotteries()[0].count;
    assert_eq!(run.room.lotteries().len(), 1);
    let (mut early, late): (Vec<_>, Vec<_>) = run
        .called_in_order()
        .into_iter()
        .partition(|(number, _)| *number <= count);
    assert!(early.iter().all(|(_, called)| *called >= at(300.0)));
    assert!(late.windows(2).all(|pair| pair[0].1 <= pair[1].1));
    let last = early.iter().map(|it| it.1).max();
    assert!(late.first().is_none_or(|it| Some(it.1) >= last));
    let ordered: Vec<_> = early.clone();
    early.sort_by_key(|it| it.1);
    let moved = early
        .iter()
        .zip(&ordered)
        .filter(|(a, b)| a.0 != b.0)
        .count();
    assert!(moved > early.len() * 9 / 10, "the order is random");
    assert!(run.visits.iter().all(|it| !it.voided));
}

#[test]
fn a_restart_changes_nobodys_place() {
    let crowd = Crowd {
        visitors: 4000,
        come_within: 60.0,
        stay: 5.0,
        ..SALE
    };
    let mut run = Run::new(limits(100, "none", 10, 5), crowd);
    let mut numbers = HashMap::new();
    for round in 1..=20 {
        // A run that is cut at the end of each round.
        let until = at(f64::from(round) * 10.0);
        let mut later = Vec::new();
        let mut now = std::mem::take(&mut run.agenda);
        while let Some(Reverse((moment, happening))) = now.pop() {
            if moment < until {
                run.agenda.push(Reverse((moment, happening)));
            } else {
                later.push(Reverse((moment, happening)));
            }
        }
        while let Some(Reverse((moment, happening))) = run.agenda.pop() {
            if moment >= until {
                later.push(Reverse((moment, happening)));
                continue;
            }
            run.now = run.now.max(moment);
            run.step(happening);
        }
        run.agenda.extend(later);
        let saved = run.room.save(run.now);
        run.room = WaitingRoom::restore(saved, *run.room.limits(), run.now);
        for (id, visit) in run
            .visits
            .iter()
            .enumerate()
            .filter(|(_, it)| it.number > 0)
        {
            assert_eq!(*numbers.entry(visit.number).or_insert(id), id, "given once");
        }
    }
    run.run();
    let called = run.called_in_order();
    assert!(called.windows(2).all(|pair| pair[0].1 <= pair[1].1));
    assert!(run.most <= 100);
    assert!(run.visits.iter().all(|it| !it.voided));
}

/// A kill: numbers that were drawn since the last save are given to nobody else, and who keeps to
/// Retry-After keeps its place.
#[test]
fn after_a_kill_no_number_is_given_twice() {
    let mut room = WaitingRoom::new(limits(1, "none", 60, 5), at(0.0));
    assert_eq!(room.draw(KEYS, at(0.0)), Drawn::Inside(1));
    let draw = |room: &mut WaitingRoom, now| match room.draw(KEYS, now) {
        Drawn::Waits(number, waiting) => (number, waiting),
        other => panic!("{other:?}"),
    };
    for number in 2..=5 {
        assert_eq!(draw(&mut room, at(1.0)).0, number);
    }
    let mut saved = room.save(at(1.0));
    saved.reserved = 1000;
    for number in 6..=9 {
        assert_eq!(draw(&mut room, at(1.5)).0, number);
    }
    let mut room = WaitingRoom::restore(saved, *room.limits(), at(2.0));
    let (number, waiting) = draw(&mut room, at(3.0));
    assert_eq!((number, waiting.position), (1001, Some(5)));
    // Number 7 still asks, the others of its time do not.
    for number in [2, 3, 4, 5, 7, 1001] {
        assert!(
            matches!(room.poll(number, KEYS, at(4.0)), Polled::Waits(_)),
            "{number}"
        );
    }
    // The one inside leaves after a minute. Each visitor comes as told and leaves at once.
    let mut entered = Vec::new();
    let mut now = at(4.0);
    while entered.len() < 6 && now < at(1000.0) {
        now = now + Duration::from_secs(1);
        for number in [2, 3, 4, 5, 7, 1001] {
            if !entered.contains(&number)
                && matches!(room.poll(number, KEYS, now), Polled::Inside(_))
            {
                entered.push(number);
            }
        }
    }
    assert_eq!(entered, [2, 3, 4, 5, 7, 1001]);
}
