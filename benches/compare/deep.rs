//! Measures the cost of a request behind many waiting requests.

use std::io;
use std::time::Duration;

use crate::Bench;
use crate::arguments::Row;
use crate::cost::rounds;
use crate::peers::{DEEP, Kind, Setup};
use crate::report::{Report, step};
use crate::support::crowd::{Crowd, Keys};
use crate::support::figures::Figure;
use crate::table::{self, Measured};

/// The rate of the path, in requests per second.
const RATE: f64 = 4000.0;
/// The picture's panel for waiting requests.
const WHO_WAITS: &str = "who waits: µs a request";

pub fn queues(bench: &Bench, report: &mut Report) -> io::Result<()> {
    let rows = [(Row::Waits, 10), (Row::Deep, bench.effort.deep)];
    let rows = rows.into_iter().filter(|(row, _)| bench.wants(*row));
    let depths: Vec<usize> = rows.map(|(_, depth)| depth).collect();
    if depths.is_empty() {
        return Ok(());
    }
    step("what a request costs that waits");
    let peers = bench.start(&Setup::ONE_WORKER, Kind::lets_wait, report)?;
    // Filling a queue takes longer than measuring it.
    let mut effort = bench.effort.at_most(3);
    effort.window *= 2;
    // The warm-up lasts until each client has asked once.
    effort.warm *= 3;
    let measured = depths.into_iter().map(|depth| {
        let ramp_up = if depth > 100 {
            Duration::from_secs(2)
        } else {
            Duration::ZERO
        };
        let rounds = rounds(&peers, effort, report, |peer| Crowd {
            ramp_up,
            ..Crowd::new(peer.address, DEEP, Keys::One(1), depth)
        });
        for peer in &rounds {
            let rate = Figure::of(&peer.rate).map_or(0.0, |rate| rate.median);
            if rate < 0.9 * RATE {
                let kind = peer.kind;
                report.note(&format!(
                    "{kind}: {depth} clients asked only {rate:.0} times a second, so not all waited"
                ));
            }
        }
        let title = format!("CPU of a request that waits, 4000r/s, {depth} waiting");
        Measured::new(&format!("{depth} waiting"), &title, rounds)
    });
    let measured: Vec<_> = measured.collect();
    let title = "one key, everybody waits, 4000r/s";
    table::write(report, title, WHO_WAITS, &measured);
    Ok(())
}
