//! Measures decisions in Redis, without a gateway.

use std::future::Future;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use gateway::store::{Join, Store, StoreRate};
use gateway::time::clock;
use limit::{Algorithm, Cost, Delay, Limit, Moment};
use redis::Pipeline;
use redis::aio::MultiplexedConnection;
use tokio::task::LocalSet;

use crate::redis_server::RedisServer;
use crate::support::figures::float;
use crate::support::page;

/// Number of joins in a batch when throughput is measured.
const BATCH: usize = 64;
/// Number of connections that send at once when throughput is measured.
const CALLERS: usize = 3;
/// A script that reads and writes as much as a decision does, without deciding anything.
const NOTHING: &str = "local state = redis.call('GET', KEYS[1])
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return state and 1 or 0";
/// As many bytes as the state of a key.
const STATE: [u8; 96] = [b'x'; 96];

/// The command sent to Redis, one at a time or in batches.
#[derive(Clone)]
enum Command {
    Ping,
    /// A plain limiter: counts a window's requests, and lets the count expire.
    Increment,
    /// A script that decides nothing, given by its hash.
    Nothing(String),
    Drip(Algorithm),
}

/// The keys that commands name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keys {
    /// A number of keys of each caller, in turn: no key appears twice in a batch.
    Distinct(usize),
    /// A number of keys that all callers share, at random.
    Hot(usize),
}

/// One connection that sends commands, like that of each worker of a gateway.
struct Caller {
    connection: MultiplexedConnection,
    store: Store,
    pace: StoreRate,
    burst: u32,
    command: Rc<Command>,
    keys: Keys,
    /// Number of this caller.
    nth: usize,
    /// Number of keys sent so far.
    sent: usize,
    random: u64,
}

impl Caller {
    async fn new(
        server: &RedisServer,
        command: Rc<Command>,
        keys: Keys,
        nth: usize,
    ) -> io::Result<Self> {
        let client = server.client()?;
        let connection = client.get_multiplexed_async_connection().await;
        let algorithm = match *command {
            Command::Drip(algorithm) => algorithm,
            _ => Algorithm::default(),
        };
        let url = server.url().parse().map_err(io::Error::other)?;
        // Nothing is rejected: an admitted request costs most, because it is written.
        let (rate, burst) = match keys {
            Keys::Distinct(_) => ("10r/s", 9),
            Keys::Hot(_) => ("20000r/s", 19_999),
        };
        let rate = rate.parse().map_err(io::Error::other)?;
        Ok(Self {
            connection: connection.map_err(io::Error::other)?,
            store: Store::new(url, "bench:", Duration::from_secs(5)),
            pace: StoreRate::new(rate, algorithm, Moment::default()).map_err(io::Error::other)?,
            burst,
            command,
            keys,
            nth,
            sent: 0,
            random: 0x9E37_79B9_7F4A_7C15 + nth as u64,
        })
    }

    fn next_key(&mut self) -> Vec<u8> {
        // Each algorithm stores a different kind of state.
        let kind = match &*self.command {
            Command::Drip(algorithm) => algorithm.name(),
            Command::Ping | Command::Increment => "count",
            Command::Nothing(_) => "nothing",
        };
        self.sent += 1;
        match self.keys {
            Keys::Distinct(count) => {
                format!("{kind}:{}:{}", self.nth, self.sent % count).into_bytes()
            }
            Keys::Hot(count) => {
                // Xorshift: each run requests the same keys.
                self.random ^= self.random << 13;
                self.random ^= self.random >> 7;
                self.random ^= self.random << 17;
                format!("{kind}:hot:{}", self.random % count as u64).into_bytes()
            }
        }
    }

    /// Sends commands for `count` keys at once.
    async fn send(&mut self, count: usize) -> io::Result<()> {
        let keys: Vec<Vec<u8>> = (0..count).map(|_| self.next_key()).collect();
        let mut pipeline = Pipeline::new();
        for key in &keys {
            match &*self.command {
                Command::Ping => pipeline.cmd("PING"),
                Command::Increment => {
                    pipeline.cmd("INCR").arg(key);
                    pipeline.cmd("EXPIRE").arg(key).arg(1)
                }
                Command::Nothing(hash) => {
                    let command = pipeline.cmd("EVALSHA").arg(hash).arg(1).arg(key);
                    command.arg(&STATE).arg(1000)
                }
                Command::Drip(algorithm) => return self.decide(*algorithm, &keys).await,
            };
        }
        let sent = pipeline.exec_async(&mut self.connection).await;
        sent.map_err(io::Error::other)
    }

