//! Memory of a proxy that has had no requests.

use std::io;
use std::thread::sleep;
use std::time::Duration;

use crate::Bench;
use crate::arguments::Row;
use crate::peers::{Kind, Peer, Setup};
use crate::report::{Report, step};
use crate::support::figures::{Figure, cell, float};

const MEBIBYTE: f64 = 1024.0 * 1024.0;

/// Measures a proxy that has just started: its memory, and the time until it accepts connections.
pub fn memory(bench: &Bench, report: &mut Report) -> io::Result<()> {
    if !bench.wants(Row::Startup) {
        return Ok(());
    }
    step("idle memory, and from start to the first connection");
    let (mut rows, mut bars) = (Vec::new(), Vec::new());
    for kind in bench.present.iter().filter(|kind| **kind != Kind::Lean) {
        let (mut ready, mut held) = (Vec::new(), Vec::new());
        for _ in 0..bench.effort.rounds {
            let peer = Peer::start(*kind, bench.origin.address, &Setup::SMALL)?;
            ready.push(peer.ready_after().as_secs_f64() * 1e3);
            sleep(Duration::from_millis(200));
            held.push(float(peer.memory()) / MEBIBYTE);
        }
        let held = Figure::of(&held);
        rows.push(vec![
            kind.to_string(),
            cell(held, 1),
            cell(Figure::of(&ready), 0),
        ]);
        bars.push((*kind, held.map_or(0.0, |figure| figure.median)));
    }
    report.table(
        "memory",
        &["idle, one worker", "MiB", "ready after, ms"],
        &rows,
    );
    report.memory("idle", "MiB", &bars);
    Ok(())
}
