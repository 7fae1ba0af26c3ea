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
use crate::support::within;
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
    let kept: Vec<Kept> = peers
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
    let rows = peers.iter().zip(&kept).map(|(peer, kept)| {
        vec![
            peer.kind.to_string(),
            kept.keys.to_string(),
            format!("{:.0}", kept.bytes / float(1 << 20)),
            format!("{:.0}", kept.each()),
        ]
    });
    let head = ["remembered, nobody waiting", "keys", "MiB", "bytes a key"];
    report.table("memory", &head, &rows.collect::<Vec<_>>());
    let bars = peers.iter().zip(&kept);
    let bars: Vec<_> = bars.map(|(peer, kept)| (peer.kind, kept.each())).collect();
    report.memory("a remembered key", "bytes", &bars);
    Ok(())
}

/// The memory that a peer holds for keys that came once.
struct Kept {
    keys: u64,
    bytes: f64,
}

impl Kept {
    fn each(&self) -> f64 {
        self.bytes / float(self.keys.max(1))
    }
}

/// Sends one request of each key.
fn fill(peer: &Peer, effort: Effort, report: &mut Report) -> Kept {
    // drip parks a key's actor after two seconds.
    const UNTIL_PARKED: Duration = Duration::from_secs(3);
    let before = peer.memory();
    let coming = Crowd::new(peer.address, KEYS, Keys::Once(effort.keys), CLIENTS).come();
    within(Duration::from_secs(90), || {
        coming.answers().answered() >= effort.keys
    });
    let keys = coming.answers().passed;
    drop(coming);
    if keys < effort.keys {
        report.note(&format!("{}: only {keys} keys came in time", peer.kind));
    }
    sleep(UNTIL_PARKED);
    Kept {
        keys,
        bytes: float(peer.memory().saturating_sub(before)),
    }
}
