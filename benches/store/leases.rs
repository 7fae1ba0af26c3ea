//! Measures the effect of a lease on one busy key at three gateways.

use std::io;
use std::time::Duration;

use gateway::time::clock;

use crate::decisions::{percentile, run};
use crate::gateways::Gateway;
use crate::redis_server::RedisServer;
use crate::support::client::Connection;
use crate::support::figures::float;
use crate::support::origin::Origin;
use crate::support::{page, usage};

/// Clients of each gateway.
const CLIENTS: usize = 32;

/// Compares `lease = "0s"` and `"20ms"`, above the rate of the key and below it.
pub fn table(server: &RedisServer, span: Duration) -> io::Result<String> {
    let origin = Origin::start()?;
    let mut rows = Vec::new();
    for (rate, lease) in [
        ("20000r/s", "0s"),
        ("20000r/s", "20ms"),
        ("200000r/s", "0s"),
        ("200000r/s", "20ms"),
    ] {
        server.forget_all()?;
        let zone = format!("rate = \"{rate}\"\nstore = \"redis\"\nlease = \"{lease}\"");
        let limit = "burst = 10000, nodelay = true";
        let start = |_| Gateway::start(&origin, server.address, &zone, limit);
        let gateways = (0..3).map(start).collect::<io::Result<Vec<_>>>()?;
        load(&gateways, span)?;
        rows.push(row(
            server,
            &gateways,
            &format!("`{rate}`, `{lease}`"),
            span,
        )?);
    }
    let head = [
        "rate, lease",
        "answers a second",
        "of them 200",
        "median µs",
        "p99 µs",
        "processor time of the gateways, µs an answer",
        "calls of Redis a second",
        "processor time of Redis, %",
    ];
    Ok(page::table(&head, &rows))
}

fn row(
    server: &RedisServer,
    gateways: &[Gateway],
    name: &str,
    span: Duration,
) -> io::Result<Vec<String>> {
    let time = || {
        let processes = gateways.iter().flat_map(|it| it.running.processes());
        usage::processor_time(&processes.collect::<Vec<_>>())
    };
    let (calls, redis_time, gateway_time) = (server.calls()?, server.processor_time(), time());
    let answers = load(gateways, span)?;
    let gateway_time = time().saturating_sub(gateway_time).as_secs_f64();
    let redis_time = server.processor_time().saturating_sub(redis_time);
    let calls = server.calls()?.saturating_sub(calls);
    let mut took: Vec<f64> = answers.iter().map(|(_, took)| *took).collect();
    took.sort_by(f64::total_cmp);
    let passed = answers.iter().filter(|(status, _)| *status == 200).count();
    let (all, seconds) = (float(took.len() as u64), span.as_secs_f64());
    Ok(vec![
        name.to_owned(),
        format!("{:.0}", all / seconds),
        format!("{:.0}", float(passed as u64) / seconds),
        format!("{:.0}", percentile(&took, 50)),
        format!("{:.0}", percentile(&took, 99)),
        format!("{:.1}", gateway_time * 1e6 / all),
        format!("{:.0}", float(calls) / seconds),
        format!("{:.0}", redis_time.as_secs_f64() * 100.0 / seconds),
    ])
}

/// Returns the status and the duration in microseconds of each request.
fn load(gateways: &[Gateway], span: Duration) -> io::Result<Vec<(u16, f64)>> {
    run(async {
        let until = clock::now() + span;
        let clients = gateways.iter().flat_map(|it| [it.address; CLIENTS]);
        let asked = clients.map(|address| async move {
            let (mut connection, mut answers) = (Connection::new(address), Vec::new());
            let request = b"GET / HTTP/1.1\r\nHost: bench\r\nX-Key: hot\r\n\r\n";
            while clock::now() < until {
                let began = clock::now();
                let status = connection.exchange(request).await?;
                answers.push((status, clock::now().since(began).as_secs_f64() * 1e6));
            }
            Ok::<_, io::Error>(answers)
        });
        let all = futures_util::future::try_join_all(asked).await?;
        Ok(all.concat())
    })
}
