//! Memory of a client's connection, while its request waits and while it is idle.

use std::io;
use std::thread::sleep;
use std::time::Duration;

use crate::Bench;
use crate::arguments::Row;
use crate::peers::{Kind, PASS, Peer, Setup, WAIT};
use crate::report::{Report, step};
use crate::support::client::Transport;
use crate::support::crowd::{Coming, Crowd, Keys, Protocol};
use crate::support::figures::float;
use crate::support::within;

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
    let sorts = [
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
    for sort in sorts.iter().filter(|sort| bench.wants(sort.row)) {
        measure(sort, bench, report)?;
    }
    Ok(())
}

fn measure(sort: &MemoryCase, bench: &Bench, report: &mut Report) -> io::Result<()> {
    step(&format!("memory: {}", sort.title));
    let (mut rows, mut bars) = (Vec::new(), Vec::new());
    for peer in bench.start(&sort.setup, sort.requested, report)? {
        let held = held(sort, &peer, report);
        let each = held / float(sort.count as u64) / 1024.0;
        rows.push(vec![
            peer.kind.to_string(),
            format!("{:.0}", held / MEBIBYTE),
            format!("{each:.1}"),
        ]);
        bars.push((peer.kind, each));
    }
    let head = [sort.title.as_str(), "MiB", "KiB each"];
    report.table("memory", &head, &rows);
    report.memory(sort.name, "KiB", &bars);
    Ok(())
}

/// The memory that a peer holds for all connections, in bytes.
fn held(sort: &MemoryCase, peer: &Peer, report: &mut Report) -> f64 {
    warm(sort, peer);
    let (memory, descriptors) = (peer.memory(), peer.descriptors());
    let crowd = Crowd {
        protocol: Protocol::Http1(sort.transport),
        once: sort.path == PASS,
        coming: if sort.path == WAIT {
            Duration::from_secs(2)
        } else {
            Duration::ZERO
        },
        ..Crowd::new(peer.address, sort.path, Keys::One(1), sort.count)
    };
    let coming = crowd.come();
    let all_here = within(crowd.coming + PATIENCE, || {
        coming.wait_for_all(Duration::ZERO)
            && peer.descriptors() >= descriptors + sort.count
            && (sort.path == WAIT || coming.answers().answered() >= sort.count as u64)
    });
    sleep(SETTLED);
    let held = float(peer.memory().saturating_sub(memory));
    check(sort, peer, &coming, all_here, report);
    held
}

/// Loads the code that requests need, so that its memory is not counted as that of connections.
fn warm(sort: &MemoryCase, peer: &Peer) {
    const CLIENTS: usize = 4;
    let crowd = Crowd {
        protocol: Protocol::Http1(sort.transport),
        ..Crowd::new(peer.address, sort.path, Keys::One(1), CLIENTS)
    };
    let coming = crowd.come();
    coming.wait_for_all(PATIENCE);
    sleep(Duration::from_millis(200));
    drop(coming);
    sleep(SETTLED);
}

fn check(sort: &MemoryCase, peer: &Peer, coming: &Coming, all_here: bool, report: &mut Report) {
    let (kind, answers) = (peer.kind, coming.answers());
    if !all_here {
        report.note(&format!("{kind}: not all of the {} came", sort.title));
    }
    let expected = if sort.path == WAIT {
        answers.failed == 0 && answers.answered() <= 1
    } else {
        answers.failed == 0 && answers.passed == sort.count as u64
    };
    if !expected {
        report.note(&format!("{kind}: {}: {answers:?}", sort.title));
    }
}
