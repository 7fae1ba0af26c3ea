//! Whether a request costs more where many wait before it.

use std::io;
use std::time::Duration;

use crate::Bench;
use crate::cost::{beside, of_nginx, rounds};
use crate::peers::{DEEP, Kind};
use crate::report::{Report, step};
use crate::support::crowd::{Crowd, Keys};
use crate::support::figures::cell;

pub fn queues(bench: &Bench, report: &mut Report) -> io::Result<()> {
    let depths = [10, bench.effort.deep];
    step(&format!(
        "what a request costs with {} and {} waiting",
        depths[0], depths[1]
    ));
    let peers = bench.start(1, Kind::lets_wait, report)?;
    let measured = depths.map(|depth| {
        let mut effort = bench.effort;
        // Filling a queue takes longer than looking at it.
        effort.rounds = effort.rounds.min(3);
        effort.window *= 2;
        // Until each has come once.
        effort.warm *= 3;
        rounds(&peers, effort, report, |peer| Crowd {
            coming: if depth > 100 {
                Duration::from_secs(2)
            } else {
                Duration::ZERO
            },
            ..Crowd::new(peer.address, DEEP, Keys::One(1), depth)
        })
    });
    let [shallow, deep] = measured;
    let (nginx_shallow, nginx_deep) = (of_nginx(&shallow), of_nginx(&deep));
    let rows = shallow.iter().zip(&deep).map(|(shallow, deep)| {
        vec![
            shallow.kind.to_string(),
            cell(shallow.figure(), 1),
            beside(&shallow.micros, nginx_shallow),
            cell(deep.figure(), 1),
            beside(&deep.micros, nginx_deep),
        ]
    });
    let [few, many] = depths.map(|depth| format!("{depth} waiting"));
    let head = [
        "one key, everybody waits, 4000r/s",
        &format!("{few}, µs"),
        "beside nginx",
        &format!("{many}, µs"),
        "beside nginx",
    ];
    report.table(
        "cost",
        &head.map(|words: &str| words),
        &rows.collect::<Vec<_>>(),
    );
    report.bars("who waits: µs a request", &few, &shallow);
    report.bars("who waits: µs a request", &many, &deep);
    Ok(())
}
