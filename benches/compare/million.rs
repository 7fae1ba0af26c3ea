//! Measures the cost of a request with many remembered keys, and the memory of a remembered key.

use std::io;
use std::thread::sleep;
use std::time::Duration;

use crate::arguments::Row;
use crate::cost::{AT_ONCE, rounds};
use crate::peers::{KEYS, Kind, Peer, Setup};
use crate::report::{Report, step};
use crate::support::crowd::{Crowd, Keys};
use crate::support::figures::float;
use crate::support::wait_until;
use crate::table::{self, Measured};
use crate::{Bench, Effort};

const CLIENTS: usize = 64;

pub fn keys(bench: &Bench, report: &mut Report) -> io::Result<()> {
    if !bench.wants(Row::Keys) {
        return Ok(());
    }
    let all = bench.effort.keys;
    step(&format!(
        "what a request costs with 1, 1000 and {all} keys, and what they hold"
    ));
    let peers = bench.start(&Setup::ONE_WORKER, Kind::counts_by_key, report)?;
    let effort = bench.effort.at_most(3);
    let one = rounds(&peers, effort, report, |peer| {
        Crowd::new(peer.address, KEYS, Keys::One(1), CLIENTS)
    });
    let thousand = rounds(&peers, effort, report, |peer| {
        Crowd::new(peer.address, KEYS, Keys::InTurn(1000), CLIENTS)
    });
    let key_memory: Vec<KeyMemory> = peers
        .iter()
        .map(|peer| fill(peer, effort, report))
        .collect();
    let million = rounds(&peers, effort, report, |peer| {
        Crowd::new(peer.address, KEYS, Keys::Scattered(all), CLIENTS)
    });
    let measured = [
        ("1 key".to_owned(), one),
        ("1000 keys".to_owned(), thousand),
        (format!("{all} keys"), million),
    ];
    let measured = measured.map(|(name, rounds)| Measured {
        rate: false,
        ..Measured::new(&name, &format!("CPU proxied, {name}"), rounds)
    });
    table::write(report, "one worker, proxied", AT_ONCE, &measured);
    let rows = peers.iter().zip(&key_memory).map(|(peer, key_memory)| {
        vec![
            peer.kind.to_string(),
            key_memory.keys.to_string(),
            format!("{:.0}", key_memory.bytes / float(1 << 20)),
            format!("{:.0}", key_memory.each()),
        ]
    });
    let head = ["remembered, nobody waiting", "keys", "MiB", "bytes a key"];
    report.table("memory", &head, &rows.collect::<Vec<_>>());
    let bars = peers.iter().zip(&key_memory);
    let bars: Vec<_> = bars
        .map(|(peer, key_memory)| (peer.kind, key_memory.each()))
        .collect();
    report.memory("a remembered key", "bytes", &bars);
    Ok(())
}

/// The memory that a peer holds for keys with one request each.
struct KeyMemory {
    keys: u64,
    bytes: f64,
}

impl KeyMemory {
    fn each(&self) -> f64 {
        self.bytes / float(self.keys.max(1))
    }
}

/// Sends one request of each key.
fn fill(peer: &Peer, effort: Effort, report: &mut Report) -> KeyMemory {
    // drip parks a key's actor after two seconds.
    const UNTIL_PARKED: Duration = Duration::from_secs(3);
    let before = peer.memory();
    let running = Crowd::new(peer.address, KEYS, Keys::Once(effort.keys), CLIENTS).start();
    wait_until(Duration::from_secs(90), || {
        running.answers().answered() >= effort.keys
    });
    let keys = running.answers().passed;
    drop(running);
    if keys < effort.keys {
        report.note(&format!("{}: only {keys} keys came in time", peer.kind));
    }
    sleep(UNTIL_PARKED);
    KeyMemory {
        keys,
        bytes: float(peer.memory().saturating_sub(before)),
    }
}
