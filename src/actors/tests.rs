use std::collections::HashMap;
use std::future::poll_fn;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use actix::Actor;
use proptest::prelude::*;

use super::messages::{Rejection, Tuning};
use super::supervisor::ZoneSupervisor;
use super::{Joining, Key, Order, Turn, Waiters, Zone};
use crate::config;
use crate::limit::{Bucket, Charge, Delay, Excess, Limit, Moment, Queue, Rate, Ticket, Verdict};
use crate::observe::metrics::{Rejected, ZoneMetrics};
use crate::time::pacer::Pacer;

const START: Moment = Moment::from_nanos(1_700_000_000_000_000_000);

/// A zone with one supervisor on this thread, on a clock that the test moves.
struct Bench {
    /// Leaked, so that joins that borrow it can be stored anywhere.
    zone: &'static Zone,
    pacer: Rc<Pacer>,
}

impl Bench {
    fn new(rate: &str, max_keys: usize) -> Self {
        let settings = config::Zone {
            name: "test".to_owned(),
            key: "$remote_addr".parse().unwrap(),
            algorithm: crate::limit::Algorithm::default(),
            rate: rate.parse().unwrap(),
            max_keys: NonZeroUsize::new(max_keys).unwrap(),
            idle_timeout: Duration::from_secs(60),
            ipv6_prefix: 64,
            exempt: Vec::new(),
            store: config::StoreKind::Memory,
            on_store_failure: config::OnStoreFailure::Local,
        };
        let tuning = Tuning {
            algorithm: settings.algorithm,
            rate: settings.rate,
            max_keys: settings.max_keys,
            idle_timeout: settings.idle_timeout,
            sharing: None,
        };
        let pacer = Pacer::standing_at(START);
        let metrics = Arc::new(ZoneMetrics::of("test"));
        let supervisor =
            ZoneSupervisor::new("test".to_owned(), tuning, metrics, Rc::clone(&pacer)).start();
        Self {
            zone: Box::leak(Box::new(Zone::on_this_thread(settings, supervisor))),
            pacer,
        }
    }

    fn retune(&mut self, rate: Rate) {
        let settings = config::Zone {
            rate,
            ..self.zone.settings().clone()
        };
        self.zone = Box::leak(Box::new(self.zone.retune(settings, None)));
    }

    fn join(&self, key: &str, limit: Limit) -> Joining<'static> {
        self.zone.join(Key::from(key.as_bytes()), limit, false)
    }

    /// Lets the actors handle all pending messages.
    async fn settle() {
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
    }

    async fn advance(&self, span: Duration) {
        self.pacer.advance(self.pacer.now() + span);
        Self::settle().await;
    }
}

fn burst(burst: u32) -> Limit {
    Limit {
        burst,
        delay: Delay::Above(0),
        max_wait: None,
    }
}

/// The result of a join so far.
async fn peek<'z>(joining: &mut Joining<'z>) -> Option<Result<Turn<'z>, Rejection>> {
    poll_fn(|cx| {
        Poll::Ready(match Pin::new(&mut *joining).poll(cx) {
            Poll::Ready(answer) => Some(answer),
            Poll::Pending => None,
        })
    })
    .await
}

fn run<F: Future>(test: F) -> F::Output {
    actix_rt::System::new().block_on(test)
}

#[test]
fn a_key_in_use_is_not_evicted_while_somebody_waits_there() {
    run(async {
        let bench = Bench::new("1r/s", 1);
        let mut passed = bench.join("a", burst(5));
        let mut waiting = bench.join("a", burst(5));
        Bench::settle().await;
        let _used = peek(&mut passed).await.unwrap().unwrap().take();
        assert!(peek(&mut waiting).await.is_none());
        let mut newcomer = bench.join("b", burst(5));
        Bench::settle().await;
        assert_eq!(
            peek(&mut newcomer).await.unwrap().unwrap_err().reason,
            Rejected::Keys
        );
        bench.advance(Duration::from_secs(1)).await;
        let _used = peek(&mut waiting).await.unwrap().unwrap().take();
        let mut newcomer = bench.join("b", burst(5));
        Bench::settle().await;
        let _used = peek(&mut newcomer).await.unwrap().unwrap().take();
    });
}

