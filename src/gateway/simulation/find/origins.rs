//! The seven origins.

use super::origin::{Answer, Origin, Servers, exponential, uniform};
use crate::simulation::random::Random;

/// A kind of origin, with the objective and the bounds that it is searched with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    pub name: &'static str,
    pub make: fn(&mut Random) -> Box<dyn Origin>,
    pub objective: &'static str,
    pub from: &'static str,
    pub to: &'static str,
    /// The highest rate that keeps the objective in long runs: `truths_are_those_of_long_runs`.
    pub truth: f64,
}

pub(super) const KINDS: [Kind; 7] = [
    Kind {
        name: "M/M/4",
        make: |_| Box::new(Queue::new(4, 0.02)),
        objective: "p95<400ms, errors<0.5%",
        from: "100r/s",
        to: "400r/s",
        truth: 196.6,
    },
    Kind {
        name: "a lock",
        make: |_| Box::new(Lock::new()),
        objective: "p95<100ms, errors<0.5%",
        from: "100r/s",
        to: "400r/s",
        truth: 232.4,
    },
    Kind {
        name: "a cache that fills",
        make: |_| Box::new(Cache::new()),
        objective: "p95<300ms, errors<0.5%",
        from: "60r/s",
        to: "400r/s",
        truth: 273.0,
    },
    Kind {
        name: "pauses of 300 ms each 10 s",
        make: |random| Box::new(Pauses::new(random)),
        objective: "p95<200ms, errors<0.5%",
        from: "80r/s",
        to: "400r/s",
        truth: 148.0,
    },
    Kind {
        name: "a database with 20 connections",
        make: |_| Box::new(Queue::new(20, 0.08).after(0.01)),
        objective: "p95<400ms, errors<0.5%",
        from: "120r/s",
        to: "400r/s",
        truth: 245.0,
    },
    Kind {
        name: "one that sheds",
        make: |_| Box::new(Shedding::new(200.0)),
        objective: "p95<400ms, errors<0.5%",
        from: "100r/s",
        to: "400r/s",
        truth: 200.9,
    },
    Kind {
        name: "one with two thirds of its bound at any rate",
        make: |_| Box::new(Queue::new(4, 0.02).after(0.14)),
        objective: "p95<300ms, errors<0.5%",
        from: "20r/s",
        to: "400r/s",
        truth: 190.0,
    },
];

/// Servers with one queue, and exponential times: M/M/k where requests come at random.
struct Queue {
    servers: Servers,
    mean: f64,
    before: f64,
}

impl Queue {
    fn new(servers: usize, mean: f64) -> Self {
        Self {
            servers: Servers::new(servers),
            mean,
            before: 0.0,
        }
    }

    /// Each request takes so long before it queues.
    fn after(mut self, before: f64) -> Self {
        self.before = before;
        self
    }
}

impl Origin for Queue {
    fn answer(&mut self, at: f64, random: &mut Random) -> Answer {
        let (server, start) = self.servers.next(at + self.before);
        let end = start + exponential(random, self.mean);
        self.servers.occupy(server, end);
        Answer {
            took: end - at,
            status: 200,
        }
    }
}

/// Eight workers; each request holds a lock for a part of its time: 4 ms on average.
struct Lock {
    workers: Servers,
    lock: Servers,
}

impl Lock {
    fn new() -> Self {
        Self {
            workers: Servers::new(8),
            lock: Servers::new(1),
        }
    }
}

impl Origin for Lock {
    fn answer(&mut self, at: f64, random: &mut Random) -> Answer {
        let (worker, start) = self.workers.next(at);
        let (lock, locked) = self.lock.next(start + 0.01);
        let end = locked + exponential(random, 0.004);
        self.lock.occupy(lock, end);
        self.workers.occupy(worker, end);
        Answer {
            took: end - at,
            status: 200,
        }
    }
}

/// Four workers before a cache: a miss takes 50 ms, a hit 10 ms; nine of ten hit when it is full.
struct Cache {
    workers: Servers,
    served: f64,
}

impl Cache {
    fn new() -> Self {
        Self {
            workers: Servers::new(4),
            served: 0.0,
        }
    }
}

impl Origin for Cache {
    fn answer(&mut self, at: f64, random: &mut Random) -> Answer {
        let hits = 0.9 * (1.0 - (-self.served / 3000.0).exp());
        let mean = if uniform(random) < hits { 0.01 } else { 0.05 };
        self.served += 1.0;
        let (worker, start) = self.workers.next(at);
        let end = start + exponential(random, mean);
        self.workers.occupy(worker, end);
        Answer {
            took: end - at,
            status: 200,
        }
    }
}

/// Four workers that stand still for 300 ms each 10 s.
struct Pauses {
    workers: Servers,
    phase: f64,
}

impl Pauses {
    fn new(random: &mut Random) -> Self {
        Self {
            workers: Servers::new(4),
            phase: uniform(random) * 10.0,
        }
    }

    /// When work of so many seconds ends that begins at `start`.
    fn end(&self, start: f64, mut work: f64) -> f64 {
        let mut now = start;
        loop {
            let into = (now + self.phase).rem_euclid(10.0);
            if into < 0.3 {
                now += 0.3 - into + 1e-9;
                continue;
            }
            let left = 10.0 - into;
            if work < left {
                return now + work;
            }
            work -= left;
            now += left + 1e-9;
        }
    }
}

impl Origin for Pauses {
    fn answer(&mut self, at: f64, random: &mut Random) -> Answer {
        let (worker, start) = self.workers.next(at);
        let end = self.end(start, exponential(random, 0.02));
        self.workers.occupy(worker, end);
        Answer {
            took: end - at,
            status: 200,
        }
    }
}

/// Answers 503 above a rate, with a burst of 20.
struct Shedding {
    rate: f64,
    level: f64,
    last: f64,
}

impl Shedding {
    fn new(rate: f64) -> Self {
        Self {
            rate,
            level: 0.0,
            last: 0.0,
        }
    }
}

impl Origin for Shedding {
    fn answer(&mut self, at: f64, random: &mut Random) -> Answer {
        self.level = (self.level - (at - self.last) * self.rate).max(0.0);
        self.last = at;
        if self.level > 20.0 {
            return Answer {
                took: 0.001,
                status: 503,
            };
        }
        self.level += 1.0;
        Answer {
            took: exponential(random, 0.02),
            status: 200,
        }
    }
}
