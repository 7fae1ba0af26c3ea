//! Whether a request costs more where many keys are remembered, and what a remembered key holds in memory.

use std::io;
use std::thread::sleep;
use std::time::Duration;

use crate::cost::{AT_ONCE, beside, of_nginx, rounds};
use crate::peers::{KEYS, Kind, Peer};
use crate::report::{Report, step};
use crate::support::crowd::{Crowd, Keys};
use crate::support::figures::{cell, float};
use crate::support::within;
use crate::{Bench, Effort};

const CLIENTS: usize = 64;

pub fn keys(bench: &Bench, report: &mut Report) -> io::Result<()> {
    let all = bench.effort.keys;
    step(&format!(
        "what a request costs with 1, 1000 and {all} keys, and what they hold"
    ));
    let peers = bench.start(1, Kind::counts_by_key, report)?;
    let mut effort = bench.effort;
    effort.rounds = effort.rounds.min(3);
    let one = rounds(&peers, effort, report, |peer| {
        Crowd::new(peer.address, KEYS, Keys::One(1), CLIENTS)
    });
    let thousand = rounds(&peers, effort, report, |peer| {
        Crowd::new(peer.address, KEYS, Keys::InTurn(1000), CLIENTS)
    });
    let kept: Vec<f64> = peers
        .iter()
        .map(|peer| fill(peer, effort, report))
        .collect();
    let million = rounds(&peers, effort, report, |peer| {
        Crowd::new(peer.address, KEYS, Keys::Scattered(all), CLIENTS)
    });
    let rows = peers.iter().enumerate().map(|(index, peer)| {
        vec![
            peer.kind.to_string(),
            cell(one[index].figure(), 1),
            cell(thousand[index].figure(), 1),
            cell(million[index].figure(), 1),
            beside(&million[index].micros, of_nginx(&million)),
        ]
    });
    let many = format!("{all} keys, µs");
    let head = [
        "one worker, proxied",
        "1 key, µs",
        "1000 keys, µs",
        &many,
        "beside nginx",
    ];
    report.table("cost", &head, &rows.collect::<Vec<_>>());
    report.bars(AT_ONCE, "1000 keys", &thousand);
    report.bars(AT_ONCE, &format!("{all} keys"), &million);
    let rows = peers.iter().zip(&kept).map(|(peer, bytes)| {
        vec![
            peer.kind.to_string(),
            format!("{:.0}", bytes * float(all) / float(1 << 20)),
            format!("{bytes:.0}"),
        ]
    });
    let head = [&format!("{all} keys, nobody waiting"), "MiB", "bytes a key"];
    report.table(
        "memory",
        &head.map(|words: &str| words),
        &rows.collect::<Vec<_>>(),
    );
    let bars = peers
        .iter()
        .map(|peer| peer.kind)
        .zip(kept)
        .collect::<Vec<_>>();
    report.memory("a remembered key", "bytes", &bars);
    Ok(())
}

/// Has each key come once; returns how many bytes each of them holds.
fn fill(peer: &Peer, effort: Effort, report: &mut Report) -> f64 {
    // drip parks a key's actor after two seconds.
    const UNTIL_PARKED: Duration = Duration::from_secs(3);
    let before = peer.memory();
    let coming = Crowd::new(peer.address, KEYS, Keys::Once(effort.keys), CLIENTS).come();
    let all_came = within(Duration::from_secs(90), || {
        coming.answers().answered() >= effort.keys
    });
    let came = coming.answers().passed;
    drop(coming);
    if !all_came || came < effort.keys {
        report.note(&format!("{}: only {came} keys came", peer.kind));
    }
    sleep(UNTIL_PARKED);
    float(peer.memory().saturating_sub(before)) / float(came.max(1))
}
