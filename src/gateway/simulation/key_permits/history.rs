//! Random histories of gateways that share the permits of a key.

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
const TICK: Duration = Duration::from_millis(1);
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
    pub(super) started: usize,
    /// Mean use of the permits while requests waited, as a share, in calm times.
    pub(super) used: Option<f64>,
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

struct History {
    random: Random,
    store: Store,
    /// The store with its clock, in microseconds since the Unix epoch.
    there: Rc<RefCell<(FakeRedis, u64)>>,
    gateways: Vec<Gateway>,
    most: NonZeroU32,
    /// Ends of the requests at the origin.
    at_origin: Vec<Moment>,
    faults: Faults,
    /// Id of the newest gateway.
    ids: u64,
    /// Until this time the limit may be exceeded by what the store lost.
    forgiven_until: Moment,
    used: (usize, usize),
    started: usize,
}

pub(super) fn run(seed: u64, faults: Faults, change: Change) -> Outcome {
    let mut random = Random::new(seed);
    let there = Rc::new(RefCell::new((FakeRedis::new(change), BEGIN / 1000)));
    let its = Rc::clone(&there);
    let _network = answer_with(move |command| {
        let (redis, now) = &mut *its.borrow_mut();
        redis.run(*now, &words(command)).read()
    });
    let url = "redis://127.0.0.1".parse().expect("a URL");
    let most = NonZeroU32::new(random.small(1..5)).expect("above zero");
    let count = random.number(1..5);
    let mut history = History {
        store: Store::new(url, "drip:", Duration::from_secs(1)),
        there,
        gateways: (1..=count).map(|id| Gateway::new(id, most)).collect(),
        most,
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
    let (sum, looks) = history.used;
    let used = (looks > 500).then(|| sum as f64 / (looks as f64 * f64::from(most.get())));
    Outcome {
        started: history.started,
        used,
        failure: failure.map(|it| format!("seed {seed}, {faults:?}, at most {most}: {it}")),
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
                self.come_and_leave(now);
            }
            self.serve(now).await;
            self.step(now);
            self.at_origin.retain(|end| *end > now);
            if let Some(failure) = self.check(now, elapsed) {
                return Some(format!("after {elapsed:?}: {failure}"));
            }
            if elapsed > BUSY && self.gateways.iter().all(|it| it.is_settled(now)) {
                return None;
            }
        }
        let unsettled = self.gateways.iter().position(|it| !it.is_settled(now));
        unsettled.map(|nth| format!("gateway {nth} still counts something"))
    }

    /// Makes a random fault happen, or none.
    fn fail(&mut self, now: Moment) {
        let at = self.random.index(self.gateways.len());
        let gateway = &mut self.gateways[at];
        match self.random.number(0..12_000) {
            0..4 => {
                // Its requests stay at the origin.
                self.ids += 1;
                self.gateways[at] = Gateway::new(self.ids, self.most);
            }
            4..8 => gateway.stands_until = now + self.random.millis(10..6000),
            8..12 => gateway.split_until = now + self.random.millis(10..6000),
            12..14 if self.faults == Faults::OfTheStore => {
                self.there.borrow_mut().0.flush();
                // Each gateway reports its permits with its next call.
                self.forgiven_until = now + REPORTED_AGAIN_AFTER;
            }
            _ => {}
        }
    }

    fn come_and_leave(&mut self, now: Moment) {
        for gateway in &mut self.gateways {
            if gateway.stands_until > now {
                continue;
            }
            // At times no request arrives here.
            let phase = now.as_nanos() / 700_000_000 + u64::from(gateway.id[0]);
            let is_busy = !phase.is_multiple_of(3);
            if is_busy && gateway.waiting.len() < 8 && self.random.chance(4) {
                gateway.waiting.push(now);
            }
            if !gateway.waiting.is_empty() && self.random.number(0..1000) < 2 {
                let at = self.random.index(gateway.waiting.len());
                gateway.waiting.remove(at);
            }
        }
    }

    /// Lets the store process the commands that have arrived.
    async fn serve(&mut self, now: Moment) {
        self.there.borrow_mut().1 = now.as_nanos() / 1000;
        for gateway in &mut self.gateways {
            let arrived: Vec<(Moment, KeyPermitsCall)> = gateway
                .to_store
                .extract_if(.., |(at, _)| *at <= now)
                .collect();
            for (_, call) in arrived {
                let key_call = KeyCall {
                    key: b"z:in_flight.1:a",
                    lifetime: kept(),
                    content: call,
                };
                let asked = InFlightCalls {
                    gateway: gateway.id,
                    calls: &[key_call],
                    at: None,
                };
                let reply = self.store.key_permits(&asked).await.remove(0);
                // A reply to a call that was given up is dropped.
                let is_given_up = gateway
                    .from_store
                    .iter()
                    .any(|(_, number, reply)| *number == call.number && reply.is_none());
                if !is_given_up {
                    let at = now + self.random.micros(100..3000);
                    let lost = self.random.chance(1);
                    let reply = reply.ok().filter(|_| !lost);
                    gateway.from_store.push((at, call.number, reply));
                }
            }
        }
    }

    fn step(&mut self, now: Moment) {
        for gateway in &mut self.gateways {
            if gateway.stands_until <= now {
                let started = gateway.step(now, kept(), ORPHAN, &mut self.random);
                self.started += started.len();
                self.at_origin.extend(started);
            }
        }
    }

    fn check(&mut self, now: Moment, elapsed: Duration) -> Option<String> {
        let most = usize::try_from(self.most.get()).unwrap_or(usize::MAX);
        let (here, waits) = (
            self.at_origin.len(),
            self.gateways.iter().any(|it| !it.waiting.is_empty()),
        );
        let is_away = |it: &Gateway| it.stands_until.max(it.split_until) > now;
        if now < self.forgiven_until && self.gateways.iter().any(is_away) {
            // The gateway cannot report anything yet.
            self.forgiven_until = self.forgiven_until.max(now + REPORTED_AGAIN_AFTER);
        }
        if here > most && now >= self.forgiven_until {
            return Some(format!("{here} requests at the origin"));
        }
        let is_calm = elapsed > FAULTY + kept() + ORPHAN || self.faults == Faults::None;
        if is_calm {
            if waits {
                self.used.0 += here;
                self.used.1 += 1;
            }
            let longest = self.gateways.iter().filter_map(|it| it.waiting.first());
            let longest = longest.map(|since| now.since(*since)).max();
            // At most four gateways with eight waiters each and one permit: 32 requests.
            let most = MAX_WAIT + ORPHAN * 32;
            if longest.is_some_and(|it| it > most) {
                return Some(format!("one has waited for {longest:?}"));
            }
        }
        None
    }
}

fn kept() -> Duration {
    KEY_PERMITS_LEASE + ORPHAN
}
