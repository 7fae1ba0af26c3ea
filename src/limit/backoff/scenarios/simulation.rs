//! The simulation of a scenario: events on virtual time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use super::super::*;
use super::origin::{Job, Origin, Outcome};
use super::record::{Record, Seen};
use super::scenario::Scenario;
use crate::backoff::tick::TICK;
use crate::{Admission, Cost, Gate, GateLimits, OriginTime, Share};

/// Instant at which a simulation begins.
const START: Moment = Moment::from_nanos(1_000_000_000_000);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Workers(usize),
    Served(usize),
    Shed(usize),
    TimedOut(usize),
    Update,
    Arrival,
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
        queue: Some(100),
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
            // A slot may be due before the next event.
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
                if self.gate.join(&Share::of(0), Cost::ONE, now, || number) == Admission::Passed {
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
            time: OriginTime::NEW,
        };
        self.backoff.answered(sent, answer, now);
        self.gate.give_back(now);
        self.update(now);
    }

    fn update(&mut self, now: Moment) {
        if let Some(cuts) = self.backoff.update(now) {
            let at = now.since(START);
            let limit = self.backoff.max_in_flight();
            let limits = GateLimits {
                rate: self.backoff.rate(),
                max_in_flight: limit,
                ..*self.gate.limits()
            };
            self.gate.set_limits(limits, now);
            if let Some(until) = self.backoff.paused_until() {
                self.gate.pause(until);
            }
            let rate = limits.rate.map_or(0.0, Rate::per_second);
            self.record.states.push((at, rate, limit));
            if cuts != Cuts::default() {
                self.record.cuts.push((at, cuts));
            }
            if let Some((
                _,
                Cut {
                    at: cut,
                    steady_until: Some(until),
                    ..
                },
            )) = self.backoff.lowered().rate
                && cuts.trouble
            {
                self.record
                    .steady_times
                    .push((cut.since(START), until.since(cut)));
            }
            if let Some(until) = self.backoff.paused_until().filter(|_| cuts.retry_after) {
                self.record.pauses.push((at, until.since(now)));
            }
        }
    }

    /// Returns the time to the next arrival.
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

/// Turns random bits into an exponential duration with a mean of `mean` seconds.
#[allow(clippy::cast_precision_loss)]
pub(super) fn exponential(bits: u64, mean: f64) -> Duration {
    let uniform = ((bits >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
    Duration::from_secs_f64(-uniform.ln() * mean)
}
