//! Measures the figures from which the capacity of a Redis is computed.
//!
//! These are a key's memory, a decision's network traffic, and a connection's memory.

use std::cell::Cell;
use std::io;
use std::time::Duration;

use gateway::store::{Join, Store, StoreRate, form};
use gateway::time::clock;
use limit::{Algorithm, Cost, Delay, Limit, Moment};

use crate::decisions::run;
use crate::redis_server::RedisServer;
use crate::support::figures::float;
use crate::support::page;

/// Number of callers; fewer if there are fewer connections.
const CALLERS: usize = 3;
const BATCH: usize = 64;
/// Number of further requests of a key, after which its memory is measured again.
const MORE: usize = 99;
/// Number of connections that send requests at the same time.
const BUSY: usize = 100;

/// Time after which Redis has freed the unused buffers of a connection.
const IDLE: Duration = Duration::from_secs(6);

/// Counts of a measurement of decisions.
struct Counted {
    decisions: f64,
    seconds: f64,
    /// Processor time of Redis, in microseconds.
    processor: f64,
    /// Bytes to and from Redis.
    bytes: [f64; 2],
}

/// Sends decisions of one algorithm on many keys with realistic names.
struct Caller {
    store: Store,
    algorithm: Algorithm,
    pace: StoreRate,
    limit: Limit,
}

impl Caller {
    fn new(server: &RedisServer, algorithm: Algorithm) -> io::Result<Self> {
        let url = server.url().parse().map_err(io::Error::other)?;
        // The rate is so low that no key expires meanwhile. The first hundred requests of each key
        // pass.
        let rate = "100r/h".parse().map_err(io::Error::other)?;
        let limit = Limit {
            burst: 99,
            delay: Delay::Never,
            max_wait: None,
            cost: Cost::ONE,
            in_flight: None,
            above_burst: 0,
        };
        Ok(Self {
            store: Store::new(url, "drip:", Duration::from_secs(5)),
            algorithm,
            pace: StoreRate::new(rate, algorithm, Moment::default()).map_err(io::Error::other)?,
            limit,
        })
    }

    /// Returns the name of a key, as in a zone whose key is `$remote_addr`.
    fn name(&self, nth: usize) -> String {
        let [_, a, b, c] = u32::try_from(nth).unwrap_or_default().to_be_bytes();
        format!(
            "per_client:{}.{}:203.{a}.{b}.{c}",
            self.algorithm.name(),
            form(self.algorithm)
        )
    }

    async fn decide(&self, keys: impl Iterator<Item = usize>) -> io::Result<()> {
        let names: Vec<String> = keys.map(|nth| self.name(nth)).collect();
        let joins = names.iter().map(|name| Join {
            key: name.as_bytes(),
            algorithm: self.algorithm,
            pace: &self.pace,
            limit: self.limit,
            at: None,
        });
        let joins: Vec<Join> = joins.collect();
        for answer in self.store.decide(&joins).await {
            answer.map_err(io::Error::other)?;
        }
        Ok(())
    }
}

/// Makes `callers` send decisions on random keys of `keys` for `span`, `batch` at once.
async fn decisions(
    server: &RedisServer,
    callers: &[Caller],
    (keys, batch): (usize, usize),
    span: Duration,
) -> io::Result<Counted> {
    let traffic = || -> io::Result<[f64; 2]> {
        let bytes = |field| server.info("stats", field).map(float);
        Ok([
            bytes("total_net_input_bytes")?,
            bytes("total_net_output_bytes")?,
        ])
    };
    let (used, before) = (server.processor_time(), traffic()?);
    let (count, began) = (Cell::new(0), clock::now());
    let asked = callers.iter().enumerate().map(|(nth, caller)| {
        let count = &count;
        async move {
            // Xorshift: each run requests the same keys.
            let mut random = 0x9E37_79B9_7F4A_7C15_u64 + nth as u64;
            let mut next = move || {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                usize::try_from(random % keys as u64).unwrap_or_default()
            };
            while clock::now() < began + span {
                caller.decide((0..batch).map(|_| next())).await?;
                count.set(count.get() + batch as u64);
            }
            Ok::<_, io::Error>(())
        }
    });
    futures_util::future::try_join_all(asked).await?;
    let seconds = clock::now().since(began).as_secs_f64();
    let processor = server.processor_time().saturating_sub(used).as_secs_f64() * 1e6;
    let after = traffic()?;
    Ok(Counted {
        decisions: float(count.get()),
        seconds,
        processor,
        bytes: [after[0] - before[0], after[1] - before[1]],
    })
}

impl Counted {
    /// Returns the part of `total` for each decision.
    fn each(&self, total: f64) -> f64 {
        total / self.decisions
    }

    fn a_second(&self) -> String {
        format!(
            "{:.0}",
            (self.decisions / self.seconds / 1000.0).round() * 1000.0
        )
    }
}