#[test]
fn the_least_recently_used_key_makes_room() {
    run(async {
        let bench = Bench::new("1r/d", 2);
        let limit = Limit {
            delay: Delay::Never,
            ..burst(9)
        };
        let excess = async |key| {
            bench
                .join(key, limit)
                .await
                .unwrap()
                .take()
                .excess
                .requests()
                .round()
        };
        let mut seen = Vec::new();
        for key in ["a", "b", "a", "c", "a", "b"] {
            seen.push(excess(key).await);
        }
        // "c" evicted "b", and later "b" evicted "c"; "a" was remembered all the time.
        assert_eq!(seen, [0.0, 0.0, 1.0, 0.0, 2.0, 0.0]);
    });
}

#[test]
fn dismissing_answers_all_who_wait_and_all_who_come_later() {
    run(async {
        let bench = Bench::new("1r/m", 10);
        let mut joins: Vec<Joining<'_>> = (0..5).map(|_| bench.join("a", burst(9))).collect();
        Bench::settle().await;
        let _used = peek(&mut joins[0]).await.unwrap().unwrap().take();
        bench.zone.reject_all();
        Bench::settle().await;
        for joining in &mut joins[1..] {
            assert_eq!(
                peek(joining).await.unwrap().unwrap_err().reason,
                Rejected::Stopping
            );
        }
        assert_eq!(
            bench.join("b", burst(9)).await.unwrap_err().reason,
            Rejected::Stopping
        );
    });
}

#[derive(Clone, Debug)]
enum Step {
    Advance(Duration),
    Join { key: usize, limit: usize },
    HangUp { nth: usize },
    Return { key: usize, limit: usize },
    Retune { rate: usize },
    Forget { key: usize, reject_all: bool },
    Stop,
}

const RATES: [&str; 4] = ["10r/s", "3r/s", "1r/m", "1000r/s"];

