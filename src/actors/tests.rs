use std::cell::RefCell;
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

use super::messages::Rejection;
use super::supervisor::{Tuning, ZoneSupervisor};
use super::{Joining, Key, Turn, Zone};
use crate::config;
use crate::limit::{Bucket, Delay, Limit, Moment, Queue, Rate, Ticket, Verdict};
use crate::metrics::{Rejected, ZoneMetrics};
use crate::pacer::Pacer;

const START: Moment = Moment::from_nanos(1_700_000_000_000_000_000);

/// A zone with one supervisor on this thread, on a clock that the test moves.
struct Bench {
    zone: Arc<Zone>,
    pacer: Rc<Pacer>,
}

impl Bench {
    fn new(rate: &str, max_keys: usize) -> Self {
        let settings = config::Zone {
            name: "test".to_owned(),
            key: "$remote_addr".parse().unwrap(),
            rate: rate.parse().unwrap(),
            max_keys: NonZeroUsize::new(max_keys).unwrap(),
            idle_timeout: Duration::from_secs(60),
            ipv6_prefix: 64,
            exempt: Vec::new(),
        };
        let tuning = Tuning {
            rate: settings.rate,
            max_keys: settings.max_keys,
            idle_timeout: settings.idle_timeout,
        };
        let pacer = Pacer::standing_at(START);
        let metrics = Arc::new(ZoneMetrics::of("test"));
        let supervisor =
            ZoneSupervisor::new("test".to_owned(), tuning, metrics, Rc::clone(&pacer)).start();
        Self {
            zone: Arc::new(Zone::on_this_thread(settings, supervisor)),
            pacer,
        }
    }

    fn retune(&mut self, rate: Rate) {
        let settings = config::Zone {
            rate,
            ..self.zone.settings().clone()
        };
        self.zone = Arc::new(self.zone.retune(settings));
    }

    fn join(&self, key: &str, limit: Limit) -> Joining {
        self.zone.join(Key::from(key.as_bytes()), limit, false)
    }

    /// Lets the actors handle all that is on its way.
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

/// What has become of a join so far.
async fn peek(joining: &mut Joining) -> Option<Result<Turn, Rejection>> {
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
        // "c" pushed "b" out, and "b" later "c"; "a" was remembered all the time.
        assert_eq!(seen, [0.0, 0.0, 1.0, 0.0, 2.0, 0.0]);
    });
}

#[test]
fn dismissing_answers_all_who_wait_and_all_who_come_later() {
    run(async {
        let bench = Bench::new("1r/m", 10);
        let mut joins: Vec<Joining> = (0..5).map(|_| bench.join("a", burst(9))).collect();
        Bench::settle().await;
        let _used = peek(&mut joins[0]).await.unwrap().unwrap().take();
        bench.zone.dismiss();
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
        // Long enough to be parked, and to be woken again.
        2_000_000_000..5_000_000_000u64,
    ];
    prop_oneof![
        3 => span.prop_map(|nanos| Step::Advance(Duration::from_nanos(nanos))),
        6 => (0..3usize, 0..5usize).prop_map(|(key, limit)| Step::Join { key, limit }),
        2 => (0..20usize).prop_map(|nth| Step::HangUp { nth }),
        1 => (0..3usize, 0..5usize).prop_map(|(key, limit)| Step::Return { key, limit }),
        1 => (0..RATES.len()).prop_map(|rate| Step::Retune { rate }),
    ]
}

/// The same requests at bare queues: no actors, no messages, no parking.
struct Model {
    rate: Rate,
    queues: HashMap<usize, Queue<u64>>,
    /// Who has departed and at which moment, in order.
    departed: Vec<(u64, Moment)>,
}

impl Model {
    fn queue(&mut self, key: usize, now: Moment) -> &mut Queue<u64> {
        let rate = self.rate;
        self.queues
            .entry(key)
            .or_insert_with(|| Queue::new(rate, Bucket::new(), now))
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

    /// Whatever happens, the actors answer each join exactly once, at the moment and with the verdict that the
    /// arithmetic alone gives.
    #[test]
    fn the_actors_add_nothing_to_the_arithmetic(steps in prop::collection::vec(step(), 1..80)) {
        run(compare(steps))?;
    }
}

async fn compare(steps: Vec<Step>) -> Result<(), TestCaseError> {
    let mut bench = Bench::new(RATES[0], 100);
    let mut model = Model {
        rate: RATES[0].parse().unwrap(),
        queues: HashMap::new(),
        departed: Vec::new(),
    };
    let waiting: RefCell<Vec<(u64, usize, Joining)>> = RefCell::default();
    let mut departed: Vec<(u64, Moment)> = Vec::new();
    let mut next = 0;
    for step in steps {
        let now = bench.pacer.now();
        match step {
            Step::Advance(span) => {
                bench.advance(span).await;
                model.drain(bench.pacer.now());
            }
            Step::Join { key, limit } | Step::Return { key, limit } => {
                let unused = matches!(step, Step::Return { .. });
                let limit = limits()[limit];
                let mut joining = bench.join(&key.to_string(), limit);
                Bench::settle().await;
                let answer = peek(&mut joining).await;
                let (verdict, charge) =
                    model
                        .queue(key, now)
                        .join(limit, Ticket(next), now, || next);
                match (answer, verdict) {
                    (Some(Ok(turn)), Verdict::Pass { excess }) => {
                        if unused {
                            drop(turn);
                            model.queue(key, now).refund(charge.unwrap(), now);
                        } else {
                            prop_assert_eq!(turn.take().excess, excess);
                        }
                    }
                    (Some(Err(rejection)), Verdict::Reject(refusal)) => {
                        prop_assert_eq!(rejection.retry_after, refusal.retry_at.since(now));
                    }
                    (None, Verdict::Delay { .. }) => {
                        waiting.borrow_mut().push((next, key, joining));
                    }
                    (answer, verdict) => {
                        prop_assert!(false, "{answer:?} where the queue says {verdict:?}");
                    }
                }
                next += 1;
            }
            Step::HangUp { nth } => {
                let left = {
                    let mut waiting = waiting.borrow_mut();
                    let count = waiting.len();
                    (count > 0).then(|| waiting.remove(nth % count))
                };
                if let Some((id, key, joining)) = left {
                    drop(joining);
                    prop_assert_eq!(model.queue(key, now).leave(Ticket(id)), Some(id));
                }
            }
            Step::Retune { rate } => {
                let rate = RATES[rate].parse().unwrap();
                bench.retune(rate);
                Bench::settle().await;
                model.rate = rate;
                for queue in model.queues.values_mut() {
                    queue.retune(rate, now);
                }
            }
        }
        Bench::settle().await;
        let now = bench.pacer.now();
        model.drain(now);
        let mut still = Vec::new();
        for (id, key, mut joining) in waiting.take() {
            match peek(&mut joining).await {
                Some(Ok(turn)) => {
                    let _used = turn.take();
                    departed.push((id, now));
                }
                Some(Err(rejection)) => prop_assert!(false, "{rejection:?} after waiting"),
                None => still.push((id, key, joining)),
            }
        }
        waiting.replace(still);
        model.departed.sort_unstable();
        departed.sort_unstable();
        prop_assert_eq!(&departed, &model.departed);
    }
    Ok(())
}
