//! Measures the cost that the store adds to a request through gateways.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use gateway::time::clock;
use tempfile::TempDir;

use crate::decisions::{percentile, run};
use crate::distance::relay;
use crate::redis_server::RedisServer;
use crate::support::client::Connection;
use crate::support::figures::{Figure, cell, float};
use crate::support::origin::Origin;
use crate::support::page;
use crate::support::placement::free_address;
use crate::support::process::Running;
use crate::support::usage;

/// Number of clients of each gateway, each with a key of its own.
const FEW_CLIENTS: usize = 32;
/// Number of clients that keep a gateway busy even if each request takes 5 ms more.
const MANY_CLIENTS: usize = 512;
/// Latency of a distant Redis: added to each response.
const LATENCY: Duration = Duration::from_millis(5);
/// Number of measurements of each row, in turn with the others.
const ROUNDS: usize = 3;

pub struct Gateway {
    pub address: SocketAddr,
    _folder: TempDir,
    pub running: Running,
}

impl Gateway {
    /// Starts a gateway.
    ///
    /// `zone`: fields of the zone except its key. `limit`: fields of the limit except its zone.
    pub fn start(origin: &Origin, redis: SocketAddr, zone: &str, limit: &str) -> io::Result<Self> {
        let (folder, address) = (TempDir::new()?, free_address());
        let text = format!(
            r#"
[server]
listen = ["{address}"]
admin = "off"
workers = 1

[origins.app]
servers = ["http://{}"]

[redis]
url = "redis://{redis}/0"
timeout = "1s"

[zones.z]
key = "$http_x_key"
{zone}

[[routes]]
path = "/"
origin = "app"
limits = [{{ zone = "z", {limit} }}]
"#,
            origin.address
        );
        fs::write(folder.path().join("gateway.toml"), text)?;
        let running = Running::drip(folder.path(), address)?;
        Ok(Self {
            address,
            _folder: folder,
            running,
        })
    }
}

/// One row of the table.
struct Row {
    name: &'static str,
    gateways: Vec<Gateway>,
    clients: usize,
    is_shared: bool,
    /// Index of the row with the same gateways and clients, and zones in memory.
    baseline: usize,
    rounds: Rounds,
}

/// Results of a row, one for each round.
#[derive(Default)]
struct Rounds {
    a_second: Vec<f64>,
    median: Vec<f64>,
    p99: Vec<f64>,
    /// Processor time of the gateways for each request, in microseconds.
    each: Vec<f64>,
    reads: Vec<f64>,
}

/// Compares memory and Redis: for one gateway, for three, and for a Redis that is far away.
pub fn table(server: &RedisServer, span: Duration) -> io::Result<String> {
    let origin = Origin::start()?;
    let near = relay(server.address, Duration::ZERO)?;
    let far = relay(server.address, LATENCY)?;
    let mut rows = Vec::new();
    for (name, store, count, clients, address, baseline) in [
        ("1, `memory`", "memory", 1, FEW_CLIENTS, server.address, 0),
        ("1, `redis`", "redis", 1, FEW_CLIENTS, server.address, 0),
        ("3, `memory`", "memory", 3, FEW_CLIENTS, server.address, 2),
        ("3, `redis`", "redis", 3, FEW_CLIENTS, server.address, 2),
        (
            "1, 512 clients, `memory`",
            "memory",
            1,
            MANY_CLIENTS,
            server.address,
            4,
        ),
        (
            "1, 512 clients, `redis`, by a relay",
            "redis",
            1,
            MANY_CLIENTS,
            near,
            4,
        ),
        (
            "1, 512 clients, `redis`, by a relay of 5 ms",
            "redis",
            1,
            MANY_CLIENTS,
            far,
            4,
        ),
    ] {
        let zone = format!("rate = \"1000000r/s\"\nstore = \"{store}\"");
        let start = |_| Gateway::start(&origin, address, &zone, "burst = 1000");
        let gateways = (0..count).map(start);
        rows.push(Row {
            name,
            gateways: gateways.collect::<io::Result<_>>()?,
            clients,
            is_shared: store == "redis",
            baseline,
            rounds: Rounds::default(),
        });
    }
    for row in &rows {
        load(&row.gateways, row.clients, span / 4)?;
    }
    for _ in 0..ROUNDS {
        for row in &mut rows {
            row.measure(server, span)?;
        }
    }
    let cells: Vec<_> = rows
        .iter()
        .map(|row| row.cells(&rows[row.baseline]))
        .collect();
    let head = [
        "gateways",
        "requests a second",
        "median µs",
        "p99 µs",
        "processor time, µs",
        "beside `memory`",
        "reads of Redis a request",
    ];
    Ok(page::table(&head, &cells))
}

impl Row {
    fn processor_time(&self) -> Duration {
        let processes = self.gateways.iter().flat_map(|it| it.running.processes());
        usage::processor_time(&processes.collect::<Vec<_>>())
    }

    fn measure(&mut self, server: &RedisServer, span: Duration) -> io::Result<()> {
        let (reads, used) = (server.reads()?, self.processor_time());
        let mut took = load(&self.gateways, self.clients, span)?;
        let used = self.processor_time().saturating_sub(used);
        // The query of the count is itself one read.
        let reads = server.reads()?.saturating_sub(reads + 1);
        took.sort_by(f64::total_cmp);
        let requests = float(took.len() as u64);
        let rounds = &mut self.rounds;
        rounds.a_second.push(requests / span.as_secs_f64());
        rounds.median.push(percentile(&took, 50));
        rounds.p99.push(percentile(&took, 99));
        rounds.each.push(used.as_secs_f64() * 1e6 / requests);
        rounds.reads.push(float(reads) / requests);
        Ok(())
    }

    fn cells(&self, memory: &Self) -> Vec<String> {
        let (rounds, none) = (&self.rounds, || "—".to_owned());
        let median = |figures: &[f64]| Figure::of(figures).map_or(0.0, |it| it.median);
        let beside = Figure::ratio(&rounds.each, &memory.rounds.each);
        vec![
            self.name.to_owned(),
            format!("{:.0}", median(&rounds.a_second)),
            format!("{:.0}", median(&rounds.median)),
            format!("{:.0}", median(&rounds.p99)),
            cell(Figure::of(&rounds.each), 1),
            if self.is_shared {
                cell(beside, 2)
            } else {
                none()
            },
            if self.is_shared {
                format!("{:.3}", median(&rounds.reads))
            } else {
                none()
            },
        ]
    }
}

/// Returns the duration of each request, in microseconds.
fn load(gateways: &[Gateway], clients: usize, span: Duration) -> io::Result<Vec<f64>> {
    run(async {
        let until = clock::now() + span;
        let mut asked = Vec::new();
        for gateway in gateways {
            for client in 0..clients {
                let mut connection = Connection::new(gateway.address);
                let request = format!("GET / HTTP/1.1\r\nHost: bench\r\nX-Key: {client}\r\n\r\n");
                asked.push(async move {
                    let mut took = Vec::new();
                    while clock::now() < until {
                        let began = clock::now();
                        if connection.exchange(request.as_bytes()).await? == 200 {
                            took.push(clock::now().since(began).as_secs_f64() * 1e6);
                        }
                    }
                    Ok::<_, io::Error>(took)
                });
            }
        }
        let all = futures_util::future::try_join_all(asked).await?;
        Ok(all.concat())
    })
}
