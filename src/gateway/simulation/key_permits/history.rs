//! Random histories of gateways that share the permits of a key.
//!
//! A permit is the right to run one request of the key. The store lends permits to gateways. A
//! history is what happens to them, by a seed: requests, lost calls, killed gateways.

use std::cell::RefCell;
use std::num::NonZeroU32;
use std::rc::Rc;
use std::time::Duration;

use limit::{KEY_PERMITS_LEASE, KeyPermitsCall, Moment};

use super::gateway::Gateway;
use crate::simulation::network::words;
use crate::simulation::random::Random;
use crate::simulation::redis::{Change, FakeRedis, answer_with};
use crate::store::{InFlightCalls, KeyCall, Store};

/// Start of the history, in nanoseconds since the Unix epoch.
const BEGIN: u64 = 1_800_000_000_000_000_000;
/// Duration of a step of the history.
const TICK: Duration = Duration::from_millis(1);
/// Setting `orphan`: how long permits of a vanished gateway are withheld.
const ORPHAN: Duration = Duration::from_millis(600);
/// Faults happen until this time.
const FAULTY: Duration = Duration::from_secs(8);
/// Requests arrive until this time.
const BUSY: Duration = Duration::from_secs(13);
/// Maximum time until nothing is left: four gateways with eight waiters each.
const QUIET: Duration = Duration::from_secs(20);
/// Time after which gateways have reported again what the store lost.
///
/// Requests that started before have ended by then.
const REPORTED_AGAIN_AFTER: Duration = Duration::from_millis(2500);
/// Maximum wait at a gateway that reaches the store, in calm times.
const MAX_WAIT: Duration = Duration::from_secs(3);

/// Result of a history.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// Number of requests that have started.
    pub(super) started: usize,
    /// Mean use of the permits while requests waited, as a share, in calm times.
    pub(super) used: Option<f64>,
    /// Reason of a failure, if there is one.
    pub(super) failure: Option<String>,
}

/// Kinds of faults in a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Faults {
    /// Gateways are killed, stopped, and split from the store.
    OfGateways,
    /// The store also loses all data. Lost data are forgiven once.
    OfTheStore,
    None,
}

/// State of a history.
struct History {
    random: Random,
    /// The store as gateways call it.
    store: Store,
    /// The server, and its clock in microseconds since the Unix epoch.
    server: Rc<RefCell<(FakeRedis, u64)>>,
    gateways: Vec<Gateway>,
    maximum: NonZeroU32,
    /// Ends of the requests at the origin.
    at_origin: Vec<Moment>,
    faults: Faults,
    /// Id of the newest gateway.
    ids: u64,
    /// Until this time the limit may be exceeded by what the store lost.
    forgiven_until: Moment,
    /// Sum of the used permits, and number of steps in which requests waited, in calm times.
    used: (usize, usize),
    /// Number of requests that have started.
    started: usize,
}

