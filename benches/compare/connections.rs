//! Memory of a client's connection, while its request waits and while it is idle.

use std::io;
use std::thread::sleep;
use std::time::Duration;

use crate::Bench;
use crate::arguments::Row;
use crate::peers::{Kind, PASS, Peer, Setup, WAIT};
use crate::report::{Report, step};
use crate::support::client::Transport;
use crate::support::crowd::{Crowd, Keys, Protocol, RunningCrowd};
use crate::support::figures::float;
use crate::support::wait_until;

const MEBIBYTE: f64 = 1024.0 * 1024.0;
/// Timeout for late clients.
const PATIENCE: Duration = Duration::from_secs(20);
/// Time until released buffers have been freed.
const SETTLED: Duration = Duration::from_millis(700);

/// A measurement of the memory for each connection of a crowd.
struct MemoryCase {
    row: Row,
    /// The name in the table.
    title: String,
    /// The name in the picture and the summary.
    name: &'static str,
    setup: Setup,
    requested: fn(Kind) -> bool,
    transport: Transport,
    path: &'static str,
    count: usize,
}

pub fn memory(bench: &Bench, report: &mut Report) -> io::Result<()> {
    let effort = bench.effort;
    let cases = [
        MemoryCase {
            row: Row::Waiting,
            title: format!("{} requests wait at one key", effort.waiting),
            name: "a waiting request, with its connection",
            setup: Setup::WAITING,
            requested: Kind::holds_requests,
            transport: Transport::Plain,
            path: WAIT,
            count: effort.waiting,
        },
        MemoryCase {
            row: Row::Connections,
            title: format!("{} idle connections", effort.connections),
            name: "an idle connection",
            setup: Setup::ONE_WORKER,
            requested: Kind::holds_requests,
            transport: Transport::Plain,
            path: PASS,
            count: effort.connections,
        },
        MemoryCase {
            row: Row::TlsConnections,
            title: format!("{} idle TLS connections", effort.tls_connections),
            name: "an idle TLS connection",
            setup: Setup::TLS,
            requested: Kind::speaks_tls,
            transport: Transport::Tls,
            path: PASS,
            count: effort.tls_connections,
        },
    ];
    for case in cases.iter().filter(|case| bench.wants(case.row)) {
        measure(case, bench, report)?;
    }
    Ok(())
}

fn measure(case: &MemoryCase, bench: &Bench, report: &mut Report) -> io::Result<()> {
    step(&format!("memory: {}", case.title));
    let (mut rows, mut bars) = (Vec::new(), Vec::new());
    for peer in bench.start(&case.setup, case.requested, report)? {
        let held = held(case, &peer, report);
        let each = held / float(case.count as u64) / 1024.0;
        rows.push(vec![
            peer.kind.to_string(),
            format!("{:.0}", held / MEBIBYTE),
            format!("{each:.1}"),
        ]);
        bars.push((peer.kind, each));
    }
    let head = [case.title.as_str(), "MiB", "KiB each"];
    report.table("memory", &head, &rows);
    report.memory(case.name, "KiB", &bars);
    Ok(())
}

/// The memory that a peer holds for all connections, in bytes.
fn held(case: &MemoryCase, peer: &Peer, report: &mut Report) -> f64 {
    warm(case, peer);
    let (memory, descriptors) = (peer.memory(), peer.descriptors());
    let crowd = Crowd {
        protocol: Protocol::Http1(case.transport),
        once: case.path == PASS,
        ramp_up: if case.path == WAIT {
            Duration::from_secs(2)
        } else {
            Duration::ZERO
        },
        ..Crowd::new(peer.address, case.path, Keys::One(1), case.count)
    };
    let running = crowd.start();
    let have_all_connected = wait_until(crowd.ramp_up + PATIENCE, || {
        running.wait_for_all(Duration::ZERO)
            && peer.descriptors() >= descriptors + case.count
            && (case.path == WAIT || running.answers().answered() >= case.count as u64)
    });
    sleep(SETTLED);
    let held = float(peer.memory().saturating_sub(memory));
    check(case, peer, &running, have_all_connected, report);
    held
}

/// Loads the code that requests need, so that its memory is not counted as that of connections.
fn warm(case: &MemoryCase, peer: &Peer) {
    const CLIENTS: usize = 4;
    let crowd = Crowd {
        protocol: Protocol::Http1(case.transport),
        ..Crowd::new(peer.address, case.path, Keys::One(1), CLIENTS)
    };
    let running = crowd.start();
    running.wait_for_all(PATIENCE);
    sleep(Duration::from_millis(200));
    drop(running);
    sleep(SETTLED);
}

fn check(
    case: &MemoryCase,
    peer: &Peer,
    running: &RunningCrowd,
    have_all_connected: bool,
    report: &mut Report,
) {
    let (kind, answers) = (peer.kind, running.answers());
    if !have_all_connected {
        report.note(&format!("{kind}: not all of the {} came", case.title));
    }
    let expected = if case.path == WAIT {
        answers.failed == 0 && answers.answered() <= 1
    } else {
        answers.failed == 0 && answers.passed == case.count as u64
    };
    if !expected {
        report.note(&format!("{kind}: {}: {answers:?}", case.title));
    }
}
