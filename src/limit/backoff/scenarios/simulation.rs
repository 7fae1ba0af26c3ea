//! The simulation of a scenario of a back-off: events on virtual time.
//!
//! The gate and the back-off are the real ones. The origin is synthetic: see `origin`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use super::super::*;
use super::origin::{Job, Origin, Outcome};
use super::record::{Record, Seen, State};
use super::scenario::Scenario;
use crate::backoff::tick::TICK;
use crate::{Admission, Cost, Gate, GateLimits, OriginTime, Share};

/// Instant at which a simulation begins.
const START: Moment = Moment::from_nanos(1_000_000_000_000);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The origin has this number of workers from now on.
    Workers(usize),
    /// The origin has served the request with this number.
    Served(usize),
    /// The origin has rejected the request with this number.
    Shed(usize),
    /// The request with this number has waited for too long.
    TimedOut(usize),
    /// The gate applies the limits of the back-off.
    Update,
    /// A request arrives at the gate.
    Arrival,
}

struct Simulation {
    scenario: Scenario,
    events: BinaryHeap<Reverse<(Moment, Event)>>,
    gate: Gate<u8, usize>,
    backoff: Backoff,
    origin: Origin,
    /// By number of the request; `None`: it was not sent yet, or has an answer.
    requests: Vec<Option<Sent>>,
    random: u64,
    record: Record,
}

/// Runs a scenario to its end.
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
            let then = START + Duration::from_secs_f64(second);
            self.schedule(then, Event::Workers(workers));
        }
        self.schedule(START, Event::Arrival);
        self.schedule(START, Event::Update);
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
                self.handle(event, now);
                self.release(now);
            }
        }
    }

    fn schedule(&mut self, at: Moment, event: Event) {
        self.events.push(Reverse((at, event)));
    }

    /// Lets the requests depart that are due at the gate.
    fn release(&mut self, now: Moment) {
        while let Some(release) = self.gate.take(now) {
            self.depart(release.waiter, now);
        }
    }

    /// Sends a request to the origin.
    fn depart(&mut self, number: usize, now: Moment) {
        let in_flight = self.gate.in_flight();
        self.requests[number] = Some(self.backoff.sent(in_flight, now));
        self.record.sent.push(now.since(START));
        self.schedule(now + self.scenario.timeout, Event::TimedOut(number));
        let takes = (self.scenario.takes)(number);
        match self.origin.receive(Job { number, takes }, now) {
            Outcome::Done { number, at } => self.schedule(at, Event::Served(number)),
            Outcome::Shed => self.schedule(now + Duration::from_millis(1), Event::Shed(number)),
            Outcome::Waits => {}
        }
    }

    fn handle(&mut self, event: Event, now: Moment) {
        match event {
            Event::Arrival => {
                let number = self.requests.len();
                self.requests.push(None);
                if self.gate.join(&Share::of(0), Cost::ONE, now, || number) == Admission::Passed {
                    self.depart(number, now);
                }
                let gap = self.gap();
                self.schedule(now + gap, Event::Arrival);
            }
            Event::Update => {
                self.update(now);
                self.schedule(now + TICK, Event::Update);
            }
            Event::Workers(workers) => {
                self.origin.workers = workers;
                self.begin_waiting(now);
            }
            Event::Served(number) => {
                self.origin.finish();
                self.begin_waiting(now);
                self.answered(number, true, now);
            }
            Event::Shed(number) | Event::TimedOut(number) => self.answered(number, false, now),
        }
    }

    /// Gives waiting requests to free workers.
    fn begin_waiting(&mut self, now: Moment) {
        while let Some((number, at)) = self.origin.begin_next(now) {
            self.schedule(at, Event::Served(number));
        }
    }

    /// Records the answer to a request, unless it has one already.
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

    /// Applies the limits of the back-off to the gate, and records them.
    fn update(&mut self, now: Moment) {
        if let Some(cuts) = self.backoff.update(now) {
            let at = now.since(START);
            let max_in_flight = self.backoff.max_in_flight();
            let limits = GateLimits {
                rate: self.backoff.rate(),
                max_in_flight,
                ..*self.gate.limits()
            };
            self.gate.set_limits(limits, now);
            if let Some(until) = self.backoff.paused_until() {
                self.gate.pause(until);
            }
            let rate = limits.rate.map_or(0.0, Rate::per_second);
            let state = State {
                at,
                rate,
                max_in_flight,
            };
            self.record.states.push(state);
            if cuts != Cuts::default() {
                self.record.cuts.push((at, cuts));
            }
            let cut = self.backoff.lowered().rate.map(|(_, cut)| cut);
            let cut = cut.filter(|_| cuts.trouble);
            let steady_until = cut.and_then(|cut| Some((cut.at, cut.steady_until?)));
            if let Some((cut, until)) = steady_until {
                let steady = (cut.since(START), until.since(cut));
                self.record.steady_times.push(steady);
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
