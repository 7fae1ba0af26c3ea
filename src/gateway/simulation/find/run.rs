//! Runs the experiment of `find` on a simulated origin.
//!
//! An experiment raises the level of an origin, its rate or its number of permits (requests at
//! once), until the objective, such as p95<400ms, is no longer kept.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use limit::find::{AnswerEvent, Experiment, FindReport, Levels, Observed};
use limit::{Moment, Rate};

use super::origins::{Origin, exponential};
use crate::simulation::random::Random;

/// Requests that wait at the gate.
#[derive(Debug)]
pub(super) enum Demand {
    /// A request always waits.
    Endless,
    /// Requests arrive at random, and at times none waits.
    Arrivals(Arrivals),
}

/// Requests that arrive at random.
#[derive(Debug)]
pub(super) struct Arrivals {
    /// Arrivals per second.
    rate: f64,
    /// Arrivals of the waiting requests.
    waiting: VecDeque<f64>,
    /// Time of the next arrival.
    next: f64,
    random: Random,
    /// Whether no request waited at some time since the last check.
    has_been_empty: bool,
    /// Maximum number of waiting requests.
    pub most_waiting: usize,
}

impl Arrivals {
    pub fn new(rate: f64, random: Random) -> Self {
        Self {
            rate,
            waiting: VecDeque::new(),
            next: 0.0,
            random,
            has_been_empty: false,
            most_waiting: 0,
        }
    }

    /// Removes the request that leaves at `now`, and returns its wait in seconds; `None`: none
    /// waits.
    pub fn take(&mut self, now: f64) -> Option<f64> {
        while self.next <= now {
            self.waiting.push_back(self.next);
            self.next += exponential(&mut self.random, 1.0 / self.rate);
        }
        self.most_waiting = self.most_waiting.max(self.waiting.len());
        let arrived = self.waiting.pop_front();
        self.has_been_empty |= self.waiting.is_empty();
        arrived.map(|arrived| now - arrived)
    }
}

impl Demand {
    fn take(&mut self, now: f64) -> Option<f64> {
        match self {
            Self::Endless => Some(ENDLESS_WAIT),
            Self::Arrivals(arrivals) => arrivals.take(now),
        }
    }

    /// Returns whether a request waited all the time since the last call.
    fn has_waited(&mut self) -> bool {
        match self {
            Self::Endless => true,
            Self::Arrivals(arrivals) => !std::mem::take(&mut arrivals.has_been_empty),
        }
    }
}

/// Wait of each request of an endless demand, in seconds. An arbitrary number: it is only reported.
const ENDLESS_WAIT: f64 = 0.31;
/// Interval between calls of the experiment, in seconds.
const TICK: f64 = 0.1;

/// Longest run, in seconds.
const MAX_RUN: f64 = 20_000.0;

/// Result of an experiment on an origin.
#[derive(Debug)]
pub(super) struct Run {
    pub report: FindReport,
    /// Levels that were set, each with the time in seconds.
    pub levels: Vec<(f64, Levels)>,
    pub seconds: f64,
}

/// A response in flight: nanoseconds of its arrival and of the request's departure, and status.
type Pending = Reverse<(u64, u64, u16)>;

/// Runs an experiment to its end.
pub(super) fn run(
    mut experiment: Experiment,
    origin: &mut dyn Origin,
    demand: &mut Demand,
    random: &mut Random,
) -> Run {
    let mut pending: BinaryHeap<Pending> = BinaryHeap::new();
    let mut levels = vec![(0.0, experiment.levels())];
    let (mut now, mut next_tick, mut next_departure) = (0.0_f64, TICK, 0.0_f64);
    let mut seen = Observed::default();
    let mut last_wait = None;
    // Levels in force. They change only in a tick.
    let mut set = experiment.levels();
    while !experiment.is_over() && now < MAX_RUN {
        let has_permit = set
            .permits
            .is_none_or(|permits| pending.len() < permits as usize);
        let next_answer = pending
            .peek()
            .map_or(f64::MAX, |Reverse((arrival, ..))| seconds(*arrival));
        let departs = if has_permit {
            next_departure.max(now)
        } else {
            f64::MAX
        };
        now = departs.min(next_tick).min(next_answer);
        if next_answer <= now {
            if let Some(Reverse((arrival, sent, status))) = pending.pop() {
                let took = Duration::from_nanos(arrival - sent);
                experiment.record(Moment::from_nanos(sent), AnswerEvent::Head { took, status });
                experiment.record(
                    Moment::from_nanos(sent),
                    AnswerEvent::Whole { took, status },
                );
            }
        } else if departs <= now {
            // Without a rate, requests leave at this pace until no permit is free.
            let rate = set.rate.map_or(10_000.0, Rate::per_second);
            // The schedule goes on after a late departure. At most one missed one is made up.
            next_departure = next_departure.max(now - 1.0 / rate) + 1.0 / rate;
            if let Some(waited) = demand.take(now) {
                last_wait = Some(Duration::from_secs_f64(waited));
                let answer = origin.answer(now, random);
                let end = nanos(now + answer.took);
                pending.push(Reverse((end.max(nanos(now)), nanos(now), answer.status)));
                seen.departed += 1;
                let in_flight = u32::try_from(pending.len()).unwrap_or(u32::MAX);
                seen.in_flight = seen.in_flight.max(in_flight);
            }
        } else {
            next_tick += TICK;
            seen.has_waited = demand.has_waited();
            seen.wait = last_wait.take();
            experiment.tick(&seen, Moment::from_nanos(nanos(now)));
            // `departed` counts from the start. The other values are of one tick: the maximum in
            // flight begins with the current number.
            seen.in_flight = u32::try_from(pending.len()).unwrap_or(u32::MAX);
            set = experiment.levels();
            if levels.last().is_none_or(|(_, last)| *last != set) {
                levels.push((now, set));
            }
        }
    }
    Run {
        report: experiment.report(Moment::from_nanos(nanos(now))),
        levels,
        seconds: now,
    }
}

fn nanos(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}
