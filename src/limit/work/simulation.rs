//! Simulation of learned costs: two kinds of requests, of 20 ms and 2 s, before four workers.
//!
//! The *work* of a request is the time that it needs of a worker. Its *cost* is the number of slots
//! of the rate that it takes: 1, or learned from earlier requests of its kind. The first kind is
//! *light*, and the second one *heavy*.
//!
//! The simulation measures the busy time of the origin, the waits, and the fairness between keys,
//! on a virtual clock. The gate, the costs and the learning are the real ones.

#![expect(clippy::cast_precision_loss, reason = "counts are small")]

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use testing::{Random, some_of};

use super::Work;
use crate::{Admission, Cost, Gate, GateLimits, Moment, Share};

/// Number of requests that the origin serves at the same time.
const WORKERS: usize = 4;
/// Work of a request with a cost of 1.
const UNIT: Duration = Duration::from_millis(10);
/// Seconds before measurements begin.
const WARM_UP: u64 = 60;

/// Client with a key of its own, whose requests are all of one kind.
#[derive(Clone, Copy)]
struct Client {
    /// Kind of its requests: 0 for light ones, 1 for heavy ones.
    kind: usize,
    /// Work of each request.
    work: Duration,
    /// Mean duration from a request to the next one, or from a response if it `waits` for that.
    pause: Duration,
    /// Whether it waits for the response before the next request.
    waits: bool,
}

#[derive(Clone)]
struct Scenario {
    clients: Vec<Client>,
    rate: &'static str,
    max_in_flight: Option<usize>,
    /// Upper bound of learned costs; `None`: each request costs 1.
    max_cost: Option<u32>,
    seconds: u64,
    seed: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The request with this number is served.
    Served(usize),
    /// The client with this index sends a request.
    Sends(usize),
}

/// Measured values.
struct Record {
    /// Seconds that the workers were busy, in each second.
    busy: Vec<f64>,
    /// Seconds of the origin by client.
    work: Vec<f64>,
    /// Durations of requests from the client's view, by kind.
    took: [Vec<f64>; 2],
    /// Cost of requests at the end, by kind.
    costs: [u32; 2],
}

struct Request {
    /// Index of its client.
    client: usize,
    /// Instant at which the client sent it.
    sent: Moment,
    /// Cost at which it left the gate.
    cost: u32,
    /// Instant at which it left the gate.
    left: Moment,
    /// Whether few requests were at the origin then.
    is_quiet: bool,
}

struct Simulation {
    scenario: Scenario,
    gate: Gate<usize, usize>,
    /// Learned durations, by kind.
    learned: [Work; 2],
    /// Later events, the first one first.
    events: BTreeSet<(Moment, Event)>,
    /// By number.
    requests: Vec<Request>,
    /// Number of idle workers.
    idle: usize,
    /// Numbers of the requests that wait for a worker.
    queue: VecDeque<usize>,
    random: Random,
    record: Record,
}

const START: Moment = Moment::from_nanos(1_000_000_000_000);

fn run(scenario: &Scenario) -> Record {
    let gate = Gate::new(GateLimits {
        rate: Some(scenario.rate.parse().expect("a rate")),
        max_in_flight: scenario.max_in_flight,
        queue: Some(100_000),
        max_queue: 1_000_000,
    });
    let mut simulation = Simulation {
        gate,
        learned: Default::default(),
        events: BTreeSet::new(),
        requests: Vec::new(),
        idle: WORKERS,
        queue: VecDeque::new(),
        random: Random(scenario.seed),
        record: Record {
            busy: vec![0.0; usize::try_from(scenario.seconds).expect("few")],
            work: vec![0.0; scenario.clients.len()],
            took: Default::default(),
            costs: [1; 2],
        },
        scenario: scenario.clone(),
    };
    simulation.run();
    simulation.record
}

impl Simulation {
    fn run(&mut self) {
        for client in 0..self.scenario.clients.len() {
            self.send_later(client, START);
        }
        let end = START + Duration::from_secs(self.scenario.seconds);
        let mut now = START;
        while now < end {
            let next = self.events.first().map(|(at, _)| *at);
            let due = self.gate.due();
            let due = due.filter(|due| next.is_none_or(|next| *due < next));
            now = due.or(next).unwrap_or(end).max(now);
            while let Some(release) = self.gate.take(now) {
                self.depart(release.waiter, release.cost, now);
            }
            if due.is_none()
                && let Some((_, event)) = self.events.pop_first()
            {
                match event {
                    Event::Sends(client) => self.send(client, now),
                    Event::Served(request) => self.served(request, now),
                }
            }
        }
        for kind in 0..2 {
            self.record.costs[kind] = self.cost(kind).get();
        }
    }

