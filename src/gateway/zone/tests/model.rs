//! Property test of a zone's actors against a model: both decide the same in any sequence.

use super::*;

/// Event of a trace. A limit and a rate are indexes.
#[derive(Clone, Debug)]
enum Step {
    Advance(Duration),
    /// Joins, and uses an admission.
    Join {
        key: usize,
        limit: usize,
    },
    /// Joins, and drops an admission unused.
    JoinUnused {
        key: usize,
        limit: usize,
    },
    /// Lets a waiter leave.
    Leave {
        nth: usize,
    },
    Retune {
        rate: usize,
    },
    Forget {
        key: usize,
        waiters: Waiters,
    },
    Stop,
}

/// Rates of the zone. The first one applies at the start.
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
    let waiters = prop_oneof![Just(Waiters::Stay), Just(Waiters::Rejected)];
    prop_oneof![
        3 => span.prop_map(|nanos| Step::Advance(Duration::from_nanos(nanos))),
        6 => (0..3usize, 0..5usize).prop_map(|(key, limit)| Step::Join { key, limit }),
        1 => (0..3usize, 0..5usize).prop_map(|(key, limit)| Step::JoinUnused { key, limit }),
        2 => (0..20usize).prop_map(|nth| Step::Leave { nth }),
        1 => (0..RATES.len()).prop_map(|rate| Step::Retune { rate }),
        1 => (0..3usize, waiters).prop_map(|(key, waiters)| Step::Forget { key, waiters }),
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
            let idle = self.queues.iter().find(|(_, queue)| queue.depth() == 0);
            let Some(idle) = idle.map(|(key, _)| *key) else {
                return (ModelAnswer::Rejected(Rejected::Keys, soon), None);
            };
            self.queues.remove(&idle);
        }
        let (rate, queue) = (self.rate, self.queues.entry(key));
        let queue = queue.or_insert_with(|| Queue::new(rate, Bucket::new(), now));
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

/// Returns why a join was rejected; `None` if it waits or is admitted.
async fn reason(joining: &mut Joining<'static>) -> Option<Rejected> {
    let rejection = peek(joining).await?.err()?;
    Some(rejection.reason)
}

/// Runs the actors and the model side by side. Each request has an id.
struct Comparison {
    bench: Bench,
    model: Model,
    /// Id, key and join of each waiter.
    waiting: Vec<(u64, usize, Joining<'static>)>,
    /// Requests that have departed, with their instants.
    departed: Vec<(u64, Moment)>,
    next_id: u64,
}

impl Comparison {
    fn new(max_keys: usize) -> Self {
        Self {
            bench: Bench::new(RATES[0], max_keys),
            model: Model {
                rate: RATES[0].parse().unwrap(),
                max_keys,
                queues: HashMap::new(),
                stopped: false,
                departed: Vec::new(),
            },
            waiting: Vec::new(),
            departed: Vec::new(),
            next_id: 0,
        }
    }

    async fn step(&mut self, step: Step) -> Result<(), TestCaseError> {
        let now = self.bench.pacer.now();
        match step {
            Step::Advance(span) => self.bench.advance(span).await,
            Step::Join { key, limit } => self.join(key, limit, true).await?,
            Step::JoinUnused { key, limit } => self.join(key, limit, false).await?,
            Step::Leave { nth } if !self.waiting.is_empty() => {
                let (id, key, joining) = self.waiting.remove(nth % self.waiting.len());
                drop(joining);
                let queue = self.model.queues.get_mut(&key);
                let left = queue.and_then(|queue| queue.leave(Ticket(id)));
                prop_assert_eq!(left, Some(id));
            }
            Step::Leave { .. } => {}
            Step::Retune { rate } => {
                let rate = RATES[rate].parse().unwrap();
                self.bench.retune(rate);
                self.model.retune(rate, now);
            }
            Step::Forget { key, waiters } => self.forget(key, waiters).await?,
            Step::Stop => {
                self.bench.zone.reject_all();
                self.model.stopped = true;
                Bench::settle().await;
                for (_, _, mut joining) in self.waiting.drain(..) {
                    prop_assert_eq!(reason(&mut joining).await, Some(Rejected::Stopping));
                }
                let queues = self.model.queues.values_mut();
                queues.for_each(|queue| drop(queue.reject_all()));
            }
        }
        Bench::settle().await;
        self.compare_departures().await?;
        self.compare_stats().await
    }

