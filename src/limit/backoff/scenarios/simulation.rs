use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use super::super::*;
use super::origin::{Job, Origin, Outcome};
use crate::limit::{Admission, Gate, GateLimits};

/// When a simulation begins.
const START: Moment = Moment::from_nanos(1_000_000_000_000);

/// What is simulated.
pub(super) struct Scenario {
    pub seconds: u64,
    pub offered: f64,
    /// Random arrivals of this seed; `None`: even ones.
    pub seed: Option<u64>,
    pub rate: Option<&'static str>,
    pub max_in_flight: Option<usize>,
    pub limits: BackoffLimits,
    pub workers: usize,
    /// Requests that may wait at the origin.
    pub room: usize,
    /// From a second on, so many workers.
    pub changes: Vec<(f64, usize)>,
    /// How long a request is served, by its number.
    pub takes: fn(usize) -> Duration,
    /// A request without an answer after this time is trouble.
    pub timeout: Duration,
    /// What shed requests are told.
    pub retry_after: Option<Duration>,
}

impl Default for Scenario {
    fn default() -> Self {
        Self {
            seconds: 120,
            offered: 150.0,
            seed: None,
            rate: Some("200r/s"),
            max_in_flight: None,
            limits: BackoffLimits {
                slow: None,
                trip: Percent::from_millionths(100_000),
                floor: Percent::from_millionths(100_000),
                max_pause: Duration::from_secs(30),
            },
            workers: 10,
            room: 20,
            changes: vec![(20.0, 3), (60.0, 10)],
            takes: |_| Duration::from_millis(50),
            timeout: Duration::from_secs(30),
            retry_after: None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Workers(usize),
    Served(usize),
    Shed(usize),
    TimedOut(usize),
    Update,
    Arrival,
}

/// An answer of the origin.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub sent: Duration,
    pub at: Duration,
    pub good: bool,
}

/// What happened.
#[derive(Debug, Default)]
pub(super) struct Record {
    pub answers: Vec<Seen>,
    /// All departures.
    pub sent: Vec<Duration>,
    /// At each update: when, the rate a second, the number in flight.
    pub states: Vec<(Duration, f64, Option<usize>)>,
    pub cuts: Vec<(Duration, Cuts)>,
    /// Each hold of the rate, with the moment of its cut.
    pub holds: Vec<(Duration, Duration)>,
    pub pauses: Vec<(Duration, Duration)>,
}

struct Simulation {
    scenario: Scenario,
    events: BinaryHeap<Reverse<(Moment, Event)>>,
    gate: Gate<u8, usize>,
    backoff: Backoff,
    origin: Origin,
    requests: Vec<Option<Sent>>,
    random: u64,
    record: Record,
}

pub(super) fn run(scenario: Scenario) -> Record {
    let rate = scenario.rate.map(|rate| rate.parse().unwrap());
    let gate = Gate::new(GateLimits {
        rate,
        max_in_flight: scenario.max_in_flight,
        queue: 100,
        max_queue: 1000,
    });
    let mut simulation = Simulation {
        gate,
        backoff: Backoff::new(scenario.limits, rate, scenario.max_in_flight, START),
        origin: Origin::new(scenario.workers, scenario.room),
        events: BinaryHeap::new(),
        requests: Vec::new(),
        random: scenario.seed.unwrap_or(1),
        record: Record::default(),
        scenario,
    };
    simulation.run();
    simulation.record
}

impl Simulation {
    fn run(&mut self) {
        for (second, workers) in self.scenario.changes.clone() {
            self.at(
                START + Duration::from_secs_f64(second),
                Event::Workers(workers),
            );
        }
        self.at(START, Event::Arrival);
        self.at(START, Event::Update);
        let end = START + Duration::from_secs(self.scenario.seconds);
        let mut now = START;
        while now < end {
            let next = self.events.peek().map(|Reverse((at, _))| *at);
            let due = self
                .gate
                .due()
                .filter(|due| next.is_none_or(|next| *due < next));
            // A slot that is due before what happens next.
            now = due.or(next).unwrap_or(end).max(now);
            self.release(now);
            if due.is_none()
                && let Some(Reverse((_, event))) = self.events.pop()
            {
                self.happens(event, now);
                self.release(now);
            }
        }
    }

    fn at(&mut self, at: Moment, event: Event) {
        self.events.push(Reverse((at, event)));
    }

    fn release(&mut self, now: Moment) {
        while let Some(release) = self.gate.take(now) {
            self.depart(release.waiter, now);
        }
    }

    fn depart(&mut self, number: usize, now: Moment) {
        let in_flight = self.gate.in_flight();
        self.requests[number] = Some(self.backoff.sent(in_flight, now));
        self.record.sent.push(now.since(START));
        self.at(now + self.scenario.timeout, Event::TimedOut(number));
        let takes = (self.scenario.takes)(number);
        match self.origin.come(Job { number, takes }, now) {
            Outcome::Done { number, at } => self.at(at, Event::Served(number)),
            Outcome::Shed => self.at(now + Duration::from_millis(1), Event::Shed(number)),
            Outcome::Waits => {}
        }
    }

