use std::collections::VecDeque;
use std::time::Duration;

use crate::Moment;

/// A request at the synthetic origin.
#[derive(Debug)]
pub(super) struct Job {
    pub number: usize,
    pub takes: Duration,
}

/// Workers that serve one request each, first come, first served.
#[derive(Debug)]
pub(super) struct Origin {
    pub workers: usize,
    /// Requests that may wait for a worker; the rest is shed.
    pub room: usize,
    busy: usize,
    waiting: VecDeque<Job>,
}

/// What becomes of a request that comes to the origin, or of the next one in its queue.
pub(super) enum Outcome {
    Done { number: usize, at: Moment },
    Waits,
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

    pub fn come(&mut self, job: Job, now: Moment) -> Outcome {
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

    /// A worker has served a request.
    pub fn finish(&mut self) {
        self.busy -= 1;
    }

    /// The next request that a free worker begins with.
    pub fn next(&mut self, now: Moment) -> Option<(usize, Moment)> {
        let job = (self.busy < self.workers).then(|| self.waiting.pop_front())??;
        self.busy += 1;
        Some((job.number, now + job.takes))
    }
}