    async fn join(&mut self, key: usize, limit: usize, is_used: bool) -> Result<(), TestCaseError> {
        let (id, now, limit) = (self.next_id, self.bench.pacer.now(), limits()[limit]);
        self.next_id += 1;
        let mut joining = self.bench.joined(&key.to_string(), limit).await;
        let (expected, charge) = self.model.join(key, limit, id, now);
        let answer = match peek(&mut joining).await {
            None => {
                self.waiting.push((id, key, joining));
                ModelAnswer::Waits
            }
            Some(Err(rejection)) => ModelAnswer::Rejected(rejection.reason, rejection.retry_after),
            Some(Ok(admission)) if is_used => {
                let excess = admission.grant().excess;
                admission.take();
                ModelAnswer::Passed(excess)
            }
            Some(Ok(admission)) => {
                drop(admission);
                self.model.refund(key, charge, now);
                let passes = matches!(expected, ModelAnswer::Passed(_));
                prop_assert!(passes, "passed where the queue says {expected:?}");
                return Ok(());
            }
        };
        prop_assert_eq!(answer, expected);
        Ok(())
    }

    async fn forget(&mut self, key: usize, waiters: Waiters) -> Result<(), TestCaseError> {
        let now = self.bench.pacer.now();
        let named = Key::from(key.to_string().as_bytes());
        let forgotten = self.bench.zone.forget(named, waiters).await;
        let Some(queue) = self.model.queues.get_mut(&key) else {
            prop_assert_eq!(forgotten, None);
            return Ok(());
        };
        let removed = match waiters {
            Waiters::Stay => Vec::new(),
            Waiters::Rejected => queue.reject_all(),
        };
        queue.forget(now);
        // The model remembers keys for longer, so this key may be unknown to the actors.
        prop_assert_eq!(forgotten.unwrap_or(0), removed.len());
        for id in removed {
            let index = self.waiting.iter().position(|(other, ..)| *other == id);
            let (_, _, mut joining) = self.waiting.remove(index.unwrap());
            prop_assert_eq!(reason(&mut joining).await, Some(Rejected::Stopping));
        }
        Ok(())
    }

    /// Checks that the zone's statistics match the model.
    async fn compare_stats(&self) -> Result<(), TestCaseError> {
        let queues = self.model.queues.iter();
        let depths = queues.map(|(key, queue)| (queue.depth(), key.to_string()));
        let waiting: Vec<_> = depths.filter(|(depth, _)| *depth > 0).collect();
        let stats = self.bench.zone.stats(2).await;
        let depth: usize = waiting.iter().map(|(depth, _)| depth).sum();
        prop_assert_eq!(stats.depth, depth);
        let deepest = waiting.iter().map(|(depth, _)| *depth).max().unwrap_or(0);
        prop_assert_eq!(stats.depth_max, deepest);
        prop_assert_eq!(stats.deepest.len(), waiting.len().min(2));
        let (now, queues) = (self.bench.pacer.now(), self.model.queues.values());
        let has_waited = queues.filter_map(Queue::oldest).any(|oldest| oldest < now);
        prop_assert_eq!(stats.oldest_wait > Duration::ZERO, has_waited);
        let keys = self.bench.zone.keys(Order::Depth, 9).await;
        prop_assert_eq!(keys.len(), stats.active + stats.parked);
        for (depth, key) in &waiting {
            let listed = keys.iter().filter(|state| *state.key == *key.as_bytes());
            let depths: Vec<_> = listed.map(|state| state.depth).collect();
            prop_assert_eq!(depths, vec![*depth]);
        }
        Ok(())
    }

    /// Checks that the same requests have departed, at the same instants.
    async fn compare_departures(&mut self) -> Result<(), TestCaseError> {
        let now = self.bench.pacer.now();
        self.model.drain(now);
        let mut still = Vec::new();
        for (id, key, mut joining) in self.waiting.drain(..) {
            match peek(&mut joining).await {
                Some(Ok(admission)) => {
                    let _used = admission.take();
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
