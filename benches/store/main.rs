//! Measures the cost of a decision that gateways share.

mod capacity;
mod decisions;
mod distance;
mod gateways;
mod leases;
mod redis_server;
// Shared with the comparison, which uses other parts of it.
#[allow(dead_code)]
#[path = "../support/mod.rs"]
mod support;

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use redis_server::RedisServer;
use support::{arguments, page, process};

fn main() -> ExitCode {
    arguments::run(measure)
}

fn measure(quick: bool) -> io::Result<()> {
    process::stop_programs_on_signal();
    let span = Duration::from_millis(if quick { 200 } else { 1500 });
    let server = RedisServer::start()?;
    let decisions = decisions::table(&server, span)?;
    println!("{decisions}");
    let gateways = gateways::table(&server, span)?;
    println!("{gateways}");
    let keys = if quick { 10_000 } else { 1_000_000 };
    let keys = capacity::keys_table(&server, keys, span)?;
    println!("{keys}");
    let counts: &[usize] = if quick { &[1000] } else { &[100, 1000, 8000] };
    let connections = capacity::connections_table(&server, counts, span)?;
    println!("{connections}");
    let leases = leases::table(&server, span)?;
    println!("{leases}");
    if quick {
        println!("a quick run: benches/README.md stays as it is");
        return Ok(());
    }
    page::replace(&page::path("README.md"), "decisions", &decisions)?;
    page::replace(&page::path("README.md"), "gateways", &gateways)?;
    page::replace(&page::path("README.md"), "keys", &keys)?;
    page::replace(&page::path("README.md"), "connections", &connections)?;
    page::replace(&page::path("README.md"), "leases", &leases)
}