/// Runs the history of a seed.
pub(super) fn run(seed: u64, faults: Faults, change: Change) -> Outcome {
    let mut random = Random::new(seed);
    let server = Rc::new(RefCell::new((FakeRedis::new(change), BEGIN / 1000)));
    let answering = Rc::clone(&server);
    let _network = answer_with(move |command| {
        let (redis, now) = &mut *answering.borrow_mut();
        redis.run(*now, &words(command)).read()
    });
    let url = "redis://127.0.0.1".parse().expect("a URL");
    let maximum = NonZeroU32::new(random.small(1..5)).expect("above zero");
    let count = random.number(1..5);
    let mut history = History {
        store: Store::new(url, "drip:", Duration::from_secs(1)),
        server,
        gateways: (1..=count).map(|id| Gateway::new(id, maximum)).collect(),
        maximum,
        at_origin: Vec::new(),
        faults,
        ids: count,
        forgiven_until: Moment::default(),
        used: (0, 0),
        started: 0,
        random,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    let failure = runtime.block_on(history.play());
    let (sum, steps) = history.used;
    let used = (steps > 500).then(|| sum as f64 / (steps as f64 * f64::from(maximum.get())));
    Outcome {
        started: history.started,
        used,
        failure: failure.map(|why| format!("seed {seed}, {faults:?}, at most {maximum}: {why}")),
    }
}

impl History {
    async fn play(&mut self) -> Option<String> {
        let begin = Moment::from_nanos(BEGIN);
        let mut now = begin;
        while now.since(begin) < BUSY + QUIET {
            now = now + TICK;
            let elapsed = now.since(begin);
            if elapsed < FAULTY && self.faults != Faults::None {
                self.fail(now);
            }
            if elapsed < BUSY {
                self.arrive_and_leave(now);
            }
            self.serve(now).await;
            self.step(now);
            self.at_origin.retain(|end| *end > now);
            if let Some(failure) = self.check(now, elapsed) {
                return Some(format!("after {elapsed:?}: {failure}"));
            }
            if elapsed > BUSY && self.gateways.iter().all(|gateway| gateway.is_settled(now)) {
                return None;
            }
        }
        let mut gateways = self.gateways.iter();
        let unsettled = gateways.position(|gateway| !gateway.is_settled(now));
        unsettled.map(|index| format!("gateway {index} still counts something"))
    }

    /// Makes a random fault happen, or none.
    fn fail(&mut self, now: Moment) {
        let index = self.random.index(self.gateways.len());
        let gateway = &mut self.gateways[index];
        match self.random.number(0..12_000) {
            0..4 => {
                // The gateway is killed. Its requests stay at the origin.
                self.ids += 1;
                self.gateways[index] = Gateway::new(self.ids, self.maximum);
            }
            4..8 => gateway.stopped_until = now + self.random.millis(10..6000),
            8..12 => gateway.split_until = now + self.random.millis(10..6000),
            12..14 if self.faults == Faults::OfTheStore => {
                self.server.borrow_mut().0.flush();
                // Each gateway reports its permits with its next call.
                self.forgiven_until = now + REPORTED_AGAIN_AFTER;
            }
            _ => {}
        }
    }

    /// Lets requests arrive and clients leave.
    fn arrive_and_leave(&mut self, now: Moment) {
        for gateway in &mut self.gateways {
            if gateway.stopped_until > now {
                continue;
            }
            // At times no request arrives here.
            let phase = now.as_nanos() / 700_000_000 + u64::from(gateway.id[0]);
            let is_busy = !phase.is_multiple_of(3);
            if is_busy && gateway.waiting.len() < 8 && self.random.chance(4) {
                gateway.waiting.push(now);
            }
            if !gateway.waiting.is_empty() && self.random.number(0..1000) < 2 {
                let leaving = self.random.index(gateway.waiting.len());
                gateway.waiting.remove(leaving);
            }
        }
    }

    /// Lets the store process the commands that have arrived.
    async fn serve(&mut self, now: Moment) {
        self.server.borrow_mut().1 = now.as_nanos() / 1000;
        for gateway in &mut self.gateways {
            let calls = &mut gateway.to_store;
            let arrived = calls.extract_if(.., |(arrival, _)| *arrival <= now);
            let arrived: Vec<(Moment, KeyPermitsCall)> = arrived.collect();
            for (_, call) in arrived {
                let key_call = KeyCall {
                    key: b"z:in_flight.1:a",
                    lifetime: kept(),
                    content: call,
                };
                let calls = InFlightCalls {
                    gateway: gateway.id,
                    calls: &[key_call],
                    at: None,
                };
                let reply = self.store.key_permits(&calls).await.remove(0);
                // A reply to a call that was given up is dropped.
                let mut replies = gateway.from_store.iter();
                let is_given_up =
                    replies.any(|(_, number, reply)| *number == call.number && reply.is_none());
                if !is_given_up {
                    let arrival = now + self.random.micros(100..3000);
                    let lost = self.random.chance(1);
                    let reply = reply.ok().filter(|_| !lost);
                    gateway.from_store.push((arrival, call.number, reply));
                }
            }
        }
    }

    /// Lets each gateway that runs process replies, and start and end requests.
    fn step(&mut self, now: Moment) {
        for gateway in &mut self.gateways {
            if gateway.stopped_until <= now {
                let started = gateway.step(now, kept(), ORPHAN, &mut self.random);
                self.started += started.len();
                self.at_origin.extend(started);
            }
        }
    }

    /// Checks the number of running requests, and the waits. Returns the reason of a failure.
    fn check(&mut self, now: Moment, elapsed: Duration) -> Option<String> {
        let maximum = usize::try_from(self.maximum.get()).unwrap_or(usize::MAX);
        let here = self.at_origin.len();
        let waits = (self.gateways.iter()).any(|gateway| !gateway.waiting.is_empty());
        let is_away = |gateway: &Gateway| gateway.stopped_until.max(gateway.split_until) > now;
        if now < self.forgiven_until && self.gateways.iter().any(is_away) {
            // The gateway cannot report anything yet.
            self.forgiven_until = self.forgiven_until.max(now + REPORTED_AGAIN_AFTER);
        }
        if here > maximum && now >= self.forgiven_until {
            return Some(format!("{here} requests at the origin"));
        }
        let is_calm = elapsed > FAULTY + kept() + ORPHAN || self.faults == Faults::None;
        if is_calm {
            if waits {
                self.used.0 += here;
                self.used.1 += 1;
            }
            let longest = self.gateways.iter();
            let longest = longest.filter_map(|gateway| gateway.waiting.first());
            let longest = longest.map(|since| now.since(*since)).max();
            // At most four gateways with eight waiters each and one permit: 32 requests.
            let max_wait = MAX_WAIT + ORPHAN * 32;
            if longest.is_some_and(|wait| wait > max_wait) {
                return Some(format!("one has waited for {longest:?}"));
            }
        }
        None
    }
}

/// Returns how long the store keeps permits of a gateway that does not call.
fn kept() -> Duration {
    KEY_PERMITS_LEASE + ORPHAN
}