/// Measures for each algorithm the memory of a key, and the cost of decisions on `keys` keys.
pub fn keys_table(server: &RedisServer, keys: usize, span: Duration) -> io::Result<String> {
    let cluster = RedisServer::start_cluster()?;
    let followed = RedisServer::start()?;
    let _replica = followed.start_replica()?;
    let mut rows = Vec::new();
    for (_, algorithm) in Algorithm::NAMED {
        server.forget_all()?;
        cluster.forget_all()?;
        let callers = (0..CALLERS).map(|_| Caller::new(server, algorithm));
        let callers: Vec<Caller> = callers.collect::<io::Result<_>>()?;
        let empty = server.info("memory", "used_memory")?;
        run(async {
            let filled = callers.iter().enumerate().map(|(nth, caller)| async move {
                let (first, end) = (keys * nth / CALLERS, keys * (nth + 1) / CALLERS);
                for from in (first..end).step_by(BATCH) {
                    caller.decide(from..end.min(from + BATCH)).await?;
                }
                Ok::<_, io::Error>(())
            });
            futures_util::future::try_join_all(filled).await.map(drop)
        })?;
        let full = server.info("memory", "used_memory")?;
        // The callers have connections of their own, which take a few kilobytes in all.
        let each = float(full.saturating_sub(empty)) / float(keys as u64);
        // The random decisions do not use this key.
        let name = format!("drip:{}", callers[0].name(keys));
        let mut key_memory = [0; 2];
        for (memory, requests) in key_memory.iter_mut().zip([1, MORE]) {
            let caller = Caller::new(server, algorithm)?;
            run(caller.decide(std::iter::repeat_n(keys, requests)))?;
            *memory = server.memory_of(&name)?;
        }
        let measure = |server: &RedisServer, batch| {
            let callers = (0..CALLERS).map(|_| Caller::new(server, algorithm));
            let callers: Vec<Caller> = callers.collect::<io::Result<_>>()?;
            run(decisions(server, &callers, (keys, batch), span))
        };
        let in_batches = measure(server, BATCH)?;
        let alone = measure(server, 1)?;
        let spread = measure(&cluster, BATCH)?;
        let sent = || {
            followed
                .info("replication", "master_repl_offset")
                .map(float)
        };
        let before = sent()?;
        let copied = measure(&followed, BATCH)?;
        let copied = copied.each(sent()? - before);
        let bytes = |counted: &Counted| {
            let [to, from] = counted.bytes.map(|bytes| counted.each(bytes));
            format!("{to:.0} + {from:.0}")
        };
        rows.push(vec![
            format!("`{}`", algorithm.name()),
            format!("{each:.0}"),
            key_memory[0].to_string(),
            key_memory[1].to_string(),
            in_batches.a_second(),
            format!("{:.1}", in_batches.each(in_batches.processor)),
            format!("{:.1}", alone.each(alone.processor)),
            format!("{:.1}", spread.each(spread.processor)),
            bytes(&in_batches),
            bytes(&alone),
            format!("{copied:.0}"),
        ]);
    }
    server.forget_all()?;
    let head = [
        "algorithm",
        "bytes a key",
        "`MEMORY USAGE`",
        "after 100 requests",
        "decisions a second",
        "Redis, µs each",
        "alone, µs",
        "in a cluster, µs",
        "network in + out, bytes each",
        "alone, bytes",
        "to a replica, bytes",
    ];
    Ok(page::table(&head, &rows))
}

/// Measures the memory of connections, and whether many of them slow decisions down.
pub fn connections_table(
    server: &RedisServer,
    counts: &[usize],
    span: Duration,
) -> io::Result<String> {
    const KEYS: usize = 100_000;
    let algorithm = Algorithm::LeakyBucket;
    let mut rows = Vec::new();
    for count in counts {
        server.forget_all()?;
        let empty = server.info("memory", "used_memory")?;
        let resident = server.memory();
        let row = run(async {
            let stores = (0..*count).map(|_| Caller::new(server, algorithm));
            let stores: Vec<Caller> = stores.collect::<io::Result<_>>()?;
            for caller in &stores {
                caller.store.probe().await.map_err(io::Error::other)?;
            }
            let full = server.info("memory", "used_memory")?;
            tokio::time::sleep(IDLE).await;
            let idle = server.info("memory", "used_memory")?;
            let each = |bytes: u64| format!("{:.1}", float(bytes) / float(*count as u64) / 1e3);
            let memory = [
                each(full.saturating_sub(empty)),
                each(idle.saturating_sub(empty)),
                each(server.memory().saturating_sub(resident)),
            ];
            let busy = &stores[..BUSY.min(stores.len())];
            let counted = decisions(server, busy, (KEYS, BATCH / 8), span).await?;
            let mut row = vec![count.to_string()];
            row.extend(memory);
            row.push(busy.len().to_string());
            row.push(counted.a_second());
            row.push(format!("{:.1}", counted.each(counted.processor)));
            Ok(row)
        })?;
        rows.push(row);
    }
    let head = [
        "connections",
        "just opened, kB each",
        "idle, kB each",
        "resident, kB each",
        "that ask",
        "decisions a second",
        "Redis, µs each",
    ];
    Ok(page::table(&head, &rows))
}
