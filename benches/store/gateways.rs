//! Measures what the store adds to a request through gateways.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use drip::time::clock;
use tempfile::TempDir;

use crate::decisions::{percentile, run};
use crate::redis_server::RedisServer;
use crate::support::client::Connection;
use crate::support::figures::float;
use crate::support::origin::Origin;
use crate::support::page;
use crate::support::place::free_address;
use crate::support::process::Running;

/// Clients of each gateway, each with a key of its own.
const CLIENTS: usize = 32;

struct Gateway {
    address: SocketAddr,
    _folder: TempDir,
    _running: Running,
}

impl Gateway {
    fn start(origin: &Origin, server: &RedisServer, store: &str) -> io::Result<Self> {
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
url = "{}"
timeout = "1s"

[zones.z]
key = "$http_x_key"
rate = "1000000r/s"
store = "{store}"

[[routes]]
path = "/"
origin = "app"
limits = [{{ zone = "z", burst = 1000 }}]
"#,
            origin.address,
            server.url()
        );
        fs::write(folder.path().join("gateway.toml"), text)?;
        let running = Running::drip(folder.path(), address)?;
        Ok(Self {
            address,
            _folder: folder,
            _running: running,
        })
    }
}

/// Compares memory and Redis, for one gateway and three.
pub fn table(server: &RedisServer, span: Duration) -> io::Result<String> {
    let origin = Origin::start()?;
    let mut rows = Vec::new();
    for (store, count) in [("memory", 1), ("redis", 1), ("memory", 3), ("redis", 3)] {
        let gateways = (0..count).map(|_| Gateway::start(&origin, server, store));
        let gateways = gateways.collect::<io::Result<Vec<_>>>()?;
        load(&gateways, span / 4)?;
        let before = server.reads()?;
        let mut took = load(&gateways, span)?;
        // The query of the count is one read itself.
        let reads = server.reads()? - before - 1;
        took.sort_by(f64::total_cmp);
        let requests = float(took.len() as u64);
        rows.push(vec![
            format!("{count}, `{store}`"),
            format!("{:.0}", requests / span.as_secs_f64()),
            format!("{:.0}", percentile(&took, 50)),
            format!("{:.0}", percentile(&took, 99)),
            if store == "redis" {
                format!("{:.2}", float(reads) / requests)
            } else {
                "—".to_owned()
            },
        ]);
    }
    let head = [
        "gateways",
        "requests a second",
        "median µs",
        "p99 µs",
        "reads of Redis a request",
    ];
    Ok(page::table(&head, &rows))
}

/// The duration of each request, in microseconds.
fn load(gateways: &[Gateway], span: Duration) -> io::Result<Vec<f64>> {
    run(async {
        let until = clock::now() + span;
        let mut clients = Vec::new();
        for gateway in gateways {
            for client in 0..CLIENTS {
                let mut connection = Connection::new(gateway.address);
                let request = format!("GET / HTTP/1.1\r\nHost: bench\r\nX-Key: {client}\r\n\r\n");
                clients.push(async move {
                    let mut took = Vec::new();
                    while clock::now() < until {
                        let began = clock::now();
                        if connection.ask(request.as_bytes()).await? == 200 {
                            took.push(clock::now().since(began).as_secs_f64() * 1e6);
                        }
                    }
                    Ok::<_, io::Error>(took)
                });
            }
        }
        let all = futures_util::future::try_join_all(clients).await?;
        Ok(all.concat())
    })
}