    /// Returns the client of a request.
    fn client(&self, request: usize) -> Client {
        self.scenario.clients[self.requests[request].client]
    }

    /// Schedules the next request of a client, after an exponential pause.
    fn send_later(&mut self, client: usize, now: Moment) {
        let share = 1.0 - self.random.share();
        let pause = self.scenario.clients[client].pause.mul_f64(-share.ln());
        self.events.insert((now + pause, Event::Sends(client)));
    }

    /// Returns the upper bound of learned costs.
    fn max_cost(&self) -> Option<Cost> {
        self.scenario.max_cost.and_then(Cost::new)
    }

    /// Returns the cost of a request of this kind. A new kind costs the same as the other one.
    fn cost(&self, kind: usize) -> Cost {
        let Some(max) = self.max_cost() else {
            return Cost::ONE;
        };
        let learned = self.learned[kind].learned();
        let learned = learned.or_else(|| self.learned[1 - kind].learned());
        learned.map_or(Cost::ONE, |it| Cost::of_work(it.time(), UNIT, max))
    }

    fn send(&mut self, client: usize, now: Moment) {
        let Client { kind, waits, .. } = self.scenario.clients[client];
        if !waits {
            self.send_later(client, now);
        }
        let request = self.requests.len();
        self.requests.push(Request {
            client,
            sent: now,
            cost: 0,
            left: now,
            is_quiet: false,
        });
        let cost = self.cost(kind);
        match self.gate.join(&Share::of(client), cost, now, || request) {
            Admission::Passed => self.depart(request, cost.get(), now),
            Admission::Waiting(_) => {}
            Admission::Rejected(_) => panic!("there is room for all"),
        }
    }

    /// Sends a request from the gate to the origin.
    fn depart(&mut self, number: usize, cost: u32, now: Moment) {
        let request = &mut self.requests[number];
        (request.cost, request.left) = (cost, now);
        request.is_quiet = self.gate.is_quiet();
        if self.idle == 0 {
            return self.queue.push_back(number);
        }
        self.idle -= 1;
        self.serve(number, now);
    }

    fn serve(&mut self, request: usize, now: Moment) {
        let work = self.client(request).work;
        let end = now + work;
        self.events.insert((end, Event::Served(request)));
        // The work is divided among the seconds in which it is done.
        let (mut at, end) = (now.since(START), end.since(START));
        while at < end {
            let second = at.as_secs();
            let until = end.min(Duration::from_secs(second + 1));
            let index = usize::try_from(second).expect("few");
            if let Some(busy) = self.record.busy.get_mut(index) {
                *busy += until.saturating_sub(at).as_secs_f64();
            }
            at = until;
        }
        if now.since(START).as_secs() >= WARM_UP {
            self.record.work[self.requests[request].client] += work.as_secs_f64();
        }
    }

    /// Ends a request: the gate gets its permit back, and the difference to its learned cost.
    fn served(&mut self, number: usize, now: Moment) {
        let Client { kind, waits, .. } = self.client(number);
        match self.queue.pop_front() {
            Some(next) => self.serve(next, now),
            None => self.idle += 1,
        }
        let request = &self.requests[number];
        let (client, took) = (request.client, now.since(request.sent));
        if let Some(max) = self.max_cost() {
            let at_origin = now.since(request.left);
            let is_quiet = request.is_quiet && self.gate.is_quiet();
            self.learned[kind].learn(at_origin, is_quiet);
            let cost = Cost::of_work(at_origin, UNIT, max).get();
            match cost.checked_sub(request.cost) {
                Some(0) => {}
                Some(more) => self.gate.bill(more, now),
                None => self.gate.credit(request.cost - cost, now),
            }
        }
        self.gate.give_back(now);
        if now.since(START).as_secs() >= WARM_UP {
            self.record.took[kind].push(took.as_secs_f64());
        }
        if waits {
            self.send_later(client, now);
        }
    }
}

impl Record {
    /// Returns the busy seconds of the workers in each second after the warm-up.
    fn measured(&self) -> &[f64] {
        &self.busy[usize::try_from(WARM_UP).expect("few")..]
    }

    fn mean(&self) -> f64 {
        let busy = self.measured();
        busy.iter().sum::<f64>() / busy.len() as f64
    }

    fn variance(&self) -> f64 {
        let (busy, mean) = (self.measured(), self.mean());
        busy.iter().map(|it| (it - mean).powi(2)).sum::<f64>() / busy.len() as f64
    }

