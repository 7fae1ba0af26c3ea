//! A synthetic origin for scenarios of a back-off: workers, and a queue in front of them.

use std::collections::VecDeque;
use std::time::Duration;

use crate::Moment;

/// A request at the synthetic origin.
#[derive(Debug)]
pub(super) struct Job {
    pub number: usize,
    /// Time that a worker needs for it.
    pub takes: Duration,
}

/// Workers that serve one request each, first come, first served.
#[derive(Debug)]
pub(super) struct Origin {
    pub workers: usize,
    /// Upper bound of the requests that wait for a worker. More are shed.
    pub room: usize,
    /// Number of workers that serve a request.
    busy: usize,
    /// Requests that wait for a worker.
    waiting: VecDeque<Job>,
}

/// Result of a request that arrives at the origin.
pub(super) enum Outcome {
    /// A worker serves the request until this instant.
    Done { number: usize, at: Moment },
    /// The request waits for a worker.
    Waits,
    /// The request is rejected at once.
    Shed,
}

impl Origin {
    pub fn new(workers: usize, room: usize) -> Self {
        Self {
            workers,
            room,
            busy: 0,
            waiting: VecDeque::new(),
        }
    }

    /// Receives a request.
    pub fn receive(&mut self, job: Job, now: Moment) -> Outcome {
        if self.busy < self.workers {
            self.busy += 1;
            let Job { number, takes } = job;
            return Outcome::Done {
                number,
                at: now + takes,
            };
        }
        if self.waiting.len() >= self.room {
            return Outcome::Shed;
        }
        self.waiting.push_back(job);
        Outcome::Waits
    }

    /// Frees the worker of a served request.
    pub fn finish(&mut self) {
        self.busy -= 1;
    }

    /// Begins the next waiting request, if a worker is free. Returns its number and its end.
    pub fn begin_next(&mut self, now: Moment) -> Option<(usize, Moment)> {
        let job = (self.busy < self.workers).then(|| self.waiting.pop_front())??;
        self.busy += 1;
        Some((job.number, now + job.takes))
    }
}
