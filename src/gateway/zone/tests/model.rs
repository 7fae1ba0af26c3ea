//! Property test of a zone's actors against a model: both decide the same in any sequence.

use super::*;

/// Event of a trace.
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
        max_wait,
        ..Limit::unlimited(delay, Cost::ONE)
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
        // Rare, because it ends the trace.
        1 => (0..10u8).prop_map(|nth| if nth == 0 { Step::Stop } else { Step::Advance(Duration::ZERO) }),
    ]
}

/// Model: the same requests at plain queues, without actors, messages or parking.
struct Model {
    rate: Rate,
    max_keys: usize,
    queues: HashMap<usize, Queue<u64>>,
    stopped: bool,
    /// Requests that have departed, in order, with their instants.
    departed: Vec<(u64, Moment)>,
}

/// Answer of the model to a join.
#[derive(Debug, PartialEq)]
enum ModelAnswer {
    Passed(Excess),
    Waits,
    Rejected(Rejected, Duration),
}

impl Model {
    fn join(
        &mut self,
        key: usize,
        limit: Limit,
        id: u64,
        now: Moment,
    ) -> (ModelAnswer, Option<Charge>) {
        let soon = Duration::from_secs(1);
        if self.stopped {
            return (ModelAnswer::Rejected(Rejected::Stopping, soon), None);
        }
        if !self.queues.contains_key(&key) && self.queues.len() == self.max_keys {
            // The model knows which key is evicted only if there is one candidate, that is, one
            // key.
            let idle = self
                .queues
                .iter()
                .find(|(_, queue)| queue.depth() == 0)
                .map(|(key, _)| *key);
            let Some(idle) = idle else {
                return (ModelAnswer::Rejected(Rejected::Keys, soon), None);
            };
            self.queues.remove(&idle);
        }
        let rate = self.rate;
        let queue = self
            .queues
            .entry(key)
            .or_insert_with(|| Queue::new(rate, Bucket::new(), now));
        let (verdict, charge) = queue.join(limit, Ticket(id), now, || id);
        let answer = match verdict {
            Verdict::Pass { excess } => ModelAnswer::Passed(excess),
            Verdict::Delay { .. } => ModelAnswer::Waits,
            Verdict::Reject(refusal) => {
                ModelAnswer::Rejected(refusal.reason.into(), refusal.retry_at.since(now))
            }
        };
        (answer, charge)
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
    #![proptest_config(testing::config())]

    /// Checks that the actors answer each join exactly once, with the model's verdict and instant.
    #[test]
    fn the_actors_match_the_model(
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

/// Runs the actors and the model side by side.
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
        let answer = match peek(&mut joining).await {
            None => {
                self.waiting.push((id, key, joining));
                ModelAnswer::Waits
            }
            Some(Err(rejection)) => ModelAnswer::Rejected(rejection.reason, rejection.retry_after),
            Some(Ok(turn)) if used => {
                let excess = turn.grant().excess;
                turn.take();
                ModelAnswer::Passed(excess)
            }
            Some(Ok(turn)) => {
                drop(turn);
                self.model.refund(key, charge, now);
                let passes = matches!(expected, ModelAnswer::Passed(_));
                prop_assert!(passes, "passed where the queue says {expected:?}");
                return Ok(());
            }
        };
        prop_assert_eq!(answer, expected);
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
        let removed = if reject_all {
            queue.reject_all()
        } else {
            Vec::new()
        };
        queue.forget(now);
        // The model remembers keys for longer, so this key may be unknown to the actors.
        prop_assert_eq!(forgotten.unwrap_or(0), removed.len());
        for id in removed {
            let index = self.waiting.iter().position(|(other, ..)| *other == id);
            let (_, _, mut joining) = self.waiting.remove(index.unwrap());
            let answer = peek(&mut joining).await.and_then(Result::err);
            let reason = answer.map(|rejection| rejection.reason);
            prop_assert_eq!(reason, Some(Rejected::Stopping));
        }
        Ok(())
    }

    /// Checks that the zone's statistics match the model.
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
