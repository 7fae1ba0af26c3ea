//! Simulated origins of seven kinds, each with its true capacity.
//!
//! The capacity is the highest rate that keeps the objective, such as p95<400ms: at least 95 % of
//! responses take less than 400 ms.

use crate::simulation::random::Random;

/// A response of a simulated origin.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    /// Time until the head in seconds. The response ends with the head.
    pub took: f64,
    pub status: u16,
}

impl Answer {
    fn ok(took: f64) -> Self {
        Self { took, status: 200 }
    }
}

/// An origin that processes requests in order.
pub(super) trait Origin {
    /// Returns the response to a request that arrives at `at`, in seconds since the start.
    ///
    /// Times must not go back.
    fn answer(&mut self, at: f64, random: &mut Random) -> Answer;
}

/// Returns a number above 0 and up to 1.
fn uniform(random: &mut Random) -> f64 {
    (random.number(0..1 << 53) + 1) as f64 / (1_u64 << 53) as f64
}

/// Returns an exponentially distributed time with this mean.
pub(super) fn exponential(random: &mut Random, mean: f64) -> f64 {
    -uniform(random).ln() * mean
}

/// Servers that process requests in order: the time at which each becomes free.
struct Servers(Vec<f64>);

impl Servers {
    fn new(count: usize) -> Self {
        Self(vec![0.0; count])
    }

    /// Gives a request that arrives at `at` to the server that becomes free first.
    ///
    /// `end` returns the end of the request from its begin.
    fn serve(&mut self, at: f64, end: impl FnOnce(f64) -> f64) -> f64 {
        let first = (self.0.iter_mut()).min_by(|one, other| one.total_cmp(other));
        let free_at = first.expect("a server");
        *free_at = end(free_at.max(at));
        *free_at
    }
}

/// Upper bound of all searches.
pub(super) const TO: &str = "400r/s";

/// A kind of origin, with the objective and the lower bound of its search.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    pub name: &'static str,
    /// Makes an origin of this kind.
    pub make: fn(&mut Random) -> Box<dyn Origin>,
    pub objective: &'static str,
    /// Lower bound of the search.
    pub from: &'static str,
    /// Highest rate that keeps the objective in long runs: see
    /// `the_known_capacities_are_those_of_long_runs`.
    pub truth: f64,
}

const fn kind(
    name: &'static str,
    make: fn(&mut Random) -> Box<dyn Origin>,
    objective: &'static str,
    from: &'static str,
    truth: f64,
) -> Kind {
    Kind {
        name,
        make,
        objective,
        from,
        truth,
    }
}

/// All kinds: name, origin, objective, lower bound, and true capacity in requests a second.
pub(super) const KINDS: [Kind; 7] = [
    kind(
        "M/M/4",
        |_| Box::new(Queue::new(4, 0.02, 0.0)),
        "p95<400ms, errors<0.5%",
        "100r/s",
        196.6,
    ),
    kind(
        "a lock",
        |_| {
            let (workers, lock) = (Servers::new(8), Servers::new(1));
            Box::new(Lock { workers, lock })
        },
        "p95<100ms, errors<0.5%",
        "100r/s",
        232.4,
    ),
    kind(
        "a cache that fills",
        |_| {
            let (workers, served) = (Servers::new(4), 0.0);
            Box::new(Cache { workers, served })
        },
        "p95<300ms, errors<0.5%",
        "60r/s",
        273.0,
    ),
    kind(
        "pauses of 300 ms each 10 s",
        |random| {
            let (workers, phase) = (Servers::new(4), uniform(random) * 10.0);
            Box::new(Pauses { workers, phase })
        },
        "p95<200ms, errors<0.5%",
        "80r/s",
        148.0,
    ),
    kind(
        "a database with 20 connections",
        |_| Box::new(Queue::new(20, 0.08, 0.01)),
        "p95<400ms, errors<0.5%",
        "120r/s",
        245.0,
    ),
    kind(
        "one that sheds",
        |_| {
            let (rate, level, last) = (200.0, 0.0, 0.0);
            Box::new(Shedding { rate, level, last })
        },
        "p95<400ms, errors<0.5%",
        "100r/s",
        200.9,
    ),
    kind(
        "one with two thirds of its bound at any rate",
        |_| Box::new(Queue::new(4, 0.02, 0.14)),
        "p95<300ms, errors<0.5%",
        "20r/s",
        190.0,
    ),
];

/// Servers with one queue and exponential times: M/M/k if requests arrive at random.
struct Queue {
    servers: Servers,
    /// Mean time of a request at a server, in seconds.
    mean: f64,
    /// Time that each request takes before it queues, in seconds.
    before: f64,
}

impl Queue {
    fn new(servers: usize, mean: f64, before: f64) -> Self {
        let servers = Servers::new(servers);
        Self {
            servers,
            mean,
            before,
        }
    }
}

impl Origin for Queue {
    fn answer(&mut self, at: f64, random: &mut Random) -> Answer {
        let took = exponential(random, self.mean);
        let end = self.servers.serve(at + self.before, |start| start + took);
        Answer::ok(end - at)
    }
}

/// Eight workers. A request holds a lock for part of its time: 4 ms on average.
struct Lock {
    workers: Servers,
    lock: Servers,
}

impl Origin for Lock {
    fn answer(&mut self, at: f64, random: &mut Random) -> Answer {
        let (took, lock) = (exponential(random, 0.004), &mut self.lock);
        let end = self
            .workers
            .serve(at, |start| lock.serve(start + 0.01, |locked| locked + took));
        Answer::ok(end - at)
    }
}

/// Four workers behind a cache. A miss takes 50 ms, a hit 10 ms; nine of ten hit when it is full.
struct Cache {
    workers: Servers,
    /// Number of requests served so far, which fills the cache.
    served: f64,
}

impl Origin for Cache {
    fn answer(&mut self, at: f64, random: &mut Random) -> Answer {
        let hits = 0.9 * (1.0 - (-self.served / 3000.0).exp());
        let mean = if uniform(random) < hits { 0.01 } else { 0.05 };
        self.served += 1.0;
        let took = exponential(random, mean);
        Answer::ok(self.workers.serve(at, |start| start + took) - at)
    }
}

/// Four workers that pause for 300 ms every 10 s.
struct Pauses {
    workers: Servers,
    /// Offset of the first pause, in seconds.
    phase: f64,
}

impl Origin for Pauses {
    fn answer(&mut self, at: f64, random: &mut Random) -> Answer {
        let (mut work, phase) = (exponential(random, 0.02), self.phase);
        let end = self.workers.serve(at, |mut now| {
            loop {
                // Seconds since the last pause began.
                let into = (now + phase).rem_euclid(10.0);
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
        });
        Answer::ok(end - at)
    }
}

/// An origin that answers 503 above a rate, with a burst of 20.
struct Shedding {
    rate: f64,
    /// Number of requests above the rate.
    level: f64,
    /// Time of the last request.
    last: f64,
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
        Answer::ok(exponential(random, 0.02))
    }
}
