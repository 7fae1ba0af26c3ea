//! Measures whether each of thousands of queues keeps its pace.

use std::collections::HashMap;
use std::io;
use std::thread::sleep;
use std::time::Duration;

use crate::Bench;
use crate::arguments::Row;
use crate::peers::{Kind, SLOW, Setup};
use crate::report::{Report, step};
use crate::support::crowd::{Crowd, Keys};
use crate::support::figures::{Figure, cell, float};
use crate::support::origin::Arrival;

/// The path's interval between two requests of one key, in nanoseconds.
const INTERVAL: u64 = 2_000_000_000;
const MARGIN: u64 = 5_000_000;

pub fn keys(bench: &Bench, report: &mut Report) -> io::Result<()> {
    if !bench.wants(Row::Slow) {
        return Ok(());
    }
    let keys = bench.effort.slow;
    step(&format!(
        "{keys} keys, of each of which one request leaves in two seconds"
    ));
    let peers = bench.start(&Setup::ONE_WORKER, Kind::lets_wait, report)?;
    let mut shares: Vec<Vec<f64>> = peers.iter().map(|_| Vec::new()).collect();
    let mut rates = shares.clone();
    for _ in 0..bench.effort.at_most(2).rounds {
        for (index, peer) in peers.iter().enumerate() {
            let crowd = Crowd {
                ramp_up: Duration::from_nanos(INTERVAL),
                ..Crowd::new(peer.address, SLOW, Keys::Own, keys)
            };
            let running = crowd.start();
            running.wait_for_all(crowd.ramp_up + Duration::from_secs(5));
            sleep(bench.effort.warm);
            bench.origin.start_recording();
            sleep(Duration::from_nanos(INTERVAL * 5 / 2));
            let arrivals = bench.origin.take_recorded();
            let answers = running.answers();
            if answers.refused + answers.failed > 0 {
                report.note(&format!("{}: {answers:?}", peer.kind));
            }
            shares[index].push(share_in_time(&arrivals));
            rates[index].push(float(arrivals.len() as u64) / (float(INTERVAL) * 2.5e-9));
        }
    }
    let rows = peers.iter().enumerate().map(|(index, peer)| {
        vec![
            peer.kind.to_string(),
            cell(Figure::of(&shares[index]), 2),
            cell(Figure::of(&rates[index]), 0),
        ]
    });
    let head = [
        &format!("{keys} keys at 30r/m, one request of each waiting"),
        "left within 5 ms of two seconds after the one before, %",
        "left a second",
    ];
    report.table(
        "evenness",
        &head.map(|words: &str| words),
        &rows.collect::<Vec<_>>(),
    );
    Ok(())
}

/// The percentage of requests that came at the right time after the previous request of their key.
fn share_in_time(arrivals: &[Arrival]) -> f64 {
    let mut before: HashMap<u64, u64> = HashMap::new();
    let (mut all, mut in_time) = (0_u64, 0_u64);
    for arrival in arrivals {
        if let Some(earlier) = before.insert(arrival.key, arrival.at) {
            all += 1;
            in_time += u64::from((arrival.at - earlier).abs_diff(INTERVAL) <= MARGIN);
        }
    }
    100.0 * float(in_time) / float(all.max(1))
}