fn limits() -> [Limit; 5] {
    let limit = |burst, delay, max_wait| Limit {
        burst,
        delay,
        max_wait,
    };
    [
        burst(5),
        burst(0),
        limit(8, Delay::Above(3), None),
        limit(4, Delay::Never, None),
        limit(20, Delay::Above(0), Some(Duration::from_millis(700))),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let span = prop_oneof![
        Just(0),
        1..1_000_000u64,
        1_000_000..500_000_000u64,
        // Long enough for a key to be parked and woken again.
        2_000_000_000..5_000_000_000u64,
    ];
    prop_oneof![
        3 => span.prop_map(|nanos| Step::Advance(Duration::from_nanos(nanos))),
        6 => (0..3usize, 0..5usize).prop_map(|(key, limit)| Step::Join { key, limit }),
        2 => (0..20usize).prop_map(|nth| Step::HangUp { nth }),
        1 => (0..3usize, 0..5usize).prop_map(|(key, limit)| Step::Return { key, limit }),
        1 => (0..RATES.len()).prop_map(|rate| Step::Retune { rate }),
        1 => (0..3usize, any::<bool>()).prop_map(|(key, reject_all)| Step::Forget { key, reject_all }),
        // Rare: it ends the trace.
        1 => (0..10u8).prop_map(|nth| if nth == 0 { Step::Stop } else { Step::Advance(Duration::ZERO) }),
    ]
}

/// The same requests at plain queues: no actors, no messages, no parking.
struct Model {
    rate: Rate,
    max_keys: usize,
    queues: HashMap<usize, Queue<u64>>,
    stopped: bool,
    /// The requests that have departed, in order, each with its moment.
    departed: Vec<(u64, Moment)>,
}

#[derive(Debug, PartialEq)]
enum Said {
    Passed(Excess),
    Waits,
    Rejected(Rejected, Duration),
}

impl Model {
    fn join(&mut self, key: usize, limit: Limit, id: u64, now: Moment) -> (Said, Option<Charge>) {
        let soon = Duration::from_secs(1);
        if self.stopped {
            return (Said::Rejected(Rejected::Stopping, soon), None);
        }
        if !self.queues.contains_key(&key) && self.queues.len() == self.max_keys {
            // The model knows which key is evicted only if there is one candidate: with one key.
            let idle = self
                .queues
                .iter()
                .find(|(_, queue)| queue.depth() == 0)
                .map(|(key, _)| *key);
            let Some(idle) = idle else {
                return (Said::Rejected(Rejected::Keys, soon), None);
            };
            self.queues.remove(&idle);
        }
        let rate = self.rate;
        let queue = self
            .queues
            .entry(key)
            .or_insert_with(|| Queue::new(rate, Bucket::new(), now));
        let (verdict, charge) = queue.join(limit, Ticket(id), now, || id);
        let said = match verdict {
            Verdict::Pass { excess } => Said::Passed(excess),
            Verdict::Delay { .. } => Said::Waits,
            Verdict::Reject(refusal) => {
                Said::Rejected(refusal.reason.into(), refusal.retry_at.since(now))
            }
        };
        (said, charge)
    }

    fn refund(&mut self, key: usize, charge: Option<Charge>, now: Moment) {
        if let (Some(queue), Some(charge)) = (self.queues.get_mut(&key), charge) {
            queue.refund(charge, now);
        }
    }

    fn retune(&mut self, rate: Rate, now: Moment) {
        self.rate = rate;
        for queue in self.queues.values_mut() {
            queue.retune(rate, now);
        }
    }

    fn drain(&mut self, now: Moment) {
        for queue in self.queues.values_mut() {
            while let Some(departure) = queue.take_due(now) {
                self.departed.push((departure.waiter, now));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    /// The actors answer each join exactly once, with the arithmetic's verdict and moment.
    #[test]
    fn the_actors_add_nothing_to_the_arithmetic(
        steps in prop::collection::vec(step(), 1..80),
        max_keys in prop_oneof![Just(1usize), Just(100)],
    ) {
        run(async {
            let mut comparison = Comparison::new(max_keys);
            for step in steps {
                comparison.step(step).await?;
            }
            Ok::<(), TestCaseError>(())
        })?;
    }
}

/// The actors and the model, run side by side.
struct Comparison {
    bench: Bench,
    model: Model,
    waiting: Vec<(u64, usize, Joining<'static>)>,
    departed: Vec<(u64, Moment)>,
    next: u64,
}

impl Comparison {
    fn new(max_keys: usize) -> Self {
        let rate = RATES[0].parse().unwrap();
        let model = Model {
            rate,
            max_keys,
            queues: HashMap::new(),
            stopped: false,
            departed: Vec::new(),
        };
        let bench = Bench::new(RATES[0], max_keys);
        Self {
            bench,
            model,
            waiting: Vec::new(),
            departed: Vec::new(),
            next: 0,
        }
    }

    async fn step(&mut self, step: Step) -> Result<(), TestCaseError> {
        let now = self.bench.pacer.now();
        match step {
            Step::Advance(span) => self.bench.advance(span).await,
            Step::Join { key, limit } => self.join(key, limit, true).await?,
            Step::Return { key, limit } => self.join(key, limit, false).await?,
            Step::HangUp { nth } if !self.waiting.is_empty() => {
                let (id, key, joining) = self.waiting.remove(nth % self.waiting.len());
                drop(joining);
                let left = self
                    .model
                    .queues
                    .get_mut(&key)
                    .and_then(|queue| queue.leave(Ticket(id)));
                prop_assert_eq!(left, Some(id));
            }
            Step::HangUp { .. } => {}
            Step::Retune { rate } => {
                let rate = RATES[rate].parse().unwrap();
                self.bench.retune(rate);
                self.model.retune(rate, now);
            }
            Step::Forget { key, reject_all } => self.forget(key, reject_all).await?,
            Step::Stop => {
                self.bench.zone.reject_all();
                self.model.stopped = true;
                Bench::settle().await;
                for (_, _, mut joining) in self.waiting.drain(..) {
                    let reason = peek(&mut joining)
                        .await
                        .and_then(Result::err)
                        .map(|rejection| rejection.reason);
                    prop_assert_eq!(reason, Some(Rejected::Stopping));
                }
                self.model
                    .queues
                    .values_mut()
                    .for_each(|queue| drop(queue.reject_all()));
            }
        }
        Bench::settle().await;
        self.compare_departures().await?;
        self.compare_census().await
    }

    async fn join(&mut self, key: usize, limit: usize, used: bool) -> Result<(), TestCaseError> {
        let (id, now, limit) = (self.next, self.bench.pacer.now(), limits()[limit]);
        self.next += 1;
        let mut joining = self.bench.join(&key.to_string(), limit);
        Bench::settle().await;
        let (expected, charge) = self.model.join(key, limit, id, now);
        let said = match peek(&mut joining).await {
            None => {
                self.waiting.push((id, key, joining));
                Said::Waits
            }
            Some(Err(rejection)) => Said::Rejected(rejection.reason, rejection.retry_after),
            Some(Ok(turn)) if used => Said::Passed(turn.take().excess),
            Some(Ok(turn)) => {
                drop(turn);
                self.model.refund(key, charge, now);
                prop_assert!(
                    matches!(expected, Said::Passed(_)),
                    "passed where the queue says {expected:?}"
                );
                return Ok(());
            }
        };
        prop_assert_eq!(said, expected);
        Ok(())
    }

    async fn forget(&mut self, key: usize, reject_all: bool) -> Result<(), TestCaseError> {
        let now = self.bench.pacer.now();
        let waiters = if reject_all {
            Waiters::Rejected
        } else {
            Waiters::Stay
        };
        let named = Key::from(key.to_string().as_bytes());
        let forgotten = self.bench.zone.forget(named, waiters).await;
        let Some(queue) = self.model.queues.get_mut(&key) else {
            prop_assert_eq!(forgotten, None);
            return Ok(());
        };
        let gone = if reject_all {
            queue.reject_all()
        } else {
            Vec::new()
        };
        queue.forget(now);
        // The model remembers keys for longer, so the actors may know nothing of this key.
        prop_assert_eq!(forgotten.unwrap_or(0), gone.len());
        for id in gone {
            let index = self.waiting.iter().position(|(other, ..)| *other == id);
            let (_, _, mut joining) = self.waiting.remove(index.unwrap());
            let answer = peek(&mut joining).await.and_then(Result::err);
            let reason = answer.map(|rejection| rejection.reason);
            prop_assert_eq!(reason, Some(Rejected::Stopping));
        }
        Ok(())
    }

    /// Checks that the stats matches the model.
    async fn compare_census(&self) -> Result<(), TestCaseError> {
        let depths = self
            .model
            .queues
            .iter()
            .map(|(key, queue)| (queue.depth(), key.to_string()));
        let waiting: Vec<_> = depths.filter(|(depth, _)| *depth > 0).collect();
        let stats = self.bench.zone.stats(2).await;
        prop_assert_eq!(
            stats.depth,
            waiting.iter().map(|(depth, _)| depth).sum::<usize>()
        );
        let deepest = waiting.iter().map(|(depth, _)| *depth).max().unwrap_or(0);
        prop_assert_eq!(stats.depth_max, deepest);
        prop_assert_eq!(stats.deepest.len(), waiting.len().min(2));
        prop_assert_eq!(stats.oldest_wait > Duration::ZERO, {
            let now = self.bench.pacer.now();
            self.model
                .queues
                .values()
                .filter_map(Queue::oldest)
                .any(|oldest| oldest < now)
        });
        let keys = self.bench.zone.keys(Order::Depth, 9).await;
        prop_assert_eq!(keys.len(), stats.active + stats.parked);
        for (depth, key) in &waiting {
            let listed = keys.iter().filter(|state| *state.key == *key.as_bytes());
            let depths: Vec<_> = listed.map(|state| state.depth).collect();
            prop_assert_eq!(depths, vec![*depth]);
        }
        Ok(())
    }

    async fn compare_departures(&mut self) -> Result<(), TestCaseError> {
        let now = self.bench.pacer.now();
        self.model.drain(now);
        let mut still = Vec::new();
        for (id, key, mut joining) in self.waiting.drain(..) {
            match peek(&mut joining).await {
                Some(Ok(turn)) => {
                    let _used = turn.take();
                    self.departed.push((id, now));
                }
                Some(Err(rejection)) => prop_assert!(false, "{rejection:?} after waiting"),
                None => still.push((id, key, joining)),
            }
        }
        self.waiting = still;
        self.model.departed.sort_unstable();
        self.departed.sort_unstable();
        prop_assert_eq!(&self.departed, &self.model.departed);
        Ok(())
    }
}

#[test]
fn keys_are_listed_in_steps_that_miss_none_who_stays() {
    run(async {
        let bench = Bench::new("1r/d", 5_000);
        let limit = Limit {
            delay: Delay::Never,
            ..burst(9)
        };
        for key in 0..4_000 {
            let _used = bench.join(&key.to_string(), limit).await.unwrap().take();
        }
        // Long enough to park them: a parked key is forgotten completely.
        for _ in 0..10 {
            bench.advance(Duration::from_secs(3)).await;
        }
        let come_and_go = async {
            for key in 0..1_000 {
                let gone = Key::from(key.to_string().as_bytes());
                assert_eq!(bench.zone.forget(gone, Waiters::Stay).await, Some(0));
                let _used = bench
                    .join(&format!("new{key}"), limit)
                    .await
                    .unwrap()
                    .take();
            }
        };
        let (listed, ()) = tokio::join!(bench.zone.keys(Order::Excess, 5_000), come_and_go);
        for keys in [listed, bench.zone.keys(Order::Excess, 5_000).await] {
            let mut names: Vec<_> = keys.iter().map(|state| &state.key).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), keys.len(), "each once");
            for key in 1_000..4_000 {
                let name = Key::from(key.to_string().as_bytes());
                assert!(names.binary_search(&&name).is_ok(), "{key}");
            }
        }
        let stats = bench.zone.stats(1).await;
        assert_eq!(stats.active + stats.parked, 4_000);
    });
}

#[test]
fn a_flood_of_keys_is_no_flood_of_actors() {
    run(async {
        let bench = Bench::new("1r/d", 100_000);
        let limit = Limit {
            delay: Delay::Never,
            ..burst(1)
        };
        // A key with a waiter keeps its actor, however many other keys come.
        let _passed = bench.join("waits", burst(1)).await.unwrap().take();
        let mut waiting = bench.join("waits", burst(1));
        for round in 0..3 {
            for key in 0..6_000 {
                let joined = bench.join(&key.to_string(), limit).await;
                // The charge is remembered, whether the key is parked or not.
                assert_eq!(joined.is_ok(), round < 2, "{key}");
                joined.ok().map(Turn::take);
            }
        }
        let stats = bench.zone.stats(1).await;
        assert!((4_000..4_100).contains(&stats.active), "{}", stats.active);
        assert_eq!(stats.active + stats.parked, 6_001);
        assert!(peek(&mut waiting).await.is_none());
        bench.advance(Duration::from_secs(24 * 60 * 60)).await;
        assert!(peek(&mut waiting).await.unwrap().is_ok());
    });
}

#[test]
fn a_flood_of_keys_is_no_flood_of_actors_where_many_wait() {
    run(async {
        let bench = Bench::new("1r/d", 100_000);
        let limit = Limit {
            delay: Delay::Never,
            ..burst(1)
        };
        let mut waiting = Vec::new();
        for key in 0..4_500 {
            let key = format!("waits {key}");
            let _passed = bench.join(&key, burst(1)).await.unwrap().take();
            waiting.push(bench.join(&key, burst(1)));
            peek(waiting.last_mut().unwrap()).await;
        }
        for key in 0..30_000 {
            let joined = bench.join(&key.to_string(), limit).await;
            joined.ok().map(Turn::take);
        }
        let stats = bench.zone.stats(1).await;
        assert!(stats.active < 9_200, "{}", stats.active);
        assert_eq!(stats.active + stats.parked, 34_500);
    });
}