    async fn decide(&self, algorithm: Algorithm, keys: &[Vec<u8>]) -> io::Result<()> {
        let limit = Limit {
            burst: self.burst,
            delay: Delay::Never,
            max_wait: None,
            cost: Cost::ONE,
            in_flight: None,
            above_burst: 0,
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
        Ok(())
    }

    /// Sends commands for `span`. Returns the duration of each, in microseconds.
    async fn send_for(&mut self, count: usize, span: Duration) -> io::Result<Vec<f64>> {
        let until = clock::now() + span;
        let mut took = Vec::new();
        loop {
            let began = clock::now();
            if began >= until {
                return Ok(took);
            }
            self.send(count).await?;
            took.push(clock::now().since(began).as_secs_f64() * 1e6);
        }
    }
}

/// Throughput of many callers that send batches.
struct Throughput {
    a_second: f64,
    /// Processor time of Redis for each decision, in microseconds.
    each: f64,
}

/// Returns the table of all measurements.
pub fn table(server: &RedisServer, span: Duration) -> io::Result<String> {
    let nothing = server.load(NOTHING)?;
    let mut all = vec![
        ("`PING`", Command::Ping),
        ("`INCR` and `EXPIRE`", Command::Increment),
        (
            "a script of `GET` and `SET` that decides nothing",
            Command::Nothing(nothing),
        ),
    ];
    let algorithms = Algorithm::NAMED.map(|(_, algorithm)| algorithm);
    let names: Vec<_> = algorithms.map(|it| format!("`{}`", it.name())).into();
    let decided = names.iter().zip(algorithms);
    all.extend(decided.map(|(name, algorithm)| (name.as_str(), Command::Drip(algorithm))));
    let mut rows = Vec::new();
    for (name, command) in all {
        let mut row = vec![name.to_owned()];
        let alone = one_at_a_time(server, &command, span)?;
        row.extend([50, 99].map(|percent| format!("{:.0}", percentile(&alone, percent))));
        for keys in [Keys::Distinct(100_000), Keys::Hot(100)] {
            let Throughput { a_second, each } = in_batches(server, &command, keys, span)?;
            row.push(format!("{:.0}", (a_second / 1000.0).round() * 1000.0));
            row.push(format!("{each:.1}"));
        }
        rows.push(row);
    }
    let head = [
        "asked",
        "one, median µs",
        "one, p99 µs",
        "distinct keys, a second",
        "Redis, µs each",
        "100 hot keys, a second",
        "Redis, µs each",
    ];
    Ok(page::table(&head, &rows))
}

/// Returns the durations of many calls made one after the other, in microseconds, sorted.
fn one_at_a_time(server: &RedisServer, command: &Command, span: Duration) -> io::Result<Vec<f64>> {
    let mut took = run(async {
        let command = Rc::new(command.clone());
        let mut caller = Caller::new(server, command, Keys::Distinct(100_000), 0).await?;
        caller.send_for(1, span / 10).await?;
        caller.send_for(1, span).await
    })?;
    took.sort_by(f64::total_cmp);
    Ok(took)
}

fn in_batches(
    server: &RedisServer,
    command: &Command,
    keys: Keys,
    span: Duration,
) -> io::Result<Throughput> {
    server.forget_all()?;
    let used = server.processor_time();
    let batches = run(async {
        let many = (0..CALLERS).map(|nth| {
            let command = Rc::new(command.clone());
            async move {
                let mut caller = Caller::new(server, command, keys, nth).await?;
                caller.send_for(BATCH, span).await
            }
        });
        let batches = futures_util::future::try_join_all(many).await?;
        Ok(batches.iter().map(Vec::len).sum::<usize>())
    })?;
    let used = server.processor_time().saturating_sub(used);
    let decisions = float((batches * BATCH) as u64);
    Ok(Throughput {
        a_second: decisions / span.as_secs_f64(),
        each: used.as_secs_f64() * 1e6 / decisions,
    })
}

/// Returns a percentile of sorted values; 0 if there are none.
pub fn percentile(sorted: &[f64], percent: usize) -> f64 {
    let index = sorted.len() * percent / 100;
    sorted
        .get(index.min(sorted.len().saturating_sub(1)))
        .copied()
        .unwrap_or_default()
}

/// Runs `work` to its end on a runtime of its own.
pub fn run<T>(work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    LocalSet::new().block_on(&runtime, work)
}