    fn happens(&mut self, event: Event, now: Moment) {
        match event {
            Event::Arrival => {
                let number = self.requests.len();
                self.requests.push(None);
                if self.gate.join(&0, 1, 1, now, || number) == Admission::Passed {
                    self.depart(number, now);
                }
                let gap = self.gap();
                self.at(now + gap, Event::Arrival);
            }
            Event::Update => {
                self.update(now);
                self.at(now + TICK, Event::Update);
            }
            Event::Workers(workers) => {
                self.origin.workers = workers;
                self.begin(now);
            }
            Event::Served(number) => {
                self.origin.finish();
                self.begin(now);
                self.answered(number, true, now);
            }
            Event::Shed(number) | Event::TimedOut(number) => self.answered(number, false, now),
        }
    }

    fn begin(&mut self, now: Moment) {
        while let Some((number, at)) = self.origin.next(now) {
            self.at(at, Event::Served(number));
        }
    }

    fn answered(&mut self, number: usize, good: bool, now: Moment) {
        let Some(sent) = self.requests[number].take() else {
            return;
        };
        self.record.answers.push(Seen {
            sent: sent.at.since(START),
            at: now.since(START),
            good,
        });
        let answer = Answer {
            trouble: !good,
            retry_after: self.scenario.retry_after.filter(|_| !good),
            cost: 1,
        };
        self.backoff.answered(sent, answer, now);
        self.gate.give_back(now);
        self.update(now);
    }

    fn update(&mut self, now: Moment) {
        if let Some(cuts) = self.backoff.update(now) {
            let at = now.since(START);
            let limit = self.backoff.max_in_flight();
            let paused = self.backoff.paused_until();
            let limits = GateLimits {
                rate: self.backoff.rate(),
                max_in_flight: if paused.is_some() { Some(0) } else { limit },
                ..*self.gate.limits()
            };
            self.gate.set_limits(limits, now);
            let rate = limits.rate.map_or(0.0, Rate::per_second);
            self.record.states.push((at, rate, limit));
            if cuts != Cuts::default() {
                self.record.cuts.push((at, cuts));
            }
            if let Some((
                _,
                Cut {
                    at: cut,
                    held_until: Some(until),
                    ..
                },
            )) = self.backoff.lowered().rate
                && cuts.trouble
            {
                self.record.holds.push((cut.since(START), until.since(cut)));
            }
            if let Some(until) = paused.filter(|_| cuts.retry_after) {
                self.record.pauses.push((at, until.since(now)));
            }
        }
    }

    /// The time to the next arrival.
    fn gap(&mut self) -> Duration {
        let mean = 1.0 / self.scenario.offered;
        if self.scenario.seed.is_none() {
            return Duration::from_secs_f64(mean);
        }
        // xorshift64*
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        exponential(self.random.wrapping_mul(0x2545_f491_4f6c_dd1d), mean)
    }
}

/// Random bits as an exponential time, `mean` seconds on average.
#[allow(clippy::cast_precision_loss)]
pub(super) fn exponential(bits: u64, mean: f64) -> Duration {
    let uniform = ((bits >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
    Duration::from_secs_f64(-uniform.ln() * mean)
}

#[allow(clippy::cast_precision_loss)]
impl Record {
    fn between(&self, from: u64, to: u64) -> impl Iterator<Item = &Seen> {
        let (from, to) = (Duration::from_secs(from), Duration::from_secs(to));
        let answers = self.answers.iter();
        answers.filter(move |seen| seen.at >= from && seen.at < to)
    }

    /// Good answers a second between two seconds.
    pub fn good(&self, from: u64, to: u64) -> f64 {
        let good = self.between(from, to).filter(|seen| seen.good).count();
        good as f64 / (to - from) as f64
    }

    /// The share of trouble in the answers between two seconds.
    pub fn errors(&self, from: u64, to: u64) -> f64 {
        let bad = self.between(from, to).filter(|seen| !seen.good).count();
        bad as f64 / self.between(from, to).count().max(1) as f64
    }

    /// The time at the origin that so many of 100 answers do not exceed.
    pub fn percentile(&self, of_100: usize, from: u64, to: u64) -> Duration {
        let mut took: Vec<_> = self
            .between(from, to)
            .map(|seen| seen.at.saturating_sub(seen.sent))
            .collect();
        took.sort_unstable();
        took[(took.len() * of_100).div_ceil(100) - 1]
    }

    /// When the rate first is in a range, from a second on.
    pub fn first(&self, from: u64, is_there: impl Fn(f64) -> bool) -> Option<Duration> {
        let after = |at: &Duration| *at >= Duration::from_secs(from);
        let mut states = self.states.iter().filter(|(at, ..)| after(at));
        states
            .find(|(_, rate, _)| is_there(*rate))
            .map(|(at, ..)| *at)
    }

    pub fn longest_hold(&self) -> Duration {
        self.holds
            .iter()
            .map(|(_, hold)| *hold)
            .max()
            .unwrap_or_default()
    }
}