    /// Returns the 99th percentile of the durations from the client's view.
    fn p99(&self, kind: usize) -> f64 {
        let mut took = self.took[kind].clone();
        took.sort_by(f64::total_cmp);
        took[took.len() * 99 / 100]
    }

    /// Returns Jain's index of the seconds of the origin by key (Jain, Chiu and Hawe 1984).
    fn jain(&self) -> f64 {
        let sum: f64 = self.work.iter().sum();
        let squares: f64 = self.work.iter().map(|it| it * it).sum();
        sum * sum / (self.work.len() as f64 * squares)
    }
}

/// Returns `counts` clients of each kind, which together send `load` seconds of work per second.
///
/// Without `load`, each client sends the next request right after a response.
fn clients(counts: [usize; 2], load: Option<[f64; 2]>) -> Vec<Client> {
    let of_kind = |kind: usize| {
        let work = [20, 2000].map(Duration::from_millis)[kind];
        let count = counts[kind];
        let pause = load.map(|load| work.mul_f64(count as f64 / load[kind]));
        (0..count).map(move |_| Client {
            kind,
            work,
            pause: pause.unwrap_or(Duration::from_millis(1)),
            waits: pause.is_none(),
        })
    };
    (0..2).flat_map(of_kind).collect()
}

/// Returns a scenario in which each request costs 1.
///
/// 20 light keys have 0.8 seconds of work per second, and the `heavy` keys have 2.4. This is four
/// fifths of the capacity of four workers. With cost 1, the rate lets as much work through as they
/// do on average.
fn by_requests(heavy: usize, seed: u64) -> Scenario {
    Scenario {
        clients: clients([20, heavy], Some([0.8, 2.4])),
        rate: "51r/s",
        max_in_flight: Some(WORKERS),
        max_cost: None,
        seconds: 660,
        seed,
    }
}

/// Returns the same with costs that are learned, at a rate of four seconds of work per second.
fn by_work(scenario: &Scenario) -> Scenario {
    Scenario {
        rate: "400r/s",
        max_cost: Some(200),
        ..scenario.clone()
    }
}

#[test]
fn work_that_is_paced_keeps_the_origin_evenly_busy_and_light_requests_fast() {
    for (heavy, seed) in some_of(&[(1, 1), (2, 1), (1, 2), (2, 2), (1, 3), (2, 3)], 1) {
        let scenario = by_requests(heavy, seed);
        let work = run(&by_work(&scenario));
        // The heavy requests get their work done, too.
        assert_eq!(work.costs, [2, 200]);
        for max_in_flight in [None, scenario.max_in_flight] {
            let requests = run(&Scenario {
                max_in_flight,
                ..scenario.clone()
            });
            assert!(work.variance() * 3.0 <= requests.variance());
            assert!(work.p99(0) * 2.0 <= requests.p99(0));
            assert!(work.mean() >= 0.9 * requests.mean());
        }
    }
}

#[test]
fn keys_that_always_ask_get_equal_work() {
    // Clients with light requests, rate, seed. Each rate allows 3.2 seconds of work per second.
    let all = [(20, "9r/s", 1), (20, "9r/s", 2), (12, "372r/m", 3)];
    for (light, rate, seed) in some_of(&all, 1) {
        let scenario = Scenario {
            clients: clients([light, 4], None),
            rate,
            ..by_requests(4, seed)
        };
        let work = run(&Scenario {
            rate: "320r/s",
            ..by_work(&scenario)
        });
        assert!(run(&scenario).jain() < 0.3);
        assert!(work.jain() >= 0.98);
        // With cost 1, fairness depends on the order of arrivals: 0.1 to 2.4 were observed.
        assert!(work.variance() <= 0.35);
    }
}

/// The file allows two or four times as many permits as the origin has workers.
///
/// So requests wait there, and all keys always have requests.
#[test]
fn a_queue_at_the_origin_does_not_feed_itself() {
    // Permits, rate, and the highest cost of a light request that is allowed.
    let all = [(8, "400r/s", 10), (16, "400r/s", 10), (16, "2000r/s", 200)];
    for (permits, rate, most) in some_of(&all, 1) {
        let scenario = Scenario {
            clients: clients([20, 4], None),
            rate,
            max_in_flight: Some(permits),
            ..by_work(&by_requests(4, 1))
        };
        let work = run(&scenario);
        assert!(work.costs[0] <= most && work.costs[1] == 200);
        assert!(work.mean() >= 3.0, "the origin has work");
    }
}
