//! Measures decisions in Redis, without a gateway.

use std::future::Future;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use drip::limit::{Algorithm, Cost, Delay, Limit, Moment};
use drip::store::{Join, Pace, Store};
use drip::time::clock;
use redis::Pipeline;
use redis::aio::MultiplexedConnection;
use tokio::task::LocalSet;

use crate::redis_server::RedisServer;
use crate::support::figures::float;
use crate::support::page;

/// Joins in one batch when throughput is measured.
const BATCH: usize = 64;

/// The command sent to Redis, one at a time or in batches.
enum Asked {
    Ping,
    /// A plain limiter: counts a window's requests, and lets the count expire.
    Increment,
    Drip(Algorithm),
}

/// One connection that sends commands, like that of each worker of a gateway.
struct Asker {
    connection: MultiplexedConnection,
    store: Store,
    pace: Pace,
    what: Rc<Asked>,
    nth: usize,
}

impl Asker {
    async fn new(server: &RedisServer, what: Rc<Asked>, nth: usize) -> io::Result<Self> {
        let client = server.client()?;
        let connection = client.get_multiplexed_async_connection().await;
        let algorithm = match *what {
            Asked::Drip(algorithm) => algorithm,
            Asked::Ping | Asked::Increment => Algorithm::default(),
        };
        let url = server.url().parse().map_err(io::Error::other)?;
        let rate = "10r/s".parse().map_err(io::Error::other)?;
        Ok(Self {
            connection: connection.map_err(io::Error::other)?,
            store: Store::new(url, "bench:", Duration::from_secs(5)),
            pace: Pace::new(rate, algorithm, Moment::default()).map_err(io::Error::other)?,
            what,
            nth,
        })
    }

    /// Sends commands for `count` keys at once.
    async fn ask(&mut self, count: usize, turn: usize) -> io::Result<()> {
        // Each algorithm stores a different kind of state.
        let what = match *self.what {
            Asked::Drip(algorithm) => algorithm.name(),
            Asked::Ping | Asked::Increment => "count",
        };
        let (nth, keys) = (self.nth, 1000);
        let key = |index: usize| format!("{what}:{nth}:{}", (turn + index) % keys).into_bytes();
        let mut pipeline = Pipeline::new();
        match *self.what {
            Asked::Ping => {
                for _ in 0..count {
                    pipeline.cmd("PING");
                }
            }
            Asked::Increment => {
                for index in 0..count {
                    let key = key(index);
                    pipeline.cmd("INCR").arg(&key);
                    pipeline.cmd("EXPIRE").arg(&key).arg(1);
                }
            }
            Asked::Drip(algorithm) => {
                let keys: Vec<Vec<u8>> = (0..count).map(key).collect();
                let limit = Limit {
                    burst: 9,
                    delay: Delay::Never,
                    max_wait: None,
                    cost: Cost::ONE,
                    in_flight: None,
                    held: 0,
                };
                let join = |key| Join {
                    key,
                    algorithm,
                    pace: &self.pace,
                    limit,
                    at: None,
                };
                let joins: Vec<Join> = keys.iter().map(|key| join(key)).collect();
                for answer in self.store.decide(&joins).await {
                    answer.map_err(io::Error::other)?;
                }
                return Ok(());
            }
        }
        let asked = pipeline.exec_async(&mut self.connection).await;
        asked.map_err(io::Error::other)
    }

    /// Sends commands for `span`. Returns the duration of each, in microseconds.
    async fn keep_asking(&mut self, count: usize, span: Duration) -> io::Result<Vec<f64>> {
        let until = clock::now() + span;
        let mut took = Vec::new();
        loop {
            let began = clock::now();
            if began >= until {
                return Ok(took);
            }
            self.ask(count, took.len() * count).await?;
            took.push(clock::now().since(began).as_secs_f64() * 1e6);
        }
    }
}

/// The table of all measurements.
pub fn table(server: &RedisServer, span: Duration) -> io::Result<String> {
    let mut rows = Vec::new();
    let all = [("PING", Asked::Ping), ("INCR and EXPIRE", Asked::Increment)];
    let algorithms = Algorithm::NAMED.map(|(name, algorithm)| (name, Asked::Drip(algorithm)));
    for (name, what) in all.into_iter().chain(algorithms) {
        let what = Rc::new(what);
        let mut alone = run(async {
            let mut asker = Asker::new(server, Rc::clone(&what), 0).await?;
            asker.keep_asking(1, span / 10).await?;
            asker.keep_asking(1, span).await
        })?;
        alone.sort_by(f64::total_cmp);
        let mut row = vec![format!("`{name}`")];
        row.extend([50, 99].map(|percent| format!("{:.0}", percentile(&alone, percent))));
        for gateways in [1, 3] {
            let batches = run(async {
                let many = (0..gateways).map(|nth| {
                    let what = Rc::clone(&what);
                    async move {
                        let mut asker = Asker::new(server, what, nth).await?;
                        asker.keep_asking(BATCH, span).await
                    }
                });
                let batches = futures_util::future::try_join_all(many).await?;
                Ok(batches.iter().map(Vec::len).sum::<usize>())
            })?;
            let each = float((batches * BATCH) as u64) / span.as_secs_f64();
            row.push(format!("{:.0}", (each / 1000.0).round() * 1000.0));
        }
        rows.push(row);
    }
    let head = [
        "asked",
        "one, median µs",
        "one, p99 µs",
        "a second, one asker",
        "a second, three",
    ];
    Ok(page::table(&head, &rows))
}

pub fn percentile(sorted: &[f64], percent: usize) -> f64 {
    let index = sorted.len() * percent / 100;
    sorted
        .get(index.min(sorted.len().saturating_sub(1)))
        .copied()
        .unwrap_or_default()
}

pub fn run<T>(work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    LocalSet::new().block_on(&runtime, work)
}
