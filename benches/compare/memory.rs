//! What is held in memory: by a proxy that nobody has asked, and by those who wait in one.

use std::io;
use std::thread::sleep;
use std::time::Duration;

use crate::Bench;
use crate::arguments::Row;
use crate::peers::{Kind, Peer, Setup, WAIT};
use crate::report::{Report, step};
use crate::support::crowd::{Crowd, Keys};
use crate::support::figures::{Figure, cell, float};

const MEBIBYTE: f64 = 1024.0 * 1024.0;

/// Just started, and how soon it takes connections.
pub fn startup(bench: &Bench, report: &mut Report) -> io::Result<()> {
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

/// Requests that wait in one key's queue.
pub fn waiting(bench: &Bench, report: &mut Report) -> io::Result<()> {
    if !bench.wants(Row::Waiting) {
        return Ok(());
    }
    let clients = bench.effort.waiting;
    step(&format!("memory of {clients} waiting requests"));
    let (mut rows, mut bars) = (Vec::new(), Vec::new());
    for peer in bench.start(&Setup::WAITING, Kind::holds_requests, report)? {
        let before = peer.memory();
        let crowd = Crowd {
            coming: Duration::from_secs(2),
            ..Crowd::new(peer.address, WAIT, Keys::One(1), clients)
        };
        let coming = crowd.come();
        coming.wait_for_all(crowd.coming + Duration::from_secs(5));
        // Until the last of them waits.
        sleep(Duration::from_millis(700));
        let held = float(peer.memory().saturating_sub(before));
        let answers = coming.answers();
        if answers.answered() + answers.failed > 1 {
            report.note(&format!(
                "{}: {answers:?}, though everybody should wait",
                peer.kind
            ));
        }
        let each = held / float(clients as u64);
        rows.push(vec![
            peer.kind.to_string(),
            format!("{:.0}", held / MEBIBYTE),
            format!("{:.1}", each / 1024.0),
        ]);
        bars.push((peer.kind, each / 1024.0));
    }
    let head = [
        &format!("{clients} requests wait at one key"),
        "MiB",
        "KiB each, with its connection",
    ];
    report.table("memory", &head.map(|words: &str| words), &rows);
    report.memory("a waiting request, with its connection", "KiB", &bars);
    Ok(())
}
