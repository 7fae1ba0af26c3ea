//! The gate of an origin: cost of an open gate, and evenness of its stream with four workers.
//!
//! No other proxy paces an origin, so these rows show drip alone, and the machine's floor.

use std::io;
use std::thread::sleep;
use std::time::Duration;

use crate::Bench;
use crate::arguments::Row;
use crate::cost::{self, CLIENTS};
use crate::evenness::record_arrivals;
use crate::floor::{self, Wait};
use crate::peers::{GATED, Kind, OPEN_GATE, PASS, Setup};
use crate::report::{Report, step};
use crate::support::crowd::{Crowd, Keys};
use crate::support::figures::{Evenness, Figure, cell};

const KEYS: u64 = 32;

/// Measures a request behind a gate without waiters, and a request without a gate.
pub fn cost(bench: &Bench, report: &mut Report) -> io::Result<()> {
    if !bench.wants(Row::OpenGate) {
        return Ok(());
    }
    step("what an open gate costs");
    let peers = bench.start(&Setup::GATES, |kind| kind == Kind::Drip, report)?;
    let mut rows = Vec::new();
    for (name, path) in [("without a gate", PASS), ("an open gate", OPEN_GATE)] {
        let rounds = cost::rounds(&peers, bench.effort, report, |peer| {
            Crowd::new(peer.address, path, Keys::InTurn(KEYS), CLIENTS)
        });
        for rounds in rounds {
            rows.push(vec![name.to_owned(), cell(rounds.figure(), 2)]);
        }
    }
    report.table("cost", &["behind", "drip: µs a request"], &rows);
    Ok(())
}

/// Measures how evenly requests of many keys leave for the origin through one gate.
pub fn streams(bench: &Bench, report: &mut Report) -> io::Result<()> {
    if !bench.wants(Row::Gated) {
        return Ok(());
    }
    step("how evenly the requests of many keys leave through a gate, four workers");
    let setup = &Setup::FOUR_WORKERS;
    let peers = bench.start(setup, |kind| kind == Kind::Drip, report)?;
    let mut rows = Vec::new();
    for (rate, path) in GATED {
        for peer in &peers {
            let (mut variations, mut rates, mut floor_variations) =
                (Vec::new(), Vec::new(), Vec::new());
            for _ in 0..bench.effort.rounds {
                let crowd = Crowd::new(peer.address, path, Keys::InTurn(KEYS), CLIENTS).start();
                sleep(bench.effort.warm + Duration::from_millis(100));
                let moments: Vec<u64> = record_arrivals(bench, rate)
                    .iter()
                    .map(|it| it.at)
                    .collect();
                drop(crowd);
                if let Some(evenness) = Evenness::of(&moments) {
                    variations.push(evenness.variation);
                    rates.push(evenness.rate);
                }
                let floor: Vec<u64> = floor::arrivals(bench, rate, Wait::Asleep)?
                    .iter()
                    .map(|it| it.at)
                    .collect();
                floor_variations.extend(Evenness::of(&floor).map(|evenness| evenness.variation));
            }
            let (variations, rates) = (Figure::of(&variations), Figure::of(&rates));
            rows.push(vec![
                format!("{rate}r/s"),
                cell(variations, 3),
                cell(rates, 1),
                cell(Figure::of(&floor_variations), 3),
            ]);
        }
    }
    let head = [
        "through a gate, 32 keys, four workers",
        "drip: variation",
        "a second",
        "the machine's floor",
    ];
    report.table("evenness", &head, &rows);
    Ok(())
}
